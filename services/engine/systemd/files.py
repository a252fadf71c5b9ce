"""Unit files: where they lie, who wrote them, and how they are written whole or not at all."""

import contextlib
import os
import tempfile
from pathlib import Path

from gpudeck.services.engine.types import Scope
from gpudeck.services.engine.unit_text import spec_of
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.types import EngineSpec

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
    """Tells which unit files gpudeck wrote, and from what; reads each only when it has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int, int], EngineSpec | None]] = {}

    def spec(self, path: str, name: str) -> EngineSpec | None:
        """What gpudeck made the file from; None where it did not write it, or wrote it for another engine."""
        if not path:
            return None
        try:
            status = os.stat(path)  # noqa: PTH116, as above
        except OSError:
            self._known.pop(path, None)
            return None
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        known = self._known.get(path)
        if known is None or known[0] != version:
            known = self._known[path] = (version, spec_of(read(path) or ""))
        spec = known[1]
        return spec if spec is not None and spec.name == name else None


def write(path: Path, text: str) -> None:
    """Write a unit file whole or not at all, readable by everyone.  Raises OperatorError."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # systemd looks at names that end in a unit type only.
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(descriptor, 0o644)
            os.fsync(descriptor)
        os.replace(temporary, path)  # noqa: PTH105
        temporary = None
        _sync_folder(path.parent)
    except OSError as error:
        raise OperatorError(_unwritable(path, error)) from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108


def delete(path: Path) -> None:
    """Raises OperatorError."""
    try:
        path.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except OSError as error:
        raise OperatorError(_unwritable(path, error)) from None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> str:
    way_out = "run gpudeck as root" if isinstance(error, PermissionError) else "nothing was changed"
    return f"{path} can not be written ({error.strerror}): {way_out}."
