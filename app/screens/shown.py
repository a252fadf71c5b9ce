"""What of the state each part of the screen shows, in words; pure."""

from dataclasses import replace

from gpudeck.app.failures import failure_of
from gpudeck.app.state import DeckState, EngineInfo
from gpudeck.services.engine.draining import in_flight_words
from gpudeck.services.engine.drift import DriftKind
from gpudeck.services.engine.starts.times import seconds_words, times_words
from gpudeck.services.memory.settings import settings_for
from gpudeck.services.memory.token import token_arithmetic
from gpudeck.services.text import printable
from gpudeck.widgets.engine_list import EngineView, state_sign
from gpudeck.widgets.engine_metrics import MetricsView
from gpudeck.widgets.failure_card import FailureView
from gpudeck.widgets.glyphs import Glyphs, gib, joined
from gpudeck.widgets.plan_strip import PlanView
from gpudeck.widgets.verdict import counted, verdict_words


def plan_title(state: DeckState, glyphs: Glyphs) -> str:
    """`Board  chat · gemma-3-12b-it`: the engine's name and its model's, once where they are the same."""
    draft = state.draft
    model = draft.model.name if draft.model else ""
    names = dict.fromkeys(printable(name) for name in (draft.name, model))
    first = "cautious options" if model and draft.cautious else ""
    what_if = "what if" if state.additions else ""
    return f"Board  {joined((what_if, *(names if model else ('no model yet',)), first), glyphs.dot)}"


def next_step(state: DeckState) -> str:
    """What to do while nothing stands on the board."""
    if state.draft.model is None:
        return "Choose a model: m. Then p proposes a placement, or you drag cards into stages yourself."
    return "Lift a card with Space or the mouse and drop it on a stage; p proposes a placement."


def plan_words(state: DeckState, glyphs: Glyphs) -> str:
    """The verdict in a line, "plan ▲ caution, 2 warnings", or the next step where nothing is planned."""
    if not state.draft.placement.gpus:
        return next_step(state)
    words, _style = verdict_words(state.judgement, glyphs)
    count = counted(state.judgement)
    return f"plan {words}, {count}" if count else f"plan {words}"


def engine_words(state: DeckState, glyphs: Glyphs) -> str:
    """The selected engine in a line, "◐ gemma starting · loading weights"; empty where there is none."""
    if state.engine is None:
        return ""
    view = engine_view(state.engine)
    phase = f"{view.phase} {view.progress_percent:.0f} %" if view.progress_percent is not None else view.phase
    return joined((f"{state_sign(view.state, glyphs)} {printable(view.name)} {view.state}", phase), glyphs.dot)


def occupants(state: DeckState) -> dict[int, str]:
    """Who else holds memory on each card, `coder 13.9 GiB`, or plans on it, `coder (plan)`.

    The drafted engine's own processes do not count.
    """
    held: dict[int, str] = {}
    own, holders = state.draft.name, state.holders(state.draft)
    for reading in state.snapshot.readings if state.snapshot else ():
        others = [process for process in reading.processes if not own or process.engine != own]
        names = dict.fromkeys(process.engine or process.name for process in others)
        size = sum(process.memory_bytes or 0 for process in others)
        words = [f"{', '.join(names)} {gib(size)} GiB"] if others else []
        words += [f"{name} (plan)" for name in holders.get(reading.gpu, ()) if name not in names]
        if words:
            held[reading.gpu] = ", ".join(words)
    return held


def token_words(state: DeckState, glyphs: Glyphs) -> str:
    """What a token takes in the plan's KV cache, written out; "" where nothing is planned."""
    draft, box = state.draft, state.plan_box
    if draft.model is None or box is None or not draft.placement.gpus:
        return ""
    settings = settings_for(draft.model, draft.spec(state.program), box.gpu(draft.placement.gpus[0]))
    return token_arithmetic(draft.model, settings, glyphs.times)


def plan_views(state: DeckState) -> tuple[PlanView, ...]:
    """The plans as the strip shows them."""
    return tuple(
        PlanView(
            draft.name,
            (state.judgement.state if draft is state.draft else state.verdicts.get(draft.key))
            if draft.placement.gpus
            else None,
            draft.placement.gpus,
        )
        for draft in state.drafts.all
    )


def engine_colours(state: DeckState) -> dict[str, int]:
    """Each engine's own colour, by its name; none while there is one engine only, since nothing is told apart then."""
    return {name: info.colour for name, info in state.engines.items()} if len(state.engines) > 1 else {}


def engine_views(state: DeckState) -> tuple[EngineView, ...]:
    """The engines as the list shows them; of one that failed, what that means on this box and the way out."""
    colours = engine_colours(state)
    return tuple(
        replace(engine_view(info), failure=_failure_view(state, info), colour=colours.get(name))
        for name, info in state.engines.items()
    )


def _failure_view(state: DeckState, info: EngineInfo) -> FailureView | None:
    found = failure_of(state, info)
    if found is None:
        return None
    return FailureView(found.meaning, found.fix or "", mendable=found.change is not None and info.unit.spec is not None)


def _took(info: EngineInfo) -> str:
    """`ready in 46 s: loading weights 31 s, compiling 12 s`; "" where nobody saw it start."""
    times = info.kept.present(info.unit.since)
    return f"ready in {seconds_words(times.total)}: {times_words(times)}" if times is not None else ""


def _notes(info: EngineInfo) -> tuple[str, ...]:
    """What is to be said of its unit, each in a few words; the unit's own page has it at length."""
    words = {
        DriftKind.ON_DISK: "its file changed since it was loaded",
        DriftKind.BY_HAND: "edited by hand",
        DriftKind.RUNNING: "runs an older command",
    }
    found = info.reviewed.review.findings if info.reviewed is not None else ()
    count = f"{len(found)} finding{'' if len(found) == 1 else 's'}: {found[0].message}" if found else ""
    return (*(words[drift.kind] for drift in info.drift), *([count] if count else ()))


def _draining(info: EngineInfo) -> str:
    return in_flight_words(info.in_flight) if info.in_flight is not None else "asking for its requests"


def engine_view(info: EngineInfo) -> EngineView:
    """An engine as its row shows it."""
    unit, standing = info.unit, info.standing
    spec = unit.spec
    # Between two tries, and until the log of the next begins, a phase would be that of a run that is over.
    starting = info.word in ("starting", "restarting") and unit.runs and standing.phase.starting_up
    shape = ""
    if spec is not None:
        placement = spec.placement
        copies = f"×DP{placement.replicas}" if placement.replicas > 1 else ""
        shape = f"TP{placement.tensor_parallel_size}×PP{placement.pipeline_parallel_size}{copies}"
    return EngineView(
        name=unit.name,
        unit=unit.unit,
        state=info.word,
        phase=standing.phase.value if starting else _draining(info) if info.word == "draining" else "",
        progress_percent=standing.percent if starting else None,
        eta=info.left if starting else "",
        still=info.still if starting else "",
        checks=tuple((check.holds, f"{check.what}: {check.found}") for check in info.checks) if starting else (),
        notes=_notes(info),
        took=_took(info) if info.word == "ready" else "",
        clock=unit.restarted_on,
        metrics=MetricsView(info.rates, info.uncounted) if info.word == "ready" else None,
        port=spec.options.port if spec else None,
        shape=shape,
        gpus=spec.placement.gpus if spec else (),
        detail=info.why,
        managed=unit.managed,
        scope=unit.scope.value,
    )
