"""What works on this machine and what does not: one check a part that gpudeck leans on."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from gpudeck.services.box.types import BoxSource
from gpudeck.services.engine.types import Scope
from gpudeck.services.errors import OperatorError


class Health(str, Enum):
    FINE = "ok"
    LESS = "less"  # gpudeck works, with something missing
    MISSING = "missing"  # something needed is not there


@dataclass(frozen=True, slots=True)
class Check:
    """One part: how it is, and in one sentence what that means and what to do."""

    part: str
    health: Health
    says: str


def examine(source: BoxSource, *, demo: bool, unicode: bool) -> tuple[Check, ...]:
    """Every check, in the order in which an operator would mend things."""
    return (
        _told("driver", lambda: _driver(source), lacking=Health.MISSING),
        _told("engine runner", lambda: _runner(demo=demo), lacking=Health.MISSING),
        _told("journal", _journal, lacking=Health.LESS),
        _told("vLLM", lambda: _vllm(demo=demo), lacking=Health.MISSING),
        _terminal(unicode=unicode),
    )


def _told(part: str, check: Callable[[], Check], *, lacking: Health) -> Check:
    try:
        return check()
    except OperatorError as error:
        return Check(part, lacking, str(error))


def _driver(source: BoxSource) -> Check:
    box = source.open()
    source.close()
    cards = f"{len(box.gpus)} card{'' if len(box.gpus) == 1 else 's'}"
    return Check("driver", Health.FINE, f"{cards}, driver {box.driver or 'unknown'}, CUDA {box.cuda or 'unknown'}.")


def _runner(*, demo: bool) -> Check:
    from gpudeck.services.engine.choose import open_runner

    runner = open_runner(demo=demo)
    try:
        engines = len(runner.engines())
    finally:
        runner.close()
    health = Health.LESS if runner.scope is Scope.EMBEDDED else Health.FINE
    counted = f"{engines} engine{'' if engines == 1 else 's'}"
    return Check("engine runner", health, f"{runner.description.rstrip('.')}; {counted}.")


def _journal() -> Check:
    """Whether the system's journal can be read: journalctl says on standard error what is hidden from a plain user."""
    if shutil.which("journalctl") is None:
        return Check("journal", Health.LESS, "There is no journalctl: engines log to files of gpudeck's own.")
    try:
        asked = subprocess.run(
            ["journalctl", "-n", "1", "-o", "cat", "--no-pager"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("journal", Health.LESS, f"journalctl does not answer ({error}).")
    if "systemd-journal" in asked.stderr or asked.returncode:
        return Check(
            "journal",
            Health.LESS,
            "Only your own units' logs can be read: join the group systemd-journal and log in again to see the rest.",
        )
    return Check("journal", Health.FINE, "The journal can be read.")


def _vllm(*, demo: bool) -> Check:
    if demo:
        return Check("vLLM", Health.FINE, "The demo runs a simulated engine.")
    from gpudeck.services.engine.program import find_vllm

    found = find_vllm()
    if found is None:
        raise OperatorError("No vllm was found: put it on PATH, or name it in GPUDECK_VLLM.")
    return Check("vLLM", Health.FINE, f"{' '.join(found)} will run new engines.")


def _terminal(*, unicode: bool) -> Check:
    term = os.environ.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        return Check("terminal", Health.LESS, f"TERM={term} can not show the panel; the commands work.")
    if not unicode:
        return Check(
            "terminal", Health.LESS, "The locale is not UTF-8, so the panel is drawn in ASCII: set LANG=C.UTF-8."
        )
    return Check("terminal", Health.FINE, f"{term}, UTF-8.")
