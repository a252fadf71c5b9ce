"""Asking the installed vLLM whether it accepts a command line, before anything starts."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gpudeck.services.plan.command import argv, environment
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.text import printable
from gpudeck.services.vllm.answer import Answer, Installed, Reply
from gpudeck.services.vllm.installed import installed

# Ten seconds on a quick machine, most of them for imports; several times that from a cold disk.
TIMEOUT = 120.0
_STEP = 0.1  # how soon a cancelled question ends
_MAX_ANSWER = 1 << 16
_MAX_HELP = 4 << 20
_PROBE = Path(__file__).with_name("probe.py")
# A unit inherits nothing of the shell that gpudeck runs in; these are what systemd, or anyone's login, gives.
_INHERITED = ("HOME", "USER", "LOGNAME", "PATH", "LANG", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
_OPTION = re.compile(r"(?<![\w-])--[a-z0-9][a-z0-9_-]*")


class Asking:
    """Asks, and keeps what was answered as long as program, command and environment stay the same.

    `ask` blocks for some ten seconds; it may be called from any thread, and `cancelled` ends it at once.  Nothing is
    started or downloaded; with --trust-remote-code in the spec, the model's own code runs, as at a start.
    """

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._known: dict[object, Answer] = {}
        self._lock = threading.Lock()

    def known(self, spec: EngineSpec) -> Answer | None:
        """The answer given before; None where it was not asked, or where something has changed since."""
        with self._lock:
            return self._known.get(_key(spec))

    def ask(self, spec: EngineSpec, cancelled: threading.Event | None = None) -> Answer:
        """The installed vLLM's answer to this spec.  Raises nothing: what went wrong stands in the answer."""
        found = self.known(spec)
        if found is not None:
            return found
        key = _key(spec)
        answer, lasting = self._asked(spec, cancelled or threading.Event())
        if lasting:
            with self._lock:
                self._known[key] = answer
        return answer

    def _asked(self, spec: EngineSpec, cancelled: threading.Event) -> tuple[Answer, bool]:
        """The answer, and whether it would be the same if it were asked again."""
        if not spec.program or not _stamp(spec.program):
            program = printable(spec.program[0]) if spec.program else "vllm"
            return Answer(Reply.NOT_ASKED, f"{program} is not on this machine"), False
        engine = installed(spec.program)
        if engine is None:
            return self._by_help(spec, None, cancelled)
        words = argv(spec)[len(spec.program) + 1 :]
        with tempfile.TemporaryFile() as answered, tempfile.TemporaryFile() as errors:
            command = (str(engine.python), str(_PROBE), str(answered.fileno()), str(int(self._timeout) + 10), *words)
            ended = _run(command, _variables(spec), self._timeout, cancelled, errors, keep=answered)
            if ended is not None and ended.reason:
                return Answer(Reply.NOT_ASKED, ended.reason, engine), False
            document = _document(answered)
            if document is None:
                code = ended.code if ended is not None else None
                return Answer(Reply.NOT_ASKED, _without_answer(code, errors), engine), False
        reply, text = document
        if reply == "not asked":
            answer, lasting = self._by_help(spec, engine, cancelled)
            return (answer, lasting) if answer.flags_only else (Answer(Reply.NOT_ASKED, text, engine), False)
        if reply == "no device":
            reason = f"it finds no GPU here, and without one it judges nothing ({text})"
            return Answer(Reply.NOT_ASKED, reason, engine), False
        return Answer(Reply.ACCEPTED if reply == "accepted" else Reply.REFUSED, text, engine), True

    def _by_help(self, spec: EngineSpec, engine: Installed | None, cancelled: threading.Event) -> tuple[Answer, bool]:
        """Only the names of the flags, where vLLM itself can not be reached: compared with its --help."""
        for asked in ("--help=all", "--help"):
            with tempfile.TemporaryFile() as output:
                command = (*spec.program, "serve", asked)
                ended = _run(command, _variables(spec), self._timeout, cancelled, output, keep=None)
                if ended.reason:
                    return Answer(Reply.NOT_ASKED, ended.reason, engine), False
                output.seek(0)
                options = set(_OPTION.findall(output.read(_MAX_HELP).decode("utf-8", "replace").replace("_", "-")))
                if ended.code == 0 and "--tensor-parallel-size" in options:
                    return _compared(argv(spec)[len(spec.program) + 1 :], options, engine), True
        return Answer(Reply.NOT_ASKED, "neither its Python nor its --help can be read", engine), False


@dataclass(frozen=True, slots=True)
class _Ended:
    code: int
    reason: str = ""  # why it was ended, or never began


def _key(spec: EngineSpec) -> object:
    return _stamp(spec.program), argv(spec), tuple(environment(spec).items())


def _stamp(program: Sequence[str]) -> tuple[int, int] | None:
    """What changes when the program is installed anew; None where it is not there."""
    found = shutil.which(program[0]) if program else None
    try:
        status = Path(found).stat() if found is not None else None
    except OSError:
        return None
    return None if status is None else (status.st_mtime_ns, status.st_size)


def _variables(spec: EngineSpec) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, **environment(spec), "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "NO_COLOR": "1"}


def _run(
    command: Sequence[str],
    variables: Mapping[str, str],
    timeout: float,
    cancelled: threading.Event,
    output: IO[bytes],
    keep: IO[bytes] | None,
) -> _Ended:
    """Run to its end, its time-out or until cancelled; its whole process group is gone afterwards."""
    try:
        process = subprocess.Popen(
            command,
            env=dict(variables),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=() if keep is None else (keep.fileno(),),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return _Ended(-1, f"{printable(command[0])} can not be run ({reason})")
    deadline = time.monotonic() + timeout
    reason = ""
    try:
        while not reason:
            try:
                process.wait(_STEP)
                break
            except subprocess.TimeoutExpired:
                if cancelled.is_set():
                    reason = "the question was called off"
                elif time.monotonic() >= deadline:
                    reason = f"it gave no answer within {timeout:.0f} seconds"
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return _Ended(process.returncode, reason)


def _document(answered: IO[bytes]) -> tuple[str, str] | None:
    answered.seek(0)
    try:
        document = json.loads(answered.read(_MAX_ANSWER))
        return document["reply"], " ".join(printable(document["text"]).split())
    except (ValueError, RecursionError, LookupError, TypeError):
        return None


def _without_answer(code: int | None, errors: IO[bytes]) -> str:
    errors.seek(max(errors.seek(0, os.SEEK_END) - 4096, 0))
    lines = [line.strip() for line in errors.read().decode("utf-8", "replace").splitlines() if line.strip()]
    last = f": {printable(lines[-1])[:300]}" if lines else ""
    return f"its Python ended with exit code {code} and gave no answer{last}"


def _compared(words: Sequence[str], options: set[str], engine: Installed | None) -> Answer:
    for word in words:
        if not word.startswith("--"):
            continue
        name = word.partition("=")[0].partition(".")[0].rstrip("+").replace("_", "-")
        # argparse takes any beginning that is no other option's.
        if not any(option.startswith(name) for option in options):
            return Answer(Reply.REFUSED, f"unrecognized arguments: {printable(word)}", engine, flags_only=True)
    return Answer(Reply.ACCEPTED, "", engine, flags_only=True)
