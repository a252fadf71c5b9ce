"""An act that is cut short at each of its file calls in turn.

`sweep(scenario, folder)` runs a program under the shim (src/shim.c) that for the first, second, third … call makes the
old state, forks, has the child act and be killed there, and then looks at what stands.
"""

import ctypes
import hashlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from gpudeck.services.errors import OperatorError

_SOURCE = Path(__file__).parent / "src" / "shim.c"
_FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
_ALL, _REFUSED, _BROKEN = 0, 3, 4  # how a child ended
_MOST = 1000  # calls in one act


class Scenario(Protocol):
    """An act on files below `folder`; each method is called in a process of its own."""

    in_programs: bool  # cut short are programs that the act starts, and not who acts
    under: Path | None  # the calls that count are there, and not below the scenario's folder

    def before(self, folder: Path) -> None:
        """Make the old state."""

    def act(self, folder: Path) -> None: ...

    def check(self, folder: Path, *, whole: bool) -> None:
        """Assert what stands after the act was cut short, or (`whole`) came to its end."""

    def again(self, folder: Path) -> None:
        """Act again after that, and assert that the new state stands and nothing else is left."""


def shim() -> Path:
    """The compiled shim."""
    mark = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpudeck-tests"
    library = cache / f"filefaults-{mark}.so"
    if not library.exists():
        cache.mkdir(parents=True, exist_ok=True)
        new = library.with_suffix(f".{os.getpid()}")
        subprocess.run(["gcc", *_FLAGS, "-o", new, _SOURCE], check=True)
        new.replace(library)
    return library


def sweep(scenario: str, folder: Path, error: int = 0) -> int:
    """Cut the scenario ("module:Class") short at each call: by kill -9, or by this errno.  Returns how many there are.

    Raises AssertionError with what was seen at which call.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.rigs.filefaults.sweep", scenario, str(folder), str(error), str(shim())],
        env={**os.environ, "LD_PRELOAD": str(shim()), "XDG_STATE_HOME": str(folder / "xdg")},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr[-4000:] + done.stdout[-2000:]
    return int(json.loads(done.stdout.splitlines()[-1])["calls"])


def main(name: str, folder: str, error: str, library: str) -> None:
    module, _, kind = name.partition(":")
    scenario: Scenario = getattr(importlib.import_module(module), kind)()
    faults = ctypes.CDLL(library)
    faults.file_faults_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_long]
    for call in range(_MOST):
        place = Path(folder) / f"{kind}-{call}"
        place.mkdir(parents=True)
        under = scenario.under or place
        _child(lambda place=place: scenario.before(place))  # type: ignore[misc]

        def act(place: Path = place, call: int = call, under: Path = under) -> None:
            if scenario.in_programs:
                os.environ["GPUDECK_FILE_FAULTS"] = f"{under}:{call}:{error}"
            else:
                faults.file_faults_arm(os.fsencode(under), call, int(error))
            scenario.act(place)

        _child(act, may_be_cut=True)
        met = under.with_name(f"{under.name}.met")
        whole = not met.exists()
        met.unlink(missing_ok=True)
        where = f"{name}, call {call}"
        _child(lambda place=place, whole=whole: scenario.check(place, whole=whole), where)  # type: ignore[misc]
        _child(lambda place=place: scenario.again(place), f"{where}, again")  # type: ignore[misc]
        shutil.rmtree(place)
        if whole:
            print(json.dumps({"calls": call}))
            return
    raise SystemExit(f"{name} has more than {_MOST} calls")


def _child(what: Callable[[], None], where: str = "", *, may_be_cut: bool = False) -> None:
    """Call `what` in a process of its own; ends the program with its traceback where it raises."""
    pid = os.fork()
    if pid == 0:
        code = _BROKEN
        try:
            what()
            code = _ALL
        except OperatorError as refused:
            code = _REFUSED
            if not may_be_cut:
                print(f"{where}: {refused}", file=sys.stderr)
        except BaseException:  # noqa: BLE001 (it must not go on as the parent does)
            print(where, traceback.format_exc(), file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code != _ALL and not (may_be_cut and code in (_REFUSED, -signal.SIGKILL)):
        raise SystemExit(f"{where} ended with {code}")


if __name__ == "__main__":
    main(*sys.argv[1:])
