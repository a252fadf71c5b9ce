"""The panel's one screen: where each pane stands, and what of the state each shows."""

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static, Tabs

from gpudeck.app.keymap import PANES
from gpudeck.app.screens.keys import help_group, key_hints
from gpudeck.app.screens.shown import (
    engine_colours,
    engine_views,
    engine_words,
    next_step,
    occupants,
    plan_title,
    plan_views,
    plan_words,
    token_words,
)
from gpudeck.app.state import DeckState
from gpudeck.services.host.judge import concerns
from gpudeck.widgets.board.board import Board
from gpudeck.widgets.card_detail import CardDetail
from gpudeck.widgets.cards.box_cards import BoxCards
from gpudeck.widgets.cards.rows import ONE_ROW_WIDTH
from gpudeck.widgets.chat import ChatPane
from gpudeck.widgets.chat_input import ChatInput
from gpudeck.widgets.engine_list import EngineList
from gpudeck.widgets.glyphs import Glyphs, joined
from gpudeck.widgets.header import DeckHeader, HeaderFacts
from gpudeck.widgets.help_page import HelpGroup
from gpudeck.widgets.host_line import HostLine
from gpudeck.widgets.key_bar import KeyBar
from gpudeck.widgets.links.link_view import LinkView
from gpudeck.widgets.log_pane import LogPane
from gpudeck.widgets.messages import CardHighlighted, DetailAsked
from gpudeck.widgets.pane_tabs import PaneTabs
from gpudeck.widgets.plan_strip import PlanStrip
from gpudeck.widgets.strip import CardStrip
from gpudeck.widgets.verdict import Verdict

# Where a reading older than this is shown with its age: two beats were missed.
STALE_S = 3.0

# The frames on the screen, and the pane that each belongs to.
_FRAMES = {"box": "box", "links": "box", "plan": "board", "engines": "engines", "log": "log", "chat": "chat"}

UNFOLDED = 4  # so many cards are wanted in full rather than beside their links
FRAME = 2  # rows
LEAST_COLUMNS, LEAST_ROWS = 60, 16  # below that a pane shows its frame and little else


