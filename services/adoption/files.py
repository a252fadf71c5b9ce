"""Units on disk: a main file with its drop-ins, by path or by name."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from gpudeck.services.adoption.types import UnitFiles

_LARGEST = 1 << 20  # bytes; no unit comes near it


def read_text(path: str) -> str | None:
    """A file's text; None where there is none that can be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None


def unit_files(folders: Sequence[Path], unit: str) -> UnitFiles | None:
    """A unit in the first folder that has it, with the drop-ins of all; an instance has its template's file.

    Drop-ins come in the order of their names, of equal names the first folder's (systemd.unit(5)).
    """
    for name in _names(unit):
        for folder in folders:
            main = read_text(str(folder / name))
            if main is not None:
                drop_ins = dict(reversed([*_drop_ins(folders, unit)]))
                texts = [text for _, text in sorted(drop_ins.items())]
                return UnitFiles(unit, (main, *texts), str(folder / name))
    return None


def _names(unit: str) -> Iterator[str]:
    yield unit
    prefix, at, rest = unit.partition("@")
    if at and rest != ".service":
        yield f"{prefix}@.service"


def _drop_ins(folders: Sequence[Path], unit: str) -> Iterator[tuple[str, str]]:
    for name in _names(unit):
        for folder in folders:
            with suppress(OSError):
                for path in sorted((folder / f"{name}.d").glob("*.conf")):
                    text = read_text(str(path))
                    if text is not None:
                        yield path.name, text
