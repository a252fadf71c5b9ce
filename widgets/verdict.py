"""What the rules say about the plan: the verdict, the memory in a line, and the findings."""

from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType

from gpudeck.services.plan.findings import Finding, Judgement, MemoryPlan, Severity, VerdictState
from gpudeck.services.text import printable
from gpudeck.widgets.glyphs import Glyphs, joined, wrap
from gpudeck.widgets.lines import Line, LineView, spread, under, width_of
from gpudeck.widgets.messages import FixAsked

STATE_STYLES = {VerdictState.READY: "success", VerdictState.CAUTION: "warning", VerdictState.BLOCKED: "error"}
SEVERITY_STYLES = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "muted"}


def verdict_words(judgement: Judgement, glyphs: Glyphs) -> tuple[str, str]:
    """Sign and word of a verdict, `▲ caution`, and the style that goes with them."""
    return f"{glyphs.state(judgement.state)} {judgement.state.value}", STATE_STYLES[judgement.state]


def memory_words(memory: MemoryPlan, glyphs: Glyphs) -> str:
    """`KV cache 62,400 tokens · 3.8 × 16,384`: how much context fits, and how many whole ones at once.

    Of copies what one has (the least) and what all have: `KV cache 62,400 tokens a copy, 124,800 in 2 · 7.6 × 16,384`.
    """
    at_once = f"{memory.total_concurrency:.1f} {glyphs.times} {memory.max_model_len:,}"
    tokens = f"KV cache {memory.kv_cache_tokens:,} tokens"
    if memory.copies:
        tokens += f" a copy, {memory.total_tokens:,} in {len(memory.copies)}"
    return joined((tokens, at_once), glyphs.dot)


def counted(judgement: Judgement) -> str:
    """`1 error, 2 warnings`; nothing where nothing was found."""
    words = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
    counts = {severity: sum(finding.severity is severity for finding in judgement.findings) for severity in words}
    return ", ".join(
        f"{count} {words[severity]}{'' if count == 1 else 's'}" for severity, count in counts.items() if count
    )


def finding_rows(finding: Finding, width: int, glyphs: Glyphs) -> list[Line]:
    """One finding: its sign, its rule and the message, and the fix, wrapped to `width` cells.

    Behind a fix that a key can do stands that key.
    """
    style = SEVERITY_STYLES[finding.severity]
    rule = f"{printable(finding.rule)}:"
    rows: list[Line] = []
    for number, line in enumerate(wrap(f"{rule} {printable(finding.message)}", width - 4)):
        sign = f" {glyphs.severity(finding.severity)} " if number == 0 else "   "
        named = len(rule) if number == 0 and line.startswith(rule) else 0
        rows.append(((sign, style), (line[:named], f"{style} strong"), (line[named:], "text")))
    if finding.fix is not None:
        label = f"{glyphs.arrow} "
        lines = wrap(printable(finding.fix), width - 8 - len(label))
        for number, line in enumerate(lines):
            key = (("  ", ""), ("f", "primary strong")) if finding.change and number == len(lines) - 1 else ()
            rows.append((("   ", ""), (label if number == 0 else " " * len(label), "accent"), (line, "muted"), *key))
    return rows


