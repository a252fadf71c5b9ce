"""Unit files: where they lie, who wrote them, and how they are written whole or not at all."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from gpudeck.services.adoption.files import read_text
from gpudeck.services.adoption.read import read_unit
from gpudeck.services.adoption.types import UnitFiles
from gpudeck.services.engine.types import Scope
from gpudeck.services.engine.unit_text import edited, spec_of
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.whole_file import sync_folder, write_whole

_Version: TypeAlias = tuple[int, int, int]  # when it was changed, its size, its inode
_LARGEST = 1 << 20  # no unit comes near it; a device or a wrong file must not be read for ever


def unit_folder(scope: Scope) -> Path:
    """Where an administrator's units lie: systemd.unit(5), "Unit File Load Path"."""
    return Path("/etc/systemd/system") if scope is Scope.SYSTEM else _config_home() / "systemd" / "user"


def secrets_file(scope: Scope, unit: str) -> Path:
    """The file of variables that only the engine may read."""
    folder = Path("/etc") if scope is Scope.SYSTEM else _config_home()
    return folder / "gpudeck" / f"{unit.removesuffix('.service')}.env"


def _config_home() -> Path:
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(configured) if configured.startswith("/") else Path.home() / ".config"


def read(path: str | Path) -> str | None:
    """A unit file's text; None where there is none, or none that can be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123, a str must not cost a Path on every signal
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return None


class Authors:
    """Tells which unit files gpudeck wrote, and what they run; reads each only when it has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[_Version, ...], EngineSpec | None]] = {}

    def spec(self, path: str, name: str, drop_ins: Sequence[str] = ()) -> EngineSpec | None:
        """What the unit runs; None where gpudeck did not write the file, or wrote it for another engine.

        That is what gpudeck made it from, but for what was edited by hand and for what drop-ins change.
        """
        if not path:
            return None
        try:
            version = (_version(path), *(_version(each) for each in drop_ins if os.path.exists(each)))  # noqa: PTH110
        except OSError:
            self._known.pop(path, None)
            return None
        known = self._known.get(path)
        if known is None or known[0] != version:
            known = self._known[path] = (version, _as_it_stands(path, drop_ins))
        spec = known[1]
        return spec if spec is not None and spec.name == name else None


def _version(path: str) -> _Version:
    status = os.stat(path)  # noqa: PTH116, a str must not cost a Path on every signal
    return status.st_mtime_ns, status.st_size, status.st_ino


def _as_it_stands(path: str, drop_ins: Sequence[str]) -> EngineSpec | None:
    text = read(path) or ""
    spec = spec_of(text)
    if spec is None or not (drop_ins or edited(text)):
        return spec
    texts = (text, *(read(each) or "" for each in drop_ins))
    found = read_unit(UnitFiles(os.path.basename(path), texts, path), read_text)  # noqa: PTH119
    if found is None:
        return spec
    there = found.spec
    return replace(
        spec,
        model=there.model,
        placement=there.placement,
        options=there.options,
        layer_partition=there.layer_partition,
    )


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file whole or not at all; a unit is for everyone to read.  Raises OperatorError.

    From its first byte on it can be read by no one whom `mode` does not let.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # What is half written has a name that systemd does not look at, since it ends in no unit type.
        write_whole(path, text.encode(), mode=mode)
    except OSError as error:
        raise OperatorError(_unwritable(path, error)) from None


def delete(path: Path) -> None:
    """Raises OperatorError."""
    try:
        path.unlink()
        sync_folder(path.parent)
    except FileNotFoundError:
        return
    except OSError as error:
        raise OperatorError(_unwritable(path, error)) from None


def _unwritable(path: Path, error: OSError) -> str:
    way_out = "run gpudeck as root" if isinstance(error, PermissionError) else "nothing was changed"
    return f"{path} can not be written ({error.strerror}): {way_out}."
