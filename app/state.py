"""What the panel knows, as one immutable value, and the pure steps from one to the next."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpudeck.app.drafts import Draft, Drafts
from gpudeck.app.grounds import Grounds
from gpudeck.app.programs import EngineProgram
from gpudeck.services.box.types import MIB, Box, BoxEvent, Snapshot
from gpudeck.services.engine.draining import InFlight
from gpudeck.services.engine.drift import Drift
from gpudeck.services.engine.ending import how_it_ended
from gpudeck.services.engine.phases import Phase, Standing
from gpudeck.services.engine.starts.kept import Kept
from gpudeck.services.engine.starts.standstill import Check
from gpudeck.services.engine.types import UnitState
from gpudeck.services.host.types import HostReading
from gpudeck.services.metrics.types import EngineRates
from gpudeck.services.plan.findings import Judgement, VerdictState
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.plan.what_if import Addition, with_additions

if TYPE_CHECKING:
    from gpudeck.services.adoption.on_runner import Reviewed  # more than the first frame needs

# Memory in use moves by a few MiB all the time; the verdict should not flicker with it.
_USED_STEP = 64 * MIB


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """One engine: what its runner says, and what its log and its port say."""

    unit: UnitState
    standing: Standing = field(default_factory=Standing)  # how far its start is, by its log
    ready: bool = False
    served: tuple[str, ...] = ()  # model names that /v1/models lists
    colour: int = 0  # which of the engines' colours is its own
    busy: str | None = None  # what the panel is doing to it: "stopping"
    kept: Kept = field(default_factory=Kept)  # of its earlier starts
    left: str = ""  # "about 40 s left", by those
    still: str = ""  # "nothing has moved for 3 min"
    checks: tuple[Check, ...] = ()  # what was looked at since
    rates: EngineRates | None = None  # its own counts, while it serves and is looked at
    uncounted: str = ""  # why there are none
    in_flight: InFlight | None = None  # requests, while it is being drained
    drift: tuple[Drift, ...] = ()  # how far its unit is from what is loaded, written and run
    reviewed: "Reviewed | None" = None  # what is wrong with its unit, where gpudeck did not write that

    @property
    def why(self) -> str:
        """Why it does not run, by its log and else by its runner; "" where nothing is wrong.  Foreign text."""
        if self.word not in ("failed", "restarting", "stopped"):
            return ""
        return self.standing.decisive_line or (how_it_ended(self.unit) if self.word != "stopped" else "")

    @property
    def word(self) -> str:
        """The one word for its state, the same everywhere."""
        if self.busy:
            return self.busy
        if self.unit.active == "failed":
            return "failed"
        if self.unit.active == "deactivating":
            return "stopping"
        if self.unit.active in ("active", "reloading"):
            return "ready" if self.ready else "starting"
        if self.unit.active == "activating":
            return "restarting" if self.unit.sub.startswith("auto-restart") else "starting"
        return "stopped"


@dataclass(frozen=True, slots=True)
class DeckState:
    """Everything that the screen shows."""

    program: EngineProgram
    snapshot: Snapshot | None = None
    trouble: str | None = None  # why there are no readings, in one sentence
    drafts: Drafts = field(default_factory=Drafts)
    judgement: Judgement = field(default_factory=Judgement)  # on the plan on the board
    verdicts: Mapping[int, VerdictState] = field(default_factory=dict)  # on the other plans, by their keys
    grounds: Grounds = field(default_factory=Grounds)  # what verdicts rest on beside box, model and plan
    additions: tuple[Addition, ...] = ()  # what the box does not have and the plans count with: what if
    engines: Mapping[str, EngineInfo] = field(default_factory=dict)
    selected: str | None = None
    chat_url: str = ""  # a server elsewhere that is talked to; "" for the engine that is selected
    host: HostReading | None = None  # the machine around the cards, while it is looked at
    runner: str = "looking for systemd"
    runner_trouble: str | None = None
    refusal: str = ""  # why the last act on an engine was refused, until the next act

    @property
    def box(self) -> Box | None:
        return self.snapshot.box if self.snapshot else None

    @property
    def events(self) -> tuple[BoxEvent, ...]:
        return self.snapshot.events if self.snapshot else ()

    @property
    def plan_box(self) -> Box | None:
        """The box that is planned for: with the cards and bridges that were added to see what they would change."""
        return with_additions(self.box, self.additions) if self.box is not None and self.additions else self.box

    @property
    def draft(self) -> Draft:
        """The plan on the board."""
        return self.drafts.present

    @property
    def engine(self) -> EngineInfo | None:
        """The engine that log and chat belong to."""
        return self.engines.get(self.selected) if self.selected else None

    def has_run(self, name: str) -> bool:
        """Whether an engine of that name has answered since the panel was opened."""
        info = self.engines.get(name)
        return info is not None and (info.ready or any(phase is Phase.READY for phase, _ in info.standing.entered))

    def ports_of_others(self, name: str) -> dict[int, str]:
        """Which ports engines and plans other than the one of that name listen on, and whose they are."""
        running = {
            info.unit.spec.options.port: other
            for other, info in self.engines.items()
            if other != name and info.unit.spec is not None
        }
        planned = {draft.options.port: draft.name for draft in self.drafts.others if draft.name not in ("", name)}
        return planned | running

    def neighbours(self, draft: Draft) -> tuple[EngineSpec, ...]:
        """What runs or is planned beside a plan: an engine that is planned anew stands there as it is planned."""
        specs = {
            name: info.unit.spec
            for name, info in self.engines.items()
            if info.unit.alive and info.unit.spec is not None and name != draft.name
        }
        for other in self.drafts.all:
            if other.key != draft.key and other.placement.gpus and other.name not in ("", draft.name):
                specs[other.name] = other.spec(self.program)
        return tuple(specs.values())

    def holders(self, draft: Draft) -> dict[int, tuple[str, ...]]:
        """Which engines and plans other than this one use each card."""
        held: dict[int, tuple[str, ...]] = {}
        for spec in self.neighbours(draft):
            for gpu in dict.fromkeys(spec.placement.gpus):
                held[gpu] = (*held.get(gpu, ()), spec.name)
        return held

    def used(self, draft: Draft | None = None) -> dict[int, int]:
        """Bytes in use on each card by others than the drafted engine itself, in steps that do not flicker."""
        if self.snapshot is None:
            return {}
        own = (self.draft if draft is None else draft).name
        return {
            reading.gpu: max(
                0,
                (reading.memory_used_bytes or 0)
                - sum(process.memory_bytes or 0 for process in reading.processes if own and process.engine == own),
            )
            // _USED_STEP
            * _USED_STEP
            for reading in self.snapshot.readings
        }


def with_units(state: DeckState, units: tuple[UnitState, ...]) -> DeckState:
    """The engines are exactly these; what was known of those that stay is kept."""
    names = {unit.name for unit in units}
    staying = {name: info for name, info in state.engines.items() if name in names}
    engines: dict[str, EngineInfo] = {}
    for unit in units:
        engines[unit.name] = _with_unit(staying.get(unit.name), unit, _free_colour({**staying, **engines}))
    return _reselected(replace(state, engines=engines))


def with_unit(state: DeckState, unit: UnitState) -> DeckState:
    """One engine's unit changed, or is gone."""
    if unit.gone:
        return without_engine(state, unit.name)
    engines = dict(state.engines)
    if unit.active == "inactive" and not unit.managed and unit.name not in engines:
        return state
    engines[unit.name] = _with_unit(engines.get(unit.name), unit, _free_colour(engines))
    return _reselected(replace(state, engines=engines))


