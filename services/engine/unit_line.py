"""A line of a unit with its reason."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnitLine:
    """One line of a unit, and what it is for (empty where the line says it itself)."""

    text: str
    why: str = ""
