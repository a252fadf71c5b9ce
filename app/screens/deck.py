"""The panel's one screen: where each pane stands, and what of the state each shows."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer, Static, Tab, Tabs

from gpudeck.app.keymap import PANES
from gpudeck.app.state import DeckState, EngineInfo
from gpudeck.services.text import printable
from gpudeck.widgets.board.board import Board
from gpudeck.widgets.cards.box_cards import BoxCards
from gpudeck.widgets.chat import ChatPane
from gpudeck.widgets.chat_input import ChatInput
from gpudeck.widgets.engine_list import EngineList, EngineView
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.header import DeckHeader, HeaderFacts
from gpudeck.widgets.help_page import HelpGroup
from gpudeck.widgets.log_pane import LogPane
from gpudeck.widgets.strip import CardStrip
from gpudeck.widgets.topology import Topology
from gpudeck.widgets.verdict import Verdict, counted, verdict_words

# Where a reading older than this is shown with its age: two beats were missed.
STALE_S = 3.0

_MAXIMIZABLE = ("box", "links", "plan", "engines", "log", "chat")


class Deck(Screen[None]):
    ALLOW_IN_MAXIMIZED_VIEW = "DeckHeader, Footer"
    HORIZONTAL_BREAKPOINTS = [(0, "-compact"), (120, "-wide")]  # noqa: RUF012 (as Screen declares it)

    def __init__(self, glyphs: Glyphs, *, ascii_only: bool) -> None:
        super().__init__(classes="-show-board" + (" -ascii" if ascii_only else ""))
        self._glyphs = glyphs
        self.header = DeckHeader(glyphs=glyphs, id="header")
        self.strip = CardStrip(glyphs=glyphs, id="cards-strip")
        self.tabs = Tabs(*(Tab(pane.capitalize(), id=f"tab-{pane}") for pane in PANES), active="tab-board", id="panes")
        self.cards = BoxCards(glyphs=glyphs)
        self.topology = Topology(glyphs=glyphs)
        self.board = Board(glyphs=glyphs)
        self.verdict = Verdict(glyphs=glyphs, id="verdict-pane")
        self.engine_list = EngineList(glyphs=glyphs, enter_does="its plan on the board")
        self.log_pane = LogPane(glyphs=glyphs, id="log")
        self.chat = ChatPane(glyphs=glyphs, id="chat")
        self.verdict_line = Static(id="verdict-line", markup=False)
        self._shown: DeckState | None = None

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.strip
        yield self.tabs
        with Vertical(id="work"):
            with Horizontal(id="upper"):
                with Vertical(id="left"):
                    with Vertical(id="box", classes="pane"):
                        yield self.cards
                    with Vertical(id="links", classes="pane"):
                        yield self.topology
                with Vertical(id="right"):
                    with Vertical(id="plan", classes="pane"):
                        yield self.board
                        yield self.verdict
                    with Vertical(id="engines", classes="pane"):
                        yield self.engine_list
            with Horizontal(id="lower"):
                yield self.log_pane
                yield self.chat
        yield self.verdict_line
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        for pane, title in (("box", "Box"), ("links", "Links"), ("plan", "Board"), ("engines", "Engines")):
            self.query_one(f"#{pane}").border_title = title
        self.board.focus()

    def open_pane(self, pane: str) -> None:
        """Show a pane (in compact: instead of the others) and give it the focus."""
        self.show_pane(pane)
        if self.maximized is not None:
            self.maximized = self.query_one(f"#{'plan' if pane == 'board' else pane}")
        target: Widget = {
            "box": self.cards,
            "board": self.board,
            "engines": self.engine_list,
            "log": self.log_pane.view,
            "chat": self.chat.query_one(ChatInput),
        }[pane]
        target.focus()

    def toggle_maximized(self) -> None:
        """Give the focused pane the whole screen, or show all panes again."""
        if self.maximized is not None:
            self.minimize()
        elif self.focused is not None:
            around = (self.focused, *self.focused.ancestors)
            self.maximized = next(
                (pane for pane in around if isinstance(pane, Widget) and pane.id in _MAXIMIZABLE), None
            )

    def step_out(self) -> None:
        """Leave a field that takes every letter, so that the panel's keys are keys again."""
        if self.has_class("-compact"):
            self.tabs.focus()
        else:
            self.engine_list.focus()

    def show_pane(self, pane: str) -> None:
        for other in PANES:
            self.set_class(other == pane, f"-show-{other}")
        self.tabs.active = f"tab-{pane}"

    def toggle_links(self) -> None:
        links = self.query_one("#links")
        links.display = not links.display

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        pane = (event.tab.id or "").removeprefix("tab-")
        if not self.has_class(f"-show-{pane}"):
            self.open_pane(pane)

    def help_groups(self, own: Sequence[BindingType]) -> tuple[HelpGroup, ...]:
        """Every key, the panel's own first and then pane by pane, for the help page."""
        panes: tuple[tuple[str, Widget], ...] = (
            ("Box", self.cards),
            ("Board", self.board),
            ("Verdict", self.verdict),
            ("Engines", self.engine_list),
            ("Log", self.log_pane.view),
            ("Chat", self.query_one(ChatInput)),
        )
        return (help_group("Everywhere", own), *(help_group(title, widget.BINDINGS) for title, widget in panes))

    # -- what is shown

    def show(self, state: DeckState, now: float) -> None:
        """Give each widget what it shows, where that is not what it shows already."""
        before, self._shown = self._shown, state
        if state.box is not None and (before is None or before.box != state.box):
            self.board.show_box(state.box)
            self.topology.show(state.box)
        if before is None or before.snapshot is not state.snapshot or before.trouble != state.trouble:
            self.show_box(state, now)
        if before is None or before.draft is not state.draft:
            self.board.show_placement(state.draft.placement)
            self._show_draft(state)
        if before is None or before.judgement is not state.judgement or before.draft is not state.draft:
            self.board.show_judgement(state.judgement if state.draft.model else None)
            self.show_verdict(state)
        if before is None or before.engines is not state.engines or before.selected != state.selected:
            self.engine_list.show(tuple(engine_view(info) for info in state.engines.values()))
            self._show_chat_target(state)
        if before is None or before.selected != state.selected:
            self.log_pane.title_for(state.selected)

    def show_header(self, state: DeckState, clock: str, interval: float) -> None:
        box = state.box
        self.header.show(
            HeaderFacts(
                box=box.name if box else "",
                gpus=len(box.gpus) if box else None,
                driver=(box.driver or "") if box else "",
                cuda=(box.cuda or "") if box else "",
                runner=state.runner,
                rate=f"{1 / interval:g} Hz",
                clock=clock,
            )
        )

    def show_box(self, state: DeckState, now: float) -> None:
        """Show the snapshot with its age where it is old, or why there is none."""
        cards, strip = self.cards, self.strip
        if state.snapshot is None:
            sentence = state.trouble or "Reading the box."
            cards.show_trouble(sentence)
            strip.show_trouble(sentence)
            return
        age = now - state.snapshot.at
        stale = age if age > STALE_S or state.trouble else None
        cards.show(state.snapshot, stale=stale)
        strip.show(state.snapshot, stale=stale)

    def _show_draft(self, state: DeckState) -> None:
        draft = state.draft
        words = [draft.name, draft.model.name] if draft.model else ["no model yet: m chooses one"]
        plan = self.query_one("#plan")
        plan.border_title = Content("Board  " + "  ".join(printable(word) for word in words if word))

    def show_verdict(self, state: DeckState) -> None:
        """Show the verdict on what stands on the board, or the next step where nothing does."""
        line = self.verdict_line
        if not state.draft.placement.gpus:
            hint = "Lift a card with space or the mouse and put it on the board; p proposes a placement."
            self.verdict.show_hint(hint)
            line.update(hint)
            return
        self.verdict.show(state.judgement)
        line.update(self.verdict_words(state))

    def verdict_words(self, state: DeckState) -> str:
        """The verdict in one line: "▲ caution  2 warnings"."""
        words, _style = verdict_words(state.judgement, self._glyphs)
        return f"{words}  {counted(state.judgement)}"

    def _show_chat_target(self, state: DeckState) -> None:
        engine = state.engine
        self.chat.set_target(engine.unit.name if engine else "", ready=bool(engine and engine.ready))


