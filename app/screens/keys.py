"""Which keys the screen offers: those that do something now on its lower edge, all of them on the help page."""

from collections.abc import Sequence

from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input, TextArea

from gpudeck.app.state import DeckState
from gpudeck.services.plan.findings import VerdictState
from gpudeck.widgets.board.board import Board
from gpudeck.widgets.engine_list import EngineList
from gpudeck.widgets.help_page import HelpGroup
from gpudeck.widgets.key_bar import KeyHint, key_words

_BOTH_WAYS = (
    *(("Up", "Down"), ("Left", "Right"), ("First", "Last"), ("Oldest", "Newest"), ("Undo", "Redo")),
    ("One more copy", "One copy less"),
    *(("Next hit", "Previous hit"), ("First error", "Next error")),
)
OF_THE_PANE = 2  # so many of the focused pane's keys go before the panel's


def key_hints(screen: Screen[None], state: DeckState | None) -> tuple[list[KeyHint], list[KeyHint]]:
    """The keys for the bar, the more telling first, and those that stand there always."""
    pane: list[KeyHint] = []
    panel: list[KeyHint] = []
    acts: set[str] = set()  # of several keys for one act the first is shown
    at_engines = isinstance(screen.focused, EngineList)
    for active in screen.active_bindings.values():
        binding = active.binding
        if not active.enabled or not binding.description or binding.action in acts:
            continue
        acts.add(binding.action)
        hint = KeyHint(binding.key, binding.description)
        if active.node is not screen.app:
            if binding.show:
                pane.append(hint)
        elif (binding.show or at_engines) and _applies(binding.action, state, at_engines=at_engines):
            panel.append(hint)
    typing = isinstance(screen.focused, (Input, TextArea))
    always = [KeyHint("f1" if typing else "question_mark", "help"), KeyHint("ctrl+q" if typing else "q", "quit")]
    if typing:
        # Letters are text here; only what is no letter is a key.
        return pane + [hint for hint in panel if len(hint.key) > 1], always
    if isinstance(screen.focused, Board) and screen.focused.drag is not None:
        return pane, always
    return pane[:OF_THE_PANE] + panel + pane[OF_THE_PANE:], always


def _applies(action: str, state: DeckState | None, *, at_engines: bool) -> bool:
    """Whether one of the panel's keys does something now; those that stand on the bar always are left out."""
    if state is None:
        return False
    draft, engine = state.draft, state.engine
    same = state.engines.get(draft.name)
    runs = same is not None and same.unit.alive and same.unit.spec == draft.spec(state.program)
    planned = draft.model is not None and bool(draft.placement.gpus)
    startable = planned and state.judgement.state is not VerdictState.BLOCKED and not runs
    return {
        "choose_model": not at_engines,
        "propose": draft.model is not None and not at_engines,
        "adjust": draft.model is not None and not at_engines,
        "fix": any(finding.change for finding in state.judgement.findings) and not at_engines,
        "new_plan": not draft.empty and not at_engines,
        "turn_plan(1)": len(state.drafts.all) > 1 and not at_engines,
        "discard_plan": len(state.drafts.all) > 1 and not at_engines,
        "as_it_is": bool(state.additions),
        "step_up": draft.model is not None and draft.cautious and state.has_run(draft.name),
        "start": engine is not None and not engine.unit.alive if at_engines else startable,
        "stop": engine is not None and engine.unit.alive,
        "restart": engine is not None and at_engines,
        "remove": engine is not None and at_engines,
        "go_back": engine is not None and at_engines and engine.kept.other_than(engine.unit.spec) is not None,
        "schedule": False,  # on the help page alone: it is seldom wanted
        "pane('chat')": engine is not None,
        "check": engine is not None and engine.ready and at_engines,
        "bench": engine is not None and engine.ready and at_engines,
        "step_out": True,
    }.get(action, False)


def help_group(title: str, bindings: Sequence[BindingType]) -> HelpGroup:
    """The keys of one pane as the help page shows them: one act, or an act and its reverse, a line."""
    acts: dict[str, list[str]] = {}
    for binding in Binding.make_bindings(bindings):
        if binding.description:
            act = binding.description[:1].upper() + binding.description[1:]
            acts.setdefault(act, []).append(key_words(binding.key))
    for one, other in _BOTH_WAYS:
        if one in acts and other in acts:
            keys = [key for pair in zip(acts[one], acts.pop(other), strict=False) for key in pair]
            act = f"{one} and {other.lower()}"
            acts = {act if name == one else name: keys if name == one else said for name, said in acts.items()}
    return HelpGroup(title, tuple((", ".join(dict.fromkeys(keys)), act) for act, keys in acts.items()))
