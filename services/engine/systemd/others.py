"""Services that others wrote and that run vLLM: which engine each is called, and what it runs."""

from collections.abc import Collection

from gpudeck.services.adoption.on_box import Services, find_others
from gpudeck.services.plan.naming import name_for
from gpudeck.services.plan.secrets import without_secrets
from gpudeck.services.plan.types import EngineSpec


class Others:
    """Read anew by `read`; asked by any thread, since what was read is replaced and never changed."""

    def __init__(self) -> None:
        self._units: dict[str, str] = {}  # by engine name, those whose unit's name does not begin as gpudeck's do
        self._specs: dict[str, EngineSpec] = {}  # by unit

    def read(self, systemd: Services, prefix: str, ours: Collection[str]) -> bool:
        """Look through the services; True where other ones are known than before.  `ours` are names that are taken.

        A container's port belongs to its engine's daemon, so that its answer can not be told from another's: what it
        runs is left unknown here.
        """
        names: dict[str, str] = {}
        specs: dict[str, EngineSpec] = {}
        for found in find_others(systemd):
            unit = found.state.unit
            if found.adopted.container is None:
                specs[unit] = without_secrets(found.adopted.spec)
            if not unit.startswith(prefix):
                names[name_for(found.state.name, {*ours, *names})] = unit
        changed = names != self._units
        self._units, self._specs = names, specs
        return changed

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(self._units.values())

    def unit(self, name: str) -> str | None:
        return self._units.get(name)

    def name(self, unit: str) -> str:
        """The engine's name; "" for what is none of these."""
        return next((name for name, each in self._units.items() if each == unit), "")

    def spec(self, unit: str) -> EngineSpec | None:
        return self._specs.get(unit)