def without_engine(state: DeckState, name: str) -> DeckState:
    return _reselected(replace(state, engines={key: value for key, value in state.engines.items() if key != name}))


def with_engine(state: DeckState, name: str, **changes: object) -> DeckState:
    """Change fields of one engine's info; nothing happens where there is no such engine."""
    if name not in state.engines:
        return state
    return replace(state, engines={**state.engines, name: replace(state.engines[name], **changes)})  # type: ignore[arg-type]


def _free_colour(engines: Mapping[str, EngineInfo]) -> int:
    """The first that no engine has; an engine keeps its own as long as it is there."""
    taken = {info.colour for info in engines.values()}
    return next(number for number in range(len(taken) + 1) if number not in taken)


def _with_unit(before: EngineInfo | None, unit: UnitState, colour: int) -> EngineInfo:
    if before is None:
        return EngineInfo(unit, colour=colour)
    if before.unit.main_pid != unit.main_pid and unit.main_pid is not None:
        # Another process: what the log and the port said belongs to the one before.
        return EngineInfo(
            unit,
            colour=before.colour,
            busy=before.busy,
            kept=before.kept,
            drift=before.drift,
            reviewed=before.reviewed,
        )
    if not unit.runs or (unit.main_pid is None and before.unit.main_pid is not None):
        # Its process is gone, also where systemd will start the next: nobody answers meanwhile.
        return replace(before, unit=unit, ready=False, served=(), rates=None, uncounted="")
    return replace(before, unit=unit)


def _reselected(state: DeckState) -> DeckState:
    """Keep an engine selected while there is one."""
    if state.selected in state.engines:
        return state
    alive = [name for name, info in state.engines.items() if info.unit.alive]
    return replace(state, selected=next(iter([*alive, *state.engines]), None))
