"""The engines of this box, one or two rows each: state, phase and how far it is, port, shape, cards."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType

from gpudeck.services.text import printable
from gpudeck.widgets.engine_metrics import MetricsView, metrics_rows
from gpudeck.widgets.failure_card import FailureView, failure_rows
from gpudeck.widgets.glyphs import Glyphs, joined, wrap
from gpudeck.widgets.lines import Line, LineView, engine_style, under, width_of
from gpudeck.widgets.messages import EngineFixAsked, EngineHighlighted, EngineSelected, EnginesLooked, UnitAsked

_BAR = 12
_STATE_WIDTH = 10  # the longest of the words below
_INDENT = "   "
_DETAIL_ROWS = 2  # of a failure that was made out
# The words that the app uses for an engine's state, and the style that each is shown in.  Any other word is something
# that is being done to the engine.
_STYLES: Mapping[str, str] = {
    "ready": "success",
    "starting": "accent",
    "restarting": "warning",
    "stopping": "accent",
    "stopped": "muted",
    "failed": "error",
}
_EMPTY = (
    "No vLLM engine on this box yet.",
    "s starts the plan on the board. Others' units stand here too.",
)


@dataclass(frozen=True, slots=True)
class EngineView:
    """One engine as a row shows it.  All text may be foreign."""

    name: str
    unit: str
    state: str  # the one word: ready, starting, restarting, stopping, stopped, failed
    phase: str = ""  # "loading weights"
    progress_percent: float | None = None
    eta: str = ""  # "about 40 s left"
    still: str = ""  # "nothing has moved for 3 min"
    checks: tuple[tuple[bool | None, str], ...] = ()  # what to look at then, and whether it holds (None: not known)
    notes: tuple[str, ...] = ()  # what is to be said of its unit: "edited by hand"
    took: str = ""  # how long its start took, phase by phase; shown under the cursor
    clock: str = ""  # when it is restarted, shown under the cursor: "Sun 04:00"
    colour: int | None = None  # the engine's own, which its cards have too
    port: int | None = None
    shape: str = ""  # "TP2×PP1"
    gpus: tuple[int, ...] = ()
    detail: str = ""  # one sentence: why it failed, what is odd about it
    metrics: MetricsView | None = None  # while it serves
    failure: FailureView | None = None  # what the detail means, where that is known
    managed: bool = True  # its unit was written by gpudeck
    scope: str = ""  # "system", "user", "embedded"


class EngineList(LineView, can_focus=True):
    """Engines with a cursor.

    Moving the cursor posts `EngineHighlighted`; Enter, or a click on the engine under the cursor, `EngineSelected`;
    coming into view and leaving it `EnginesLooked`.
    """

    HELP = "Every engine on this box: those of gpudeck, and those whose units others wrote."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False, id="engines.up"),
        Binding("down,j", "move(1)", "Down", show=False, id="engines.down"),
        Binding("home,g", "move_to(0)", "First", show=False, id="engines.first"),
        Binding("end,G", "move_to(-1)", "Last", show=False, id="engines.last"),
        Binding("enter", "select", "Plan on the board", id="engines.select"),
        Binding("f", "mend", "Fix on the board", id="engines.fix"),
        Binding("u", "unit", "Its unit", id="engines.unit"),
    ]
    DEFAULT_CSS = """
    EngineList { height: 1fr; width: 1fr; overflow-x: hidden; background: $surface; }
    """

    def __init__(
        self,
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._glyphs = glyphs or Glyphs.unicode()
        self._views: tuple[EngineView, ...] = ()
        self._current: str | None = None
        self._owners: list[str] = []  # the engine of each row

    @property
    def current(self) -> str | None:
        """The name of the engine under the cursor."""
        return self._current

    def show(self, views: tuple[EngineView, ...]) -> None:
        """Show these engines; the cursor stays on its engine, or goes to the one that took its place."""
        names = [view.name for view in views]
        before = self._current
        if self._current not in names:
            old = [view.name for view in self._views]
            place = old.index(self._current) if self._current in old else 0
            self._current = names[min(place, len(names) - 1)] if names else None
        self._views = views
        self._draw()
        if self._current is not None and self._current != before:
            self.post_message(EngineHighlighted(self._current))

    def select(self, name: str) -> None:
        """Put the cursor on an engine, where there is one of that name."""
        if name != self._current and any(view.name == name for view in self._views):
            self._current = name
            self._draw()
            self._keep_current_visible()
            self.post_message(EngineHighlighted(name))

    def action_move(self, by: int) -> None:
        names = [view.name for view in self._views]
        if self._current in names:
            self.select(names[min(max(names.index(self._current) + by, 0), len(names) - 1)])

    def action_move_to(self, place: int) -> None:
        if self._views:
            self.select(self._views[place].name)

    def action_select(self) -> None:
        if self._current is not None:
            self.post_message(EngineSelected(self._current))

    def action_mend(self) -> None:
        if self._current is not None:
            self.post_message(EngineFixAsked(self._current))

    def action_unit(self) -> None:
        if self._current is not None:
            self.post_message(UnitAsked(self._current))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Offered are the fix of what failed for a reason that a key mends, and a unit of which there is to be told."""
        if action not in ("mend", "unit"):
            return True
        current = next((view for view in self._views if view.name == self._current), None)
        if action == "unit":
            return current is not None and bool(current.notes)
        return current is not None and current.failure is not None and current.failure.mendable

    def on_click(self, event: events.Click) -> None:
        row = event.y + self.scroll_offset.y
        if 0 <= row < len(self._owners):
            name = self._owners[row]
            if name == self._current:
                self.post_message(EngineSelected(name))
            else:
                self.select(name)

    def on_show(self, event: events.Show) -> None:  # noqa: ARG002
        self.post_message(EnginesLooked(True))

    def on_hide(self, event: events.Hide) -> None:  # noqa: ARG002
        self.post_message(EnginesLooked(False))

    def on_resize(self) -> None:
        self._draw()

    def on_focus(self) -> None:
        self._draw()

    def on_blur(self) -> None:
        self._draw()

    def _draw(self) -> None:
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        lines: list[Line] = []
        self._owners = []
        names = max((cell_len(printable(view.name)) for view in self._views), default=0)
        names = min(names, max(8, width // 3))
        for view in self._views:
            chosen = view.name == self._current
            rows = engine_rows(view, self._glyphs, width, names, chosen=chosen)
            if chosen:
                rows = [under(row, "cursor" if self.has_focus else "track", width) for row in rows]
            lines += rows
            self._owners += [view.name] * len(rows)
        if not self._views:
            lines = [((f" {text}", "muted"),) for sentence in _EMPTY for text in wrap(sentence, width - 2)]
        self.show_lines(lines)

    def _keep_current_visible(self) -> None:
        rows = [row for row, name in enumerate(self._owners) if name == self._current]
        if rows:
            self.keep_visible(rows[0], rows[-1])


def engine_rows(view: EngineView, glyphs: Glyphs, width: int, name_width: int, *, chosen: bool = False) -> list[Line]:
    """The rows of one engine in `width` cells: one, and more where there is a phase, a detail or too little room.

    Of the chosen one also how long its start took, and when the clock restarts it.
    """
    style = _STYLES.get(view.state, "accent")
    head: Line = (
        (f" {state_sign(view.state, glyphs)} ", style),
        *(((glyphs.weights, engine_style(view.colour)), (" ", "")) if view.colour is not None else ()),
        (glyphs.fit(printable(view.name), name_width), "strong"),
        ("  ", ""),
        (glyphs.fit(view.state, _STATE_WIDTH), style),
    )
    facts = joined(_facts(view), glyphs.dot)
    rows: list[Line] = []
    if width_of(head) + 2 + cell_len(facts) <= width:
        rows.append((*head, ("  ", ""), (facts, "muted")))
    else:
        rows.append(head)
        rows.append(((_INDENT, ""), (glyphs.cut(facts, width - len(_INDENT)), "muted")))
    if view.phase or view.progress_percent is not None:
        rows.append(_progress(view, glyphs, width))
    if view.metrics is not None:
        rows += metrics_rows(view.metrics, glyphs, width, len(_INDENT), chosen=chosen)
    if view.took and chosen:
        rows += _wrapped(view.took, "muted", width)
    if view.clock and chosen:
        rows += _wrapped(f"restarted by the clock: {view.clock}", "muted", width)
    rows += _standstill(view, glyphs, width)
    rows += _notes(view, glyphs, width)
    if view.detail:
        detail = _short(printable(view.detail), width - len(_INDENT) - 3, glyphs, whole=view.failure is None)
        tone = "error" if view.state == "failed" else "warning"
        rows += [
            ((_INDENT, ""), (f"{glyphs.branch} " if place == 0 else "  ", "faint"), (text, tone))
            for place, text in enumerate(detail)
        ]
        if view.failure is not None:
            rows += failure_rows(view.failure, glyphs, width, len(_INDENT))
    return rows


def _short(text: str, width: int, glyphs: Glyphs, *, whole: bool) -> list[str]:
    """A detail on its rows; not `whole`, on two at most: what it means stands below, and the log has all of it."""
    rows = wrap(text, width)
    if whole or len(rows) <= _DETAIL_ROWS:
        return rows
    return [*rows[: _DETAIL_ROWS - 1], glyphs.cut(" ".join(rows[_DETAIL_ROWS - 1 :]), width)]


def _standstill(view: EngineView, glyphs: Glyphs, width: int) -> list[Line]:
    """That a start stands still, and what to look at, each with its sign."""
    if not view.still:
        return []
    rows = _wrapped(f"{view.still}{': what to check' if view.checks else ''}", "warning", width)
    signs = {True: (glyphs.ready, "success"), False: (glyphs.failed, "error"), None: ("?", "muted")}
    for holds, text in view.checks:
        sign, style = signs[holds]
        for place, part in enumerate(wrap(printable(text), max(width - len(_INDENT) - 3, 1))):
            rows.append(((_INDENT, ""), (f"{sign} " if place == 0 else "  ", style), (part, "text")))
    return rows


def _notes(view: EngineView, glyphs: Glyphs, width: int) -> list[Line]:
    """What is to be said of its unit, and the key that shows it at length."""
    if not view.notes:
        return []
    words = wrap(printable(joined(view.notes, glyphs.dot)), max(width - len(_INDENT) - 6, 1))
    rows: list[Line] = []
    for place, text in enumerate(words):
        key = (("  ", ""), ("u", "primary strong")) if place == len(words) - 1 else ()
        rows.append(((_INDENT, ""), (f"{glyphs.caution} " if place == 0 else "  ", "warning"), (text, "muted"), *key))
    return rows


def _wrapped(text: str, style: str, width: int) -> list[Line]:
    return [((_INDENT, ""), (part, style)) for part in wrap(printable(text), max(width - len(_INDENT) - 1, 1))]


def state_sign(state: str, glyphs: Glyphs) -> str:
    """The sign that stands before an engine's state everywhere."""
    return {
        "ready": glyphs.running,
        "stopped": glyphs.stopped,
        "failed": glyphs.failed,
        "restarting": glyphs.caution,
    }.get(state, glyphs.starting)


def _facts(view: EngineView) -> list[str]:
    cards = ",".join(map(str, view.gpus))
    return [
        f":{view.port}" if view.port is not None else "",
        view.shape,
        f"{'card' if len(view.gpus) == 1 else 'cards'} {cards}" if cards else "",
        view.scope,
        "" if view.managed else f"{printable(view.unit)}, not gpudeck's",
    ]


def _progress(view: EngineView, glyphs: Glyphs, width: int) -> Line:
    row: list[tuple[str, str]] = [(_INDENT, "")]
    if view.progress_percent is not None:
        filled, rest = glyphs.bar(view.progress_percent / 100, _BAR)
        row += [(filled, "accent"), (rest, "faint")]
        row.append((f" {view.progress_percent:3.0f} %  ", "text"))
    words = joined((printable(view.phase), view.eta), glyphs.dot)
    row.append((glyphs.cut(words, max(0, width - width_of(tuple(row)))), "muted"))
    return tuple(row)