class Verdict(LineView):
    """The judgement on the plan, with a cursor over its findings."""

    HELP = """
    ## Verdict

    What vLLM would say to this plan, before it is started: **blocked** will not start, **caution** starts at a cost or
    a risk, **ready** has nothing against it.  An arrow says the way out; behind it
    stands **f** where that key does it.
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False, id="verdict.up"),
        Binding("down,j", "move(1)", "Down", show=False, id="verdict.down"),
        Binding("enter", "fix", "Do what this finding says", id="verdict.fix"),
    ]
    DEFAULT_CSS = """
    Verdict { height: 1fr; width: 1fr; overflow-x: hidden; }
    """

    def __init__(self, *, glyphs: Glyphs | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._glyphs = glyphs or Glyphs.unicode()
        self._judgement: Judgement | None = None
        self._hint = "Place a card and pick a model to see what vLLM would say."
        self._preview = False
        self._token = ""
        self._cursor = 0
        self._owners: list[int | None] = []  # the finding that each row belongs to

    @property
    def chosen(self) -> Finding | None:
        """The finding under the cursor."""
        findings = () if self._judgement is None else self._judgement.findings
        return findings[self._cursor] if self._cursor < len(findings) else None

    @property
    def fixable(self) -> Finding | None:
        """The finding that a key mends now: the chosen one where one was chosen, else the first that can be."""
        if self.has_focus:
            return self.chosen if self.chosen is not None and self.chosen.change is not None else None
        findings = () if self._judgement is None or self._preview else self._judgement.findings
        return next((finding for finding in findings if finding.change is not None), None)

    def show_token(self, words: str) -> None:
        """Show below the memory what one token takes: `2 × 8 KV heads × … = 128 KiB a token`; "" for nothing."""
        if words != self._token:
            self._token = words
            self._draw()

    def show(self, judgement: Judgement, *, preview: bool = False) -> None:
        """Show a judgement; a `preview` says that it is of a card's drop that has not been done."""
        chosen = self.chosen
        self._judgement, self._preview = judgement, preview
        # The cursor stays with its rule while a plan changes under it.
        rules = [finding.rule for finding in judgement.findings]
        self._cursor = rules.index(chosen.rule) if chosen is not None and chosen.rule in rules else 0
        self._draw()

    def show_hint(self, sentence: str) -> None:
        """Say what is missing for a verdict."""
        self._judgement, self._hint, self._cursor = None, sentence, 0
        self._draw()

    def use_glyphs(self, glyphs: Glyphs) -> None:
        self._glyphs = glyphs
        self._draw()

    def action_move(self, step: int) -> None:
        count = 0 if self._judgement is None else len(self._judgement.findings)
        self._choose(min(max(self._cursor + step, 0), max(count - 1, 0)))

    def action_fix(self) -> None:
        if self.chosen is not None:
            self.post_message(FixAsked(self.chosen))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        return action != "fix" or (self.chosen is not None and self.chosen.change is not None)

    def on_click(self, event: events.Click) -> None:
        row = event.y - self.gutter.top + self.scroll_offset.y
        finding = self._owners[row] if 0 <= row < len(self._owners) else None
        if finding is not None:
            self._choose(finding)

    def on_resize(self) -> None:
        self._draw()

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self._draw()

    def _choose(self, finding: int) -> None:
        self._cursor = finding
        self._draw()
        self.refresh_bindings()
        rows = [row for row, owner in enumerate(self._owners) if owner == finding]
        if rows:
            # With the first finding the verdict above it comes back into view.
            self.keep_visible(0 if finding == 0 else rows[0], rows[-1])

    def _draw(self) -> None:
        width = self.room.width
        if not width:
            return
        judgement = self._judgement
        if judgement is None:
            self._owners = []
            self.show_lines([((line, "muted"),) for line in wrap(printable(self._hint), width)])
            return
        lines = self._head(judgement, width)
        owners: list[int | None] = [None] * len(lines)
        for number, finding in enumerate(judgement.findings):
            block = finding_rows(finding, width, self._glyphs)
            if self.has_focus and number == self._cursor:
                block = [self._chosen_row(line, width) for line in block]
            lines += block
            owners += [number] * len(block)
        self._owners = owners
        self.show_lines(lines)

    def _head(self, judgement: Judgement, width: int) -> list[Line]:
        glyphs = self._glyphs
        words, style = verdict_words(judgement, glyphs)
        count = counted(judgement)
        tail = "  if dropped here" if self._preview else f"  {count}" if count else "  nothing speaks against this plan"
        first: Line = ((words, f"{style} strong"), (glyphs.cut(tail, width - len(words)), "muted"))
        memory = "" if judgement.memory is None else memory_words(judgement.memory, glyphs)
        if not memory or width_of(first) + 3 + cell_len(memory) <= width:
            head = [spread(first, ((memory, "text"), (" ", "")), width) if memory else first]
        else:
            head = [first, *(((line, "text"),) for line in wrap(memory, width))]
        if self._token and memory:
            head += [((line, "muted"),) for line in wrap(self._token, width)]
        return head

    def _chosen_row(self, line: Line, width: int) -> Line:
        (first, style), *rest = line
        return under(((self._glyphs.edge, "primary"), (first[1:], style), *rest), "cursor", width)
