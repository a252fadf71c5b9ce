"""Measuring at the panel: what is to be measured, how far it is, and what was measured so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, ScrollableContainer
from textual.content import Content
from textual.widgets import Input, Static

from gpudeck.services.text import printable
from gpudeck.widgets.dialog import Dialog
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.messages import BenchAsked, BenchStopAsked, ExportAsked

_BAR = 24  # cells


@dataclass(frozen=True, slots=True)
class BenchField:
    """One field of the form, and the option of `gpudeck bench` that it becomes; "" for the engines themselves."""

    label: str
    option: str
    help: str


FIELDS = (
    BenchField("Engines", "", "one, or several that share the load"),
    BenchField("Tokens in", "--input-tokens", "of each request"),
    BenchField("Tokens out", "--output-tokens", "of each request"),
    BenchField("At once", "--concurrency", "levels: 1,4,16"),
    BenchField("Load", "--load", "auto, vllm, own: only alike compare"),
    BenchField("Limits, ms", "--first-token", "first token: median, p99"),
)
_DEFAULTS = ("", "512", "128", "1,4,16", "auto", "200,1000")


class BenchPage(Dialog[None]):
    """A form, a progress bar, and the results as text that scrolls both ways."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "end or close", id="bench.leave"),
        Binding("down,tab", "app.focus_next", "next field", priority=True, show=False),
        Binding("up,shift+tab", "app.focus_previous", "previous field", priority=True, show=False),
        Binding("ctrl+e", "export", "write files", priority=True, id="bench.export"),
        Binding("pageup,ctrl+up", "scroll('up')", "up", priority=True, show=False, id="bench.up"),
        Binding("pagedown,ctrl+down", "scroll('down')", "down", priority=True, show=False, id="bench.down"),
        Binding("ctrl+left", "scroll('left')", "to the left", priority=True, show=False, id="bench.left"),
        Binding("ctrl+right", "scroll('right')", "to the right", priority=True, show=False, id="bench.right"),
    ]
    DEFAULT_CSS = """
    BenchPage > #dialog { width: 96%; max-width: 170; height: 96%; padding: 0 1; }
    BenchPage .field { height: 1; }
    BenchPage .label { width: 12; }
    BenchPage .field Input { width: 24; margin: 0; background: $panel; }
    BenchPage .field Input:focus { background: $primary 20%; }
    BenchPage .field .muted { width: 1fr; padding: 0 0 0 1; height: 1; }
    BenchPage #bench-progress { height: auto; margin: 1 0 0 0; }
    BenchPage ScrollableContainer { height: 1fr; margin: 1 0 0 0; scrollbar-size: 1 1; }
    BenchPage #bench-results { width: auto; height: auto; }
    """

    def __init__(self, engines: str, glyphs: Glyphs | None = None) -> None:
        """`engines` stands in the form to begin with."""
        super().__init__("Measure", glyphs)
        self._texts = (engines, *_DEFAULTS[1:])
        self._measuring = False
        self._over: list[str] = []

    def compose_body(self) -> ComposeResult:
        for field, text in zip(FIELDS, self._texts, strict=True):
            with Horizontal(classes="field"):
                yield Static(field.label, classes="label", markup=False)
                yield Input(text, compact=True)  # what is typed replaces what stands there
                yield Static(field.help, classes="muted", markup=False)
        yield Static(id="bench-progress")
        with ScrollableContainer(can_focus=False):
            yield Static(id="bench-results")

    def keys(self) -> tuple[tuple[str, str, str], ...]:
        return (
            ("Enter", "measure", "run"),
            ("Esc", "end, close", "leave"),
            ("^e", "CSV, JSON, Markdown", "export"),
            ("^arrows", "scroll", "scroll('down')"),
        )

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self.show_results("Looking at what was measured so far.")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_run()

    def action_run(self) -> None:
        if not self._measuring:
            self.post_message(BenchAsked(words_of([field.value for field in self.query(Input)])))

    def action_leave(self) -> None:
        """End a run, and only then the page."""
        if self._measuring:
            self.post_message(BenchStopAsked())
        else:
            self.dismiss(None)

    def action_export(self) -> None:
        self.post_message(ExportAsked())

    def action_scroll(self, way: str) -> None:
        scroll = self.query_one(ScrollableContainer)
        {
            "up": scroll.scroll_page_up,
            "down": scroll.scroll_page_down,
            "left": scroll.scroll_page_left,
            "right": scroll.scroll_page_right,
        }[way](animate=False)

    # -- what is shown

    def begin(self) -> None:
        self._measuring, self._over = True, []
        self._tell(Content(f"{self.glyphs.starting} Warming up."))

    def step(self, step: Mapping[str, Any]) -> None:
        """One line of `gpudeck bench --events`."""
        done, wanted, failed = step.get("done", 0), step.get("wanted", 0), step.get("failed", 0)
        finished = step.get("finished")
        where = f"level {step.get('place', 0) + 1} of {step.get('levels', 0)}: {step.get('level', 0):g}"
        failures = f", {failed} failed" if failed else ""
        if isinstance(finished, dict):
            speed = finished.get("tokens_per_s")
            self._over.append(f"{where}, {f'{speed:,.1f} tokens/s' if speed else 'nothing came'}{failures}")
        full, empty = self.glyphs.bar(done / wanted if wanted else 0.0, _BAR)
        bar = Content.assemble((full, "$primary"), (empty, "$text-muted"), f"  {done}/{wanted}{failures}")
        told = [Content.styled(f"{self.glyphs.ready} {line}", "$text-muted") for line in self._over]
        now = [] if isinstance(finished, dict) else [Content.assemble(f"{self.glyphs.running} {where}  ", bar)]
        self._tell(Content("\n").join([*told, *now]))

    def end(self, sentence: str, *, failed: bool) -> None:
        self._measuring = False
        sign = self.glyphs.blocked if failed else self.glyphs.ready
        self._tell(Content.styled(f"{sign} {printable(sentence)}", "$error" if failed else "$success"))

    def show_results(self, text: str) -> None:
        """Lines that are printable already, each as wide as it is."""
        shown = self.query_one("#bench-results", Static)
        shown.update(Content(text))
        shown.styles.width = max((Content(line).cell_length for line in text.splitlines()), default=1)
        self.query_one(ScrollableContainer).scroll_home(animate=False)

    def _tell(self, content: Content) -> None:
        self.query_one("#bench-progress", Static).update(content)


def words_of(texts: Sequence[str]) -> tuple[str, ...]:
    """The form as words of `gpudeck bench`; what is wrong in a field is told by that command."""
    engines, *rest = (text.strip() for text in texts)
    words = [word for word in engines.replace(",", " ").split() if not word.startswith("-")]
    for field, text in zip(FIELDS[1:-1], rest[:-1], strict=True):
        if text:
            words.append(f"{field.option}={text.replace(' ', '')}")
    first, _, last = rest[-1].replace(" ", "").partition(",")
    words += [f"--first-token={first}"] if first else []
    words += [f"--p99={last}"] if last else []
    return tuple(words)
