"""The services of this box that run vLLM and that gpudeck did not write."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from gpudeck.services.adoption.files import read_text, unit_files
from gpudeck.services.adoption.read import engine_name, read_unit
from gpudeck.services.adoption.types import Adopted, UnitFiles
from gpudeck.services.box.types import Box
from gpudeck.services.engine.systemd.files import unit_folder
from gpudeck.services.engine.types import Scope, UnitState
from gpudeck.services.engine.unit_text import spec_of

_WORD = "vllm"
_SYSTEM = ("/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
_USER = ("/etc/systemd/user", "/run/systemd/user", "/usr/local/lib/systemd/user", "/usr/lib/systemd/user")


class Services(Protocol):
    """What is asked of systemd."""

    scope: Scope

    def services(self) -> dict[str, str]: ...

    def service(self, unit: str, name: str) -> UnitState | None: ...


@dataclass(frozen=True, slots=True)
class Found:
    state: UnitState  # `spec` is what was read from the unit; `managed` stays False
    adopted: Adopted
    files: UnitFiles


def folders_of(scope: Scope) -> tuple[Path, ...]:
    """Where units of that scope lie, the administrator's first (systemd.unit(5), "Unit File Load Path")."""
    return (unit_folder(scope), *map(Path, _USER if scope is Scope.USER else _SYSTEM))


def find_others(systemd: Services, box: Box | None = None, folders: Sequence[Path] | None = None) -> list[Found]:
    """Each service whose command is vLLM and whose unit gpudeck did not write, by name.  Raises OperatorError."""
    found = []
    own = folders_of(systemd.scope) if folders is None else folders
    for unit, path in sorted((instances(own) | systemd.services()).items()):
        places = [*own, *([Path(path).parent] if path else [])]
        files = unit_files(places, unit)
        if files is None or not any(_WORD in text for text in files.texts) or spec_of(files.texts[0]) is not None:
            continue
        adopted = read_unit(files, read_text, box)
        state = systemd.service(unit, engine_name(unit)) if adopted is not None else None
        if adopted is not None and state is not None:
            found.append(Found(replace(state, spec=adopted.spec), adopted, files))
    return found


def instances(folders: Sequence[Path]) -> dict[str, str]:
    """Instances of templates that are set up and perhaps not loaded: enabled ones, and those with drop-ins."""
    names: set[str] = set()
    for folder in folders:
        with suppress(OSError):
            names |= {path.name.removesuffix(".d") for path in folder.glob("*@?*.service.d")}
            names |= {path.name for path in folder.glob("*.wants/*@?*.service")}
    return dict.fromkeys((name for name in names if "@." not in name), "")
