"""Reads what a unit's file says, what systemd loaded of it, and what runs, and holds them against each other."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from gpudeck.services.adoption import syntax
from gpudeck.services.adoption.files import read_text, unit_files
from gpudeck.services.adoption.on_box import folders_of
from gpudeck.services.engine.drift import Drift, DriftKind, Launched, command_text, runs_otherwise
from gpudeck.services.engine.systemd import files
from gpudeck.services.engine.systemd.installing import Installing
from gpudeck.services.engine.systemd.roster import Roster
from gpudeck.services.engine.systemd.units import Facts
from gpudeck.services.engine.unit_text import edited, spec_of
from gpudeck.services.errors import OperatorError

_PROC = Path("/proc")
_LITERAL = "no-env-expand"  # ExecStartEx's flag for a command that begins with a colon


class Drifting:
    def __init__(self, roster: Roster, installing: Installing) -> None:
        self._roster = roster
        self._installing = installing

    def of(self, name: str) -> tuple[Drift, ...]:
        """Every difference; blocks for a few calls and small files.  Raises OperatorError where systemd can not say."""
        unit = self._roster.unit(name)
        facts = self._roster.facts(unit)
        if facts["LoadState"] != "loaded":
            return ()
        found = (self._on_disk(unit, facts), self._by_hand(facts), _running(facts))
        return tuple(drift for drift in found if drift is not None)

    def _on_disk(self, unit: str, facts: Facts) -> Drift | None:
        if not facts.get("NeedDaemonReload") and not self._unseen_drop_in(unit, facts):
            return None
        return Drift(DriftKind.ON_DISK, command_text(_loaded(facts)), self._command_on_disk(unit))

    def _unseen_drop_in(self, unit: str, facts: Facts) -> bool:
        """Whether there is a drop-in that systemd has not loaded.

        Of one in a folder that is new since the last reload NeedDaemonReload says nothing (seen with 252).
        """
        loaded = {os.path.basename(path) for path in facts.get("DropInPaths", ())}  # noqa: PTH119
        folders = folders_of(self._roster.scope)
        return any(path.name not in loaded for folder in folders for path in (folder / f"{unit}.d").glob("*.conf"))

    def _command_on_disk(self, unit: str) -> str:
        standing = unit_files(folders_of(self._roster.scope), unit)
        if standing is None:
            return ""
        service = syntax.service_section(standing.texts)
        variables = syntax.assignments(service.get("Environment", ()), unit)
        commands = service.get("ExecStart", ())
        from_files: dict[str, str] = {}
        for value in service.get("EnvironmentFile", ()):
            text = read_text(syntax.specified(value.removeprefix("-"), unit))
            from_files |= syntax.environment_file(text) if text is not None else {}
        words = syntax.command_words(commands[-1], unit, {**variables, **from_files}) if commands else []
        return command_text(Launched(tuple(words), variables))

    def _by_hand(self, facts: Facts) -> Drift | None:
        text = files.read(facts["FragmentPath"]) if facts.get("FragmentPath") else None
        if text is None or not edited(text):
            return None
        ours = ""
        spec = spec_of(text)
        with suppress(OperatorError):  # its program may be gone: then there is nothing to hold it against
            ours = self._installing.preview(spec).text if spec is not None else ""
        return Drift(DriftKind.BY_HAND, ours or text, text)


def _running(facts: Facts) -> Drift | None:
    pid = facts.get("MainPID")
    running = _process(pid) if pid and facts["ActiveState"] == "active" else None
    if running is None:
        return None
    loaded = _loaded(facts)
    if not runs_otherwise(loaded, running):
        return None
    return Drift(DriftKind.RUNNING, command_text(running), command_text(loaded))


def _loaded(facts: Facts) -> Launched:
    environment = dict(_pair(text) for text in facts.get("Environment", ()))
    commands = facts.get("ExecStartEx") or facts.get("ExecStart") or ()
    if not commands:
        return Launched((), environment)
    words, flags = list(commands[-1][1]), commands[-1][2]
    if not (isinstance(flags, (list, tuple)) and _LITERAL in flags):
        variables = {**environment, **_from_files(facts)}
        words = [part for word in words for part in syntax.expanded(word, variables)]
    return Launched(tuple(words), environment)


def _from_files(facts: Facts) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for path, _may_be_missing in facts.get("EnvironmentFiles", ()):
        text = read_text(path)
        found |= syntax.environment_file(text) if text is not None else {}
    return found


def _process(pid: int) -> Launched | None:
    """How a process was started; None where it is gone or may not be seen."""
    words = _split(_PROC / str(pid) / "cmdline")
    if not words:
        return None
    variables = _split(_PROC / str(pid) / "environ")
    return Launched(tuple(words), dict(_pair(text) for text in variables) if variables is not None else None)


def _split(path: Path) -> list[str] | None:
    try:
        return [os.fsdecode(word) for word in path.read_bytes().rstrip(b"\0").split(b"\0")]
    except OSError:
        return None


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value
