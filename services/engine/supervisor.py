"""The parent of one embedded engine: runs it, stops it with all its processes, and writes down how it ended.

Run as `python -m gpudeck.services.engine.supervisor DIRECTORY RUN`.  It detaches from whoever started it (own
session, no terminal, SIGHUP ignored), so that neither the end of the panel nor that of the login reaches the engine.
As subreaper it inherits the engine's orphans, so that none of its descendants is ever out of reach.  A SIGTERM to it is
the request to stop.  Little beside the standard library, and small: it lives as long as the engine.
"""

import ctypes
import os
import shutil
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from gpudeck.services.engine import secrets_file
from gpudeck.services.engine.enginedir import RUN_VARIABLE, Command, End, EngineDirectory, Run
from gpudeck.services.engine.ownership import UNIT_VARIABLE
from gpudeck.services.engine.processes import Process, boot_id, descendants, process, signal_all
from gpudeck.services.errors import OperatorError

_PR_SET_CHILD_SUBREAPER = 36
_HEARTBEAT_S = 30.0  # how often the size of the log is looked at
_SWEEP_S = 0.1  # while stopping
_MAX_LOG = 256 << 20  # bytes; journald too keeps a bounded history
_GRACE_S = 10.0  # for what is left after the main process ended by itself
_STARTED = "started"
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(directory: str, run: str) -> int:
    """Start the engine of `directory` detached; returns when it runs, or prints why it does not and returns 1."""
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.close(read_end)
        _detached(EngineDirectory(Path(directory)), run, write_end)
    os.close(write_end)
    with os.fdopen(read_end, encoding="utf-8") as told:
        problem = told.read()
    if problem != _STARTED:
        print(problem or "its supervisor ended at once", file=sys.stderr)  # noqa: T201
    return 0 if problem == _STARTED else 1


def _detached(files: EngineDirectory, run: str, report: int) -> NoReturn:
    try:
        Supervisor(files, run).attend(report)
    except OSError as error:
        with suppress(OSError):
            os.write(report, f"{error.filename or files.path}: {error.strerror}".encode())
    except OperatorError as error:
        with suppress(OSError):
            os.write(report, str(error).encode())
    except Exception:  # noqa: BLE001 - the last frame of a process without a terminal: its log is where it can be read
        traceback.print_exc()
    finally:
        # Whatever went wrong, an engine without its supervisor must not be left behind.
        signal_all(descendants(os.getpid()), signal.SIGKILL)
        sys.stderr.flush()
        os._exit(0)


class Supervisor:
    def __init__(self, files: EngineDirectory, run: str) -> None:
        self._files = files
        self._run = run
        self._command = Command.read(files.command)
        self._status: int | None = None  # of the main process, as waitpid gives it
        self._stopping = False

    def attend(self, report: int) -> None:
        """Run the engine from its start to the end of its last process.  Raises OSError where it can not be run."""
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        self._redirect()
        main = self._spawn()
        os.write(report, _STARTED.encode())
        os.close(report)
        asked_at = self._wait(main)
        if self._status is None:
            self._stop(main, asked_at)
        self._sweep()
        self._files.write_end(End(self._run, time.time(), self._status, self._stopping))

    def _redirect(self) -> None:
        os.chdir("/")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        log = os.open(self._files.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)

    def _spawn(self) -> Process:
        """Start the engine and write down that it runs; raises OSError where it can not be run."""
        argv = self._command.argv
        environment = (
            os.environ
            | self._command.environment
            | secrets_file.read(self._files.secrets)
            | {RUN_VARIABLE: self._run, UNIT_VARIABLE: self._command.unit}
        )
        folder = os.path.dirname(argv[0])  # noqa: PTH120
        path = environment.get("PATH", os.defpath)
        if folder.startswith("/") and folder not in path.split(":"):
            # What lies beside vllm in its environment: FlashInfer calls the ninja there.
            environment["PATH"] = f"{folder}:{path}"
        failed, failure = os.pipe()  # closed by a successful exec
        gate, key = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(key)
                if not os.read(gate, 1):  # whoever would have written us down is gone
                    os._exit(203)
                os.setsid()
                for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores the last two
                    signal.signal(number, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_SETMASK, ())
                os.execvpe(argv[0], argv, environment)  # noqa: S606
            except OSError as error:
                os.write(failure, str(error.errno).encode())
            finally:
                os._exit(203)  # systemd's own status for a command that can not be run
        os.close(failure)
        os.close(gate)
        main = process(pid) or Process(pid, 0)
        me = process(os.getpid()) or Process(os.getpid(), 0)
        # Written down before it runs: an engine that nobody knows of would hold its cards for ever.
        self._files.write_run(Run(self._run, boot_id(), time.time(), me, main))
        os.write(key, b"1")
        os.close(key)
        with os.fdopen(failed, "rb") as pipe:
            told = pipe.read()
        if told:
            os.waitpid(pid, 0)
            self._files.forget_run()
            raise OSError(int(told), os.strerror(int(told)), argv[0])
        return main

    def _wait(self, main: Process) -> float:
        """Wait until the engine ends or a stop is asked for; returns when that was."""
        while self._status is None:
            arrived = signal.sigtimedwait(_SIGNALS, _HEARTBEAT_S)
            self._reap(main)
            if arrived is None:
                self._bound_log()
            elif arrived.si_signo in (signal.SIGTERM, signal.SIGINT):
                self._stopping = True
                break
        return time.monotonic()

    def _stop(self, main: Process, asked_at: float) -> None:
        """SIGTERM to every process, as systemd does, and SIGKILL when the time is over.

        vLLM loses a SIGTERM that comes while it starts, and heeds a second one.
        """
        self._files.write_stopping()
        again_at = self._command.second_term_s
        signal_all(descendants(os.getpid()), signal.SIGTERM)
        while self._status is None:
            waited = time.monotonic() - asked_at
            if waited >= self._command.stop_timeout_s:
                signal_all(descendants(os.getpid()), signal.SIGKILL)
            elif again_at is not None and waited >= again_at:
                main.send(signal.SIGTERM)
                again_at = None
            signal.sigtimedwait(_SIGNALS, _SWEEP_S)
            self._reap(main)

    def _sweep(self) -> None:
        """End what the main process left behind."""
        deadline = time.monotonic() + _GRACE_S
        left = descendants(os.getpid())
        if left:
            self._files.write_stopping()
        signal_all(left, signal.SIGTERM)
        while left := descendants(os.getpid()):
            if time.monotonic() >= deadline:
                signal_all(left, signal.SIGKILL)
            signal.sigtimedwait(_SIGNALS, _SWEEP_S)
            self._reap(None)

    def _reap(self, main: Process | None) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if main is not None and pid == main.pid:
                    self._status = status

    def _bound_log(self) -> None:
        # The engine appends to its own open file, so that the file is emptied in place and not replaced.
        with suppress(OSError):
            if self._files.log.stat().st_size > _MAX_LOG:
                shutil.copyfile(self._files.log, self._files.previous_log)
                os.truncate(self._files.log, 0)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
