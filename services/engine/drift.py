"""Where a unit's file, what systemd loaded of it and what runs are not the same; pure but for what it is given."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from gpudeck.services.adoption.launch import find_launch
from gpudeck.services.plan.secrets import masked
from gpudeck.services.text import printable

PLACED = ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "VLLM_PP_LAYER_PARTITION")  # decide which cards run what
_SECRET_OPTIONS = ("--api-key", "--hf-token")
_TITLE = "VLLM::"  # vLLM wrote its own title over the command line
_BY_SYSTEMD = "INVOCATION_ID"  # systemd sets it for every service: where it is missing the environment was written over


class DriftKind(str, Enum):
    ON_DISK = "on disk"  # the file was changed since systemd loaded it (NeedDaemonReload)
    BY_HAND = "by hand"  # gpudeck wrote the file, and someone edited it
    RUNNING = "running"  # systemd loaded it, and the process still runs from what was loaded before


@dataclass(frozen=True, slots=True)
class Drift:
    """One such difference.  `before` and `after` are texts to be held against each other, equal where only lines
    differ that are not shown; they may hold foreign words, and no secrets.
    """

    kind: DriftKind
    before: str
    after: str

    @property
    def sentence(self) -> str:
        """What it is, and the way out."""
        match self.kind:
            case DriftKind.ON_DISK:
                return (
                    "Its file was changed since systemd loaded it: a start runs what was loaded, until systemd reads "
                    "its units anew."
                )
            case DriftKind.BY_HAND:
                return "It was edited by hand since gpudeck wrote it: that stays until you write over it."
            case DriftKind.RUNNING:
                return "It runs by another command than systemd has loaded: a restart would run what was loaded."

    @property
    def sides(self) -> tuple[str, str]:
        """What `before` and `after` are."""
        return {
            DriftKind.ON_DISK: ("loaded", "on disk"),
            DriftKind.BY_HAND: ("gpudeck's", "as it stands"),
            DriftKind.RUNNING: ("running", "loaded"),
        }[self.kind]


@dataclass(frozen=True, slots=True)
class Launched:
    """A command with its variables, as systemd holds it or as a process was started.

    A None environment can not be seen, or was written over.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str] | None

    @property
    def seen(self) -> bool:
        """Whether the command line is the one that it was started by."""
        return bool(self.words) and not self.words[0].startswith(_TITLE)

    def placed(self) -> dict[str, str]:
        there = self.environment or {}
        return {name: there[name] for name in PLACED if name in there}


def runs_otherwise(loaded: Launched, running: Launched) -> bool:
    """Whether what runs was started by another command, or on other cards, than systemd has loaded.

    False where that can not be told.  Compared are vLLM's own arguments, since a script or a shell may have started
    it by other words, and the variables that place it on cards.  Of other programs their words are compared where they
    have not become something else.
    """
    if running.seen and loaded.words:
        wanted, there = _arguments(loaded), _arguments(running)
        if wanted is not None and there is not None:
            if wanted != there:
                return True
        elif wanted is None and loaded.words[0] in running.words and not _same_tail(loaded.words, running.words):
            return True
    if running.environment is None or _BY_SYSTEMD not in running.environment:
        return False
    there_now = running.placed()
    return any(there_now.get(name) != value for name, value in loaded.placed().items())


def command_text(launched: Launched) -> str:
    """One variable and one option a line, so that a diff shows what differs; secrets are not repeated."""
    lines = [f"{name}={value}" for name, value in launched.placed().items()]
    hidden = False
    for word in launched.words:
        name, given, _value = word.partition("=")
        told = "***" if hidden else f"{name}=***" if name in _SECRET_OPTIONS and given else word
        hidden = word in _SECRET_OPTIONS
        if not lines or word.startswith("-") or lines[-1].partition("=")[0] in PLACED:
            lines.append(f"  {told}" if word.startswith("-") else told)
        else:
            lines[-1] += f" {told}"
    return "\n".join(lines)


def drift_diff(drift: Drift) -> str:
    """A unified diff in printable text; "" where nothing that is shown differs."""
    before, after = drift.before.splitlines(), drift.after.splitlines()
    lines = difflib.unified_diff(before, after, *drift.sides, lineterm="", n=2)
    return "\n".join(printable(line) for line in masked("\n".join(lines)).split("\n"))


def _arguments(launched: Launched) -> tuple[str, ...] | None:
    environment = launched.environment or {}
    # A script's process begins with its interpreter, which may be a shell.
    found = find_launch(launched.words, environment) or find_launch(launched.words[1:], environment)
    return found.arguments if found is not None else None


def _same_tail(wanted: Sequence[str], there: Sequence[str]) -> bool:
    """A script's interpreter stands before its own words."""
    tail = list(wanted[1:])
    return not tail or list(there[-len(tail) :]) == tail