class Deck(Screen[None]):
    ALLOW_IN_MAXIMIZED_VIEW = "DeckHeader, KeyBar"
    HORIZONTAL_BREAKPOINTS = [(0, "-compact"), (120, "-wide")]  # noqa: RUF012 (as Screen declares it)

    def __init__(self, glyphs: Glyphs, *, ascii_only: bool) -> None:
        super().__init__(classes="-show-board" + (" -ascii" if ascii_only else ""))
        self._glyphs = glyphs
        self.header = DeckHeader(glyphs=glyphs, id="header")
        self.strip = CardStrip(glyphs=glyphs, id="cards-strip")
        self.tabs = PaneTabs(PANES, "board", id="panes")
        self.cards = BoxCards(glyphs=glyphs)
        self.host_line = HostLine(glyphs=glyphs)
        self.host_line.display = False
        self.detail = CardDetail(glyphs=glyphs)
        self.links = LinkView(glyphs=glyphs)
        self.plans = PlanStrip(glyphs=glyphs)
        self.board = Board(glyphs=glyphs)
        self.verdict = Verdict(glyphs=glyphs, id="verdict-pane")
        self.engine_list = EngineList(glyphs=glyphs)
        self.log_pane = LogPane(glyphs=glyphs, id="log")
        self.chat = ChatPane(glyphs=glyphs, id="chat")
        self.standing_line = Static(id="standing", markup=False)
        self._standing = ""
        self.refusal = Static(id="refusal", markup=False)
        self.too_small = Static(id="too-small", markup=False)
        self.keys = KeyBar(id="keys")
        self._shown: DeckState | None = None
        self._links_wanted: bool | None = None  # by the operator; None: where there is room, and no card in full

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.strip
        yield self.tabs
        with Vertical(id="work"):
            with Horizontal(id="upper"):
                with Vertical(id="left"):
                    with Vertical(id="box", classes="pane"):
                        yield self.cards
                        yield self.detail
                        yield self.host_line
                    with Vertical(id="links", classes="pane"):
                        yield self.links
                with Vertical(id="right"):
                    with Vertical(id="plan", classes="pane"):
                        yield self.plans
                        yield self.board
                        yield self.verdict
                    with Vertical(id="engines", classes="pane"):
                        yield self.engine_list
            with Horizontal(id="lower"):
                yield self.log_pane
                yield self.chat
        yield self.refusal
        yield self.standing_line
        yield self.keys
        yield self.too_small

    def on_mount(self) -> None:
        for pane, title in (("box", "Box"), ("links", "Links"), ("plan", "Board"), ("engines", "Engines")):
            self.query_one(f"#{pane}").border_title = title
        self.board.focus()
        self.bindings_updated_signal.subscribe(self, self._show_keys)

    @property
    def compact(self) -> bool:
        """Whether one pane is shown at a time."""
        return self.has_class("-compact")

    def open_pane(self, pane: str) -> None:
        """Show a pane (in compact: instead of the others) and give it the focus."""
        self.show_pane(pane)
        if self.maximized is not None:
            self.maximized = self.query_one(f"#{'plan' if pane == 'board' else pane}")
        self._first_of(pane).focus()

    def toggle_maximized(self) -> None:
        """Give the focused pane the whole screen, or show all panes again."""
        if self.maximized is not None:
            self.minimize()
        elif self.focused is not None:
            around = self.focused.ancestors_with_self
            self.maximized = next((pane for pane in around if isinstance(pane, Widget) and pane.id in _FRAMES), None)

    def step_out(self) -> None:
        """Leave a field that takes every letter, so that the panel's keys are keys again."""
        if self.compact:
            self.tabs.focus()
        else:
            self.engine_list.focus()

    def show_pane(self, pane: str) -> None:
        """Show a pane; in compact the focus goes into it, unless it moves along the tabs."""
        for other in PANES:
            self.set_class(other == pane, f"-show-{other}")
        self.tabs.turn_to(pane)
        if self.compact and not self.tabs.has_focus and self._pane_of(self.focused) != pane:
            self._first_of(pane).focus()

    def turn_links(self) -> None:
        """From no links to the matrix, on to the map, and away again."""
        shown = self.has_class("-links")
        self._links_wanted = not shown or not self.links.as_map
        self.links.show_as(as_map=shown and not self.links.as_map)
        self._fit_links()
        if self.compact and self._links_wanted:
            self.open_pane("box")

    @on(DetailAsked)
    def _detail_asked(self) -> None:
        """Show all of the chosen card below the cards, or no longer."""
        wanted = not self.has_class("-detail")
        self.set_class(wanted, "-detail")
        self.cards.keep_short(wanted)
        if self.focused is self.detail:
            self.cards.focus()
        self._fit_links()

    @on(CardHighlighted)
    def _card_highlighted(self, message: CardHighlighted) -> None:
        if self._shown is not None and self._shown.snapshot is not None:
            self.detail.show(self._shown.snapshot, message.gpu)

    @on(Tabs.TabActivated)
    def _tab_activated(self) -> None:
        self.show_pane(self.tabs.pane)

    @on(PaneTabs.Entered)
    def _tab_entered(self) -> None:
        self.open_pane(self.tabs.pane)

    def on_resize(self) -> None:
        width, height = self.app.size
        tiny = width < LEAST_COLUMNS or height < LEAST_ROWS
        self.set_class(tiny, "-tiny")
        if tiny:
            sign = self._glyphs.times
            self.too_small.update(
                f"This terminal has {width} {sign} {height}; gpudeck needs {LEAST_COLUMNS} {sign} {LEAST_ROWS}."
            )
        pane = self._pane_of(self.focused)
        if self.compact and pane is not None and not self.has_class(f"-show-{pane}"):
            # It has just become narrow: go on where the operator was.
            self.show_pane(pane)
        self.call_after_refresh(self._fit_links)

    def _first_of(self, pane: str) -> Widget:
        """What takes the keys of a pane."""
        widgets: dict[str, Widget] = {
            "box": self.cards,
            "board": self.board,
            "engines": self.engine_list,
            "log": self.log_pane.view,
            "chat": self.chat.query_one(ChatInput),
        }
        return widgets[pane]

    def _pane_of(self, widget: Widget | None) -> str | None:
        """The pane that a widget stands in."""
        above = [] if widget is None else [node.id for node in widget.ancestors_with_self]
        return next((_FRAMES[name] for name in above if name in _FRAMES), None)

    def _fit_links(self) -> None:
        """Show the links where the cards have room beside them, or as the operator wants it."""
        wanted, box = self._links_wanted, self._shown.box if self._shown else None
        if wanted is None:
            wanted = (
                not self.compact
                and not self.has_class("-detail")
                and box is not None
                and self._room_for_links(len(box.gpus))
            )
        self.set_class(wanted, "-links")

    def _room_for_links(self, cards: int) -> bool:
        height = self.query_one("#left").size.height
        rows = cards if self.cards.room.width >= ONE_ROW_WIDTH else 2 * cards
        unfolded = 6 * cards - 1
        return height >= (unfolded if cards <= UNFOLDED else rows) + cards + 1 + 2 * FRAME

    def _show_keys(self, _screen: Screen[None]) -> None:
        self.show_keys()

    def show_keys(self) -> None:
        """Show the keys that do something now.  Under a dialog they are the dialog's, and at the end there are none."""
        if self.is_active:
            self.keys.show(*key_hints(self, self._shown))

    def on_screen_resume(self) -> None:
        self.show_keys()

    def help_groups(self, own: Sequence[BindingType]) -> tuple[HelpGroup, ...]:
        """Every key for the help page: the panel's own first, then pane by pane, those with the most first."""
        panes: tuple[tuple[str, Sequence[BindingType]], ...] = (
            ("Board", self.board.BINDINGS),
            ("Log", self.log_pane.view.BINDINGS),
            ("Chat", [*ChatInput.BINDINGS, *ChatPane.BINDINGS]),
            ("Box", self.cards.BINDINGS),
            ("All of a card", self.detail.BINDINGS),
            ("Engines", self.engine_list.BINDINGS),
            ("Verdict", self.verdict.BINDINGS),
        )
        return (help_group("Everywhere", own), *(help_group(title, bindings) for title, bindings in panes))

    # -- what is shown

    def show(self, state: DeckState, now: float) -> None:
        """Give each widget what it shows, where that is not what it shows already."""
        before, self._shown = self._shown, state
        box = state.plan_box
        if box is not None and (before is None or before.plan_box != box):
            self.board.show_box(box)
            self.call_after_refresh(self._fit_links)
        if before is None or before.snapshot is not state.snapshot or before.trouble != state.trouble:
            self.show_box(state, now)
        if state.host is not None and (before is None or before.host is not state.host):
            self.host_line.show(state.host, concerns(state.host, len(state.box.gpus) if state.box else 0))
        if before is None or before.draft is not state.draft or before.additions != state.additions:
            self.board.show_plan(state.draft.key, state.draft.placement)
            self._show_draft(state)
        if before is None or before.judgement is not state.judgement or before.draft is not state.draft:
            self.board.show_judgement(state.judgement if state.draft.model else None)
            self.show_verdict(state)
        if before is None or before.engines is not state.engines or before.selected != state.selected:
            self.engine_list.show(engine_views(state))
        if before is None or (before.engines, before.selected, before.chat_url) != (
            state.engines,
            state.selected,
            state.chat_url,
        ):
            self._show_chat_target(state)
        if before is None or before.selected != state.selected:
            self.log_pane.title_for(state.selected)
        marks = (occupants(state), state.draft.shared_gpus)
        if before is None or (occupants(before), before.draft.shared_gpus) != marks:
            self.board.show_occupants(*marks)
        self.plans.show(plan_views(state), state.drafts.place)
        self._show_standing(state)
        if before is None or before.refusal != state.refusal:
            self.refusal.display = bool(state.refusal)
            self.refusal.update(f"{self._glyphs.blocked} {state.refusal}")
        self.show_keys()

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
        cards.show(state.snapshot, stale=stale, colours=engine_colours(state))
        self.detail.show(state.snapshot, cards.chosen)
        self.links.show(state.snapshot)
        strip.show(state.snapshot, stale=stale)

    def _show_draft(self, state: DeckState) -> None:
        self.query_one("#plan").border_title = Content(plan_title(state, self._glyphs))

    def show_verdict(self, state: DeckState) -> None:
        """Show the verdict on what stands on the board, or the next step where nothing does."""
        self.verdict.show_token(token_words(state, self._glyphs))
        if state.draft.placement.gpus:
            self.verdict.show(state.judgement)
        else:
            self.verdict.show_hint(next_step(state))

    def _show_standing(self, state: DeckState) -> None:
        """In one line what other panes say at length."""
        words = joined((engine_words(state, self._glyphs), plan_words(state, self._glyphs)), self._glyphs.dot)
        if words != self._standing:
            self._standing = words
            self.standing_line.update(words)

    def _show_chat_target(self, state: DeckState) -> None:
        if state.chat_url:
            self.chat.set_target(state.chat_url, ready=True)
            return
        engine = state.engine
        self.chat.set_target(engine.unit.name if engine else "", ready=bool(engine and engine.ready))