def help_group(title: str, bindings: Sequence[BindingType]) -> HelpGroup:
    """The keys of one pane as the help page shows them."""
    keys = []
    for binding in Binding.make_bindings(bindings):
        if binding.description:
            keys.append((binding.key_display or binding.key.replace("_", " "), binding.description))
    return HelpGroup(title, merged(keys))


def merged(keys: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Several keys of one act as one line: "up, k"."""
    acts: dict[str, list[str]] = {}
    for key, act in keys:
        acts.setdefault(act[0].upper() + act[1:], []).append(key)
    return tuple((", ".join(dict.fromkeys(words)), act) for act, words in acts.items())


def engine_view(info: EngineInfo) -> EngineView:
    """An engine as its row shows it."""
    unit, standing = info.unit, info.standing
    spec = unit.spec
    starting = info.word in ("starting", "restarting")
    shape = ""
    if spec is not None:
        placement = spec.placement
        copies = f"×DP{placement.replicas}" if placement.replicas > 1 else ""
        shape = f"TP{placement.tensor_parallel_size}×PP{placement.pipeline_parallel_size}{copies}"
    return EngineView(
        name=unit.name,
        unit=unit.unit,
        state=info.word,
        phase=standing.phase.value if starting else "",
        progress_percent=standing.percent if starting else None,
        port=spec.options.port if spec else None,
        shape=shape,
        gpus=spec.placement.gpus if spec else (),
        detail=(standing.decisive_line or "") if info.word in ("failed", "restarting", "stopped") else "",
        managed=unit.managed,
        scope=unit.scope.value,
    )
