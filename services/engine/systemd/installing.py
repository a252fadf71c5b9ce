"""Units written, shown before that, and removed again."""

import os
import re
import shutil
from pathlib import Path

from gpudeck.services.engine import secrets_file
from gpudeck.services.engine.account import check_account
from gpudeck.services.engine.systemd import files
from gpudeck.services.engine.systemd.bus import Bus
from gpudeck.services.engine.systemd.connection import CALL_SECONDS, Connection
from gpudeck.services.engine.systemd.errors import JobFailedError, NoRightsError, NoUnitError, UnitTakenError
from gpudeck.services.engine.systemd.orders import Orders
from gpudeck.services.engine.systemd.outcome import why_not_loaded
from gpudeck.services.engine.systemd.roster import Roster
from gpudeck.services.engine.systemd.scheduling import Scheduling
from gpudeck.services.engine.types import Scope, UnitPreview, refuse_other_than
from gpudeck.services.engine.unit_text import edited, text_of, unit_lines
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.command import argv, environment
from gpudeck.services.plan.naming import checked_name
from gpudeck.services.plan.secrets import Secrets
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.text import printable


class Installing:
    def __init__(self, bus: Bus, roster: Roster, orders: Orders, scheduling: Scheduling) -> None:
        self._bus = bus
        self._roster = roster
        self._orders = orders
        self._scheduling = scheduling

    def preview(self, spec: EngineSpec) -> UnitPreview:
        unit = self._roster.unit(checked_name(spec.name))
        scope = self._roster.scope
        path = files.unit_folder(scope) / unit
        keys = str(files.secrets_file(scope, unit))
        lines = unit_lines(
            spec,
            argv=_absolute(argv(spec)),
            environment=environment(spec),
            scope=scope,
            secrets_file=keys,
            systemd_version=self._version(),
        )
        text, reasons = text_of(lines), tuple(line.why for line in lines)
        facts = self._roster.facts(unit)
        if facts["LoadState"] == "masked":
            raise UnitTakenError(why_not_loaded(unit, facts, scope) or "")
        standing = str(path) if path.is_symlink() or path.exists() else facts["FragmentPath"]
        if not standing or self._half_removed(path, facts["FragmentPath"]):
            return UnitPreview(str(path), text, reasons=reasons, secrets_file=keys)
        written_here = self._roster.authors.spec(standing, spec.name) is not None
        ours = standing == str(path) and not path.is_symlink() and written_here
        existing = files.read(standing) or ""
        return UnitPreview(standing, text, existing, ours, edited=edited(existing), reasons=reasons, secrets_file=keys)

    def install(self, spec: EngineSpec, *, enable: bool, secrets: Secrets, shown: UnitPreview | None) -> None:
        unit = self._roster.unit(spec.name)
        preview = self.preview(spec)
        if not preview.managed:
            raise UnitTakenError(
                f"{unit} is there already and was not written by gpudeck ({preview.path}): "
                "give the engine another name, or remove that unit."
            )
        refuse_other_than(shown, preview)
        if spec.user and self._roster.scope is Scope.SYSTEM:
            check_account(spec.user, program=_absolute(argv(spec))[0], model=spec.model)
        if secrets:
            self._write_secrets(unit, secrets)
        if not preview.unchanged:
            self._write_unit(unit, preview)
        if enable:
            self._orders.enable(unit)
        self._orders.reload()
        trouble = why_not_loaded(unit, self._roster.facts(unit), self._roster.scope)
        if trouble:
            raise JobFailedError(trouble)

    def remove(self, name: str) -> None:
        unit = self._roster.unit(name)
        path = files.unit_folder(self._roster.scope) / unit
        facts = self._roster.facts(unit)
        ours = self._roster.authors.spec(str(path), name) is not None
        if not ours and not self._half_removed(path, facts["FragmentPath"]):
            if not path.exists() and facts["LoadState"] == "not-found":
                raise NoUnitError(f"There is no {unit}: nothing was removed.")
            raise UnitTakenError(f"{unit} was not written by gpudeck: remove it by hand.")
        if not os.access(path.parent, os.W_OK):
            # Told before the engine is stopped, which polkit may allow.
            raise NoRightsError(f"You may not remove {path}: run gpudeck as root.")
        self._scheduling.clear(unit)
        self._orders.stop(unit)
        self._orders.disable(unit)
        # The key goes first: without its unit nobody would look for it again, were this broken off in between.
        files.delete(files.secrets_file(self._roster.scope, unit))
        files.delete(path)
        self._orders.reload()
        self._orders.reset(unit)

    @staticmethod
    def _half_removed(path: Path, fragment: str) -> bool:
        """Whether its file is gone and systemd has not been told yet, as when a removal was broken off."""
        return fragment == str(path) and not path.is_symlink() and not path.exists()

    def keep_secrets(self, name: str, secrets: Secrets) -> None:
        unit = self._roster.unit(name)
        if self._roster.authors.spec(str(files.unit_folder(self._roster.scope) / unit), name) is None:
            raise UnitTakenError(f"{unit} was not written by gpudeck, and reads no key file of gpudeck's.")
        self._write_secrets(unit, secrets)

    def _write_unit(self, unit: str, preview: UnitPreview) -> None:
        try:
            files.write(Path(preview.path), preview.text)
        except OperatorError:
            if preview.existing is None:
                # A key without an engine is not left behind.
                files.delete(files.secrets_file(self._roster.scope, unit))
            raise

    def _write_secrets(self, unit: str, secrets: Secrets) -> None:
        path = files.secrets_file(self._roster.scope, unit)
        text = secrets_file.changed_text(path, secrets)
        if text is None:
            files.delete(path)
        else:
            files.write(path, text, secrets_file.MODE)

    def _version(self) -> int:
        def ask(connection: Connection) -> str:
            properties = connection.properties("/org/freedesktop/systemd1")
            return str(properties.Get("org.freedesktop.systemd1.Manager", "Version", timeout=CALL_SECONDS))

        # The string is the distribution's, such as 252.38-1~deb12u1.
        first = re.search(r"\d+", self._bus.ask("tell its version", ask))
        return int(first.group()) if first else 0


def _absolute(words: tuple[str, ...]) -> tuple[str, ...]:
    """The command with its program found: systemd has no PATH of ours, and gpudeck's may be gone tomorrow."""
    found = shutil.which(words[0])
    if found is None:
        raise OperatorError(
            f"The program {printable(words[0])} is not found or can not be executed: "
            "activate the environment that vLLM is in, or give the program's full path."
        )
    return (str(Path(found).absolute()), *words[1:])
