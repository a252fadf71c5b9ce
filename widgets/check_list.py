"""The list of a check, line by line as it is found."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from gpudeck.services.check.types import Item, Outcome, passed
from gpudeck.services.text import printable
from gpudeck.widgets.dialog import Dialog
from gpudeck.widgets.glyphs import Glyphs, wrap
from gpudeck.widgets.messages import CheckAsked, CurlAsked, WalkAsked

_STYLES = {
    Outcome.PASSED: "$success",
    Outcome.FAILED: "$error",
    Outcome.NOTE: "$primary",
    Outcome.SKIPPED: "$text-muted",
}


class CheckList(Dialog[None]):
    """Shows what holds of one engine; asks for another run, for the whole road, and for the request as a curl line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "close", id="check.leave"),
        Binding("r", "again", "again", id="check.again"),
        Binding("w", "walk", "the whole road", id="check.walk"),
        Binding("y", "curl", "copy as curl", id="check.curl"),
    ]
    DEFAULT_CSS = """
    CheckList #dialog { height: 92%; }
    CheckList VerticalScroll { height: 1fr; margin: 0; }
    """

    def __init__(self, name: str, glyphs: Glyphs | None = None) -> None:
        super().__init__(f"Check {printable(name)}", glyphs)
        self.engine = name
        self._items: tuple[Item, ...] = ()
        self._doing = "asking"
        self._curl = ""

    def compose_body(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(id="check-lines")

    def keys(self) -> tuple[tuple[str, str, str], ...]:
        return (
            ("r", "again", "again"),
            ("w", "restart and check", "walk"),
            ("y", "copy as curl", "curl"),
            ("Esc", "close", "leave"),
        )

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        self._draw()

    def show(self, items: Sequence[Item], doing: str, curl: str = "") -> None:
        """The lines so far; `doing` says what is awaited, "" at the end; `curl` the request by hand."""
        self._items, self._doing, self._curl = tuple(items), doing, curl
        if self.is_mounted:
            self._draw()

    @property
    def running(self) -> bool:
        return bool(self._doing)

    def _draw(self) -> None:
        scroll = self.query_one(VerticalScroll)
        width = scroll.scrollable_content_region.width - 1  # a scroll bar may come
        lines = [line for item in self._items for line in self._lines(item, width)]
        if self._doing:
            lines.append(Content.styled(f"{self.glyphs.starting} {printable(self._doing)}", "$text-muted"))
        else:
            lines += [Content(""), self._verdict()]
            if self._curl:
                lines += [Content(""), *_indented(f"By hand: {self._curl}", width)]
        self.query_one("#check-lines", Static).update(Content("\n").join(lines))
        scroll.scroll_end(animate=False)

    def on_resize(self) -> None:
        self._draw()

    def _lines(self, item: Item, width: int) -> tuple[Content, ...]:
        sign = {
            Outcome.PASSED: self.glyphs.ready,
            Outcome.FAILED: self.glyphs.blocked,
            Outcome.NOTE: self.glyphs.info,
            Outcome.SKIPPED: self.glyphs.stopped,
        }[item.outcome]
        head = Content.assemble(
            (sign, f"bold {_STYLES[item.outcome]}"),
            f" {printable(item.title)}",
            (f"  {item.outcome.value}" if item.outcome is not Outcome.PASSED else "", _STYLES[item.outcome]),
        )
        return (head, *_indented(item.words, width))

    def _verdict(self) -> Content:
        failed = sum(item.outcome is Outcome.FAILED for item in self._items)
        if passed(self._items):
            return Content.styled(f"{self.glyphs.ready} All of it holds.", "bold $success")
        return Content.styled(
            f"{self.glyphs.blocked} {failed or 'Nothing'} {'failed' if failed else 'was seen'}.", "bold $error"
        )

    def action_again(self) -> None:
        if not self.running:
            self.post_message(CheckAsked(self.engine))

    def action_walk(self) -> None:
        if not self.running:
            self.post_message(WalkAsked(self.engine))

    def action_curl(self) -> None:
        self.post_message(CurlAsked(self._curl))

    def action_leave(self) -> None:
        self.dismiss(None)


def _indented(text: str, width: int) -> tuple[Content, ...]:
    """Muted lines below their head."""
    if not text:
        return ()
    return tuple(Content.styled(f"  {line}", "$text-muted") for line in wrap(printable(text), max(width - 2, 20)))
