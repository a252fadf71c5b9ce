"""Exactly what will run, shown before it runs."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from gpudeck.services.engine import types as engine
from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.text import printable
from gpudeck.widgets.dialog import Dialog
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.unit_text import changed_lines, diff_content, unit_content

_STYLES = {VerdictState.READY: "$success", VerdictState.CAUTION: "$warning", VerdictState.BLOCKED: "$error"}


class UnitPreview(Dialog[bool]):
    """The unit that would be written, what it changes, and the verdict.  True: write it and start.

    A unit that gpudeck did not write is only shown.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,y", "start", "start", priority=True, id="preview.start"),
        Binding("escape,n,q", "leave", "not now", id="preview.leave"),
        Binding("d,tab", "turn", "unit or changes", priority=True, id="preview.turn"),
    ]
    DEFAULT_CSS = """
    UnitPreview #dialog { height: 92%; }
    UnitPreview VerticalScroll { height: 1fr; background: $panel; scrollbar-background: $panel; margin: 1 0; }
    UnitPreview #unit-text { padding: 0 1; }
    UnitPreview #unit-path { text-style: bold; }
    UnitPreview #unit-word { color: $text-muted; }
    UnitPreview #unit-word.refused { color: $error; text-style: bold; }
    """

    def __init__(
        self,
        preview: engine.UnitPreview,
        verdict: VerdictState = VerdictState.READY,
        summary: str = "",
        *,
        act: str = "write it and start",
        word: str = "",
        glyphs: Glyphs | None = None,
    ) -> None:
        """`summary` follows the verdict's word: "2 findings, KV cache 62,400 tokens"; `word` is vLLM's own."""
        super().__init__("What will run" if preview.managed else "Not gpudeck's unit", glyphs)
        self._preview = preview
        self._verdict = verdict
        self._summary = summary
        self._act = act
        self._word = printable(word)
        self._refused = False
        self._changes = self._changed

    @property
    def _changed(self) -> bool:
        return self._preview.existing is not None and not self._preview.unchanged

    def compose_body(self) -> ComposeResult:
        preview = self._preview
        yield Static(Content(printable(preview.path)), id="unit-path")
        yield Static(Content(self._standing()), classes="muted" if preview.managed else "", id="unit-standing")
        if preview.managed:
            yield Static(self._verdict_line())
            if self._word:
                yield Static(Content(self._word), id="unit-word", classes="refused" if self._refused else "")
        with VerticalScroll():
            yield Static(self._shown(), id="unit-text")

    def keys(self) -> tuple[tuple[str, str, str], ...]:
        if not self._preview.managed:
            return (("Esc", "close", "leave"),)
        keys = [("Enter", self._act, "start"), ("Esc", "not now", "leave")]
        if self._changed:
            keys.append(("d", "all or changes", "turn"))
        return tuple(keys)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "start":
            return self._preview.managed
        if action == "turn":
            return self._changed
        return super().check_action(action, parameters)

    def action_start(self) -> None:
        self.dismiss(True)

    def action_leave(self) -> None:
        self.dismiss(False)

    def action_turn(self) -> None:
        self._changes = not self._changes
        self.query_one("#unit-text", Static).update(self._shown())
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def tell(self, word: str, *, refused: bool) -> None:
        """Show what the installed vLLM says to this command."""
        self._word, self._refused = printable(word), refused
        for shown in self.query("#unit-word").results(Static):
            shown.update(Content(self._word))
            shown.set_class(refused, "refused")

    def _shown(self) -> Content:
        preview = self._preview
        if self._changes and preview.existing is not None:
            return diff_content(preview.existing, preview.text)
        return unit_content(preview.text)

    def _standing(self) -> str:
        preview = self._preview
        if not preview.managed:
            return (
                "A unit of this name stands there already, and gpudeck did not write it: it is never overwritten. "
                "Give the engine another name."
            )
        if preview.existing is None:
            return "A new file."
        if preview.unchanged:
            return "It stands there already, the same to the letter."
        added, removed = changed_lines(preview.existing, preview.text)
        told = f"It stands there already and changes: + {added} added, - {removed} removed."
        return f"{told} It was edited by hand since gpudeck wrote it." if preview.edited else told

    def _verdict_line(self) -> Content:
        word = f"{self.glyphs.state(self._verdict)} {self._verdict.value}"
        summary = f"  {printable(self._summary)}" if self._summary else ""
        return Content.assemble((word, f"bold {_STYLES[self._verdict]}"), Content(summary))
