"""The panel's one screen: where each pane stands, and what of the state each shows."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer, Static, Tab, Tabs

from gpudeck.app.keymap import PANES
from gpudeck.app.state import DeckState, EngineInfo
from gpudeck.services.text import printable
from gpudeck.widgets.board import Board
from gpudeck.widgets.cards.box_cards import BoxCards
from gpudeck.widgets.chat import ChatPane
from gpudeck.widgets.engine_list import EngineList, EngineView
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.header import DeckHeader
from gpudeck.widgets.log_pane import LogPane
from gpudeck.widgets.strip import CardStrip
from gpudeck.widgets.topology import Topology
from gpudeck.widgets.verdict import Verdict, counted, verdict_words

# Where a reading older than this is shown with its age: two beats were missed.
STALE_S = 3.0


class Deck(Screen[None]):
    CSS_PATH = "deck.tcss"
    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]]] = [(0, "-compact"), (120, "-wide")]

    def __init__(self, glyphs: Glyphs, *, ascii_only: bool) -> None:
        super().__init__(classes="-show-board" + (" -ascii" if ascii_only else ""))
        self._glyphs = glyphs
        self._shown: DeckState | None = None

    def compose(self) -> ComposeResult:
        glyphs = self._glyphs
        yield DeckHeader(id="header")
        yield CardStrip(glyphs=glyphs, id="cards-strip")
        yield Tabs(*(Tab(pane.capitalize(), id=f"tab-{pane}") for pane in PANES), active="tab-board", id="panes")
        with Vertical(id="work"):
            with Horizontal(id="upper"):
                with Vertical(id="left"):
                    with Vertical(id="box", classes="pane"):
                        yield BoxCards(glyphs=glyphs)
                    with Vertical(id="links", classes="pane"):
                        yield Topology(glyphs=glyphs)
                with Vertical(id="right"):
                    with Vertical(id="plan", classes="pane"):
                        yield Board(glyphs=glyphs)
                        yield Verdict(glyphs=glyphs, id="verdict-pane")
                    with Vertical(id="engines", classes="pane"):
                        yield EngineList(glyphs=glyphs)
            with Horizontal(id="lower"):
                yield LogPane(glyphs=glyphs, id="log")
                yield ChatPane(glyphs=glyphs, id="chat")
        yield Static(id="verdict-line", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        for pane, title in (("box", "Box"), ("links", "Links"), ("plan", "Board"), ("engines", "Engines")):
            self.query_one(f"#{pane}").border_title = title
        self.board.focus()

    # -- the widgets that the panel speaks to

    @property
    def board(self) -> Board:
        return self.query_one(Board)

    @property
    def verdict(self) -> Verdict:
        return self.query_one(Verdict)

    @property
    def log_pane(self) -> LogPane:
        return self.query_one(LogPane)

    @property
    def chat(self) -> ChatPane:
        return self.query_one(ChatPane)

    @property
    def engine_list(self) -> EngineList:
        return self.query_one(EngineList)

    def open_pane(self, pane: str) -> None:
        """Show a pane (in compact: instead of the others) and give it the focus."""
        self.show_pane(pane)
        target: Widget = {
            "box": self.query_one(BoxCards),
            "board": self.board,
            "engines": self.engine_list,
            "log": self.log_pane.view,
            "chat": self.chat.input,
        }[pane]
        target.focus()

    def show_pane(self, pane: str) -> None:
        for other in PANES:
            self.set_class(other == pane, f"-show-{other}")
        self.query_one("#panes", Tabs).active = f"tab-{pane}"

    def toggle_links(self) -> None:
        links = self.query_one("#links")
        links.display = not links.display

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        pane = (event.tab.id or "").removeprefix("tab-")
        if not self.has_class(f"-show-{pane}"):
            self.open_pane(pane)

    # -- what is shown

    def show(self, state: DeckState, now: float) -> None:
        """Give each widget what it shows, where that is not what it shows already."""
        before, self._shown = self._shown, state
        if before is None or before.snapshot is not state.snapshot or before.trouble != state.trouble:
            self.show_box(state, now)
        if before is None or before.draft is not state.draft or before.box is not state.box:
            self.board.show_placement(state.draft.placement)
            self._show_draft(state)
        if before is None or before.judgement is not state.judgement or before.draft is not state.draft:
            self.board.show_judgement(state.judgement)
            self.show_verdict(state)
        if before is None or before.engines is not state.engines or before.selected != state.selected:
            self.engine_list.show(tuple(engine_view(info) for info in state.engines.values()))
            self._show_chat_target(state)
        if before is None or before.selected != state.selected:
            self.log_pane.title_for(state.selected)

    def show_header(self, state: DeckState, clock: str, interval: float) -> None:
        self.query_one(DeckHeader).show(box=state.box, runner=state.runner, interval=interval, clock=clock)

    def show_box(self, state: DeckState, now: float) -> None:
        """Show the snapshot with its age where it is old, or why there is none."""
        cards, strip = self.query_one(BoxCards), self.query_one(CardStrip)
        if state.snapshot is None:
            sentence = state.trouble or "Reading the box."
            cards.show_trouble(sentence)
            strip.show_trouble(sentence)
            return
        age = now - state.snapshot.at
        stale = age if age > STALE_S or state.trouble else None
        cards.show(state.snapshot, stale=stale)
        strip.show(state.snapshot, stale=stale)
        if self.board.box is not state.box and state.box is not None:
            self.board.show_box(state.box)
            self.query_one(Topology).show(state.box)

    def _show_draft(self, state: DeckState) -> None:
        draft = state.draft
        words = [draft.name, draft.model.name] if draft.model else ["no model yet: m chooses one"]
        plan = self.query_one("#plan")
        plan.border_title = Content("Board  " + "  ".join(printable(word) for word in words if word))

    def show_verdict(self, state: DeckState) -> None:
        """Show the verdict on what stands on the board, or the next step where nothing does."""
        line = self.query_one("#verdict-line", Static)
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
        label = (engine.served[0] if engine.served else engine.unit.name) if engine else "no engine"
        self.chat.set_target(label, ready=bool(engine and engine.ready))


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
        percent=standing.percent if starting else None,
        port=spec.options.port if spec else None,
        shape=shape,
        gpus=spec.placement.gpus if spec else (),
        detail=standing.decisive_line if info.word in ("failed", "restarting", "stopped") else None,
        managed=unit.managed,
        scope=unit.scope,
    )
