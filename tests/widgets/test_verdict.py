"""The verdict in word and sign, and the findings under a cursor."""

from textual.app import App, ComposeResult

from gpudeck.services.plan.findings import Finding, Judgement, Severity
from gpudeck.services.plan.types import Placement
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.lines import width_of
from gpudeck.widgets.verdict import Verdict
from tests.widgets.board_boxes import judge

ERROR = Finding("heads-divisible", Severity.ERROR, "32 heads can not be shared by 3 cards.", "Use 1, 2 or 4 cards.")
WARNING = Finding("slow-link", Severity.WARNING, "Cards 0 and 1 reach each other over SYS.", None)
NOTE = Finding("headroom", Severity.INFO, "Leave a tenth of the memory free.", "Set gpu-memory-utilization to 0.9.")


class Shown(App[None]):
    def __init__(self, glyphs: Glyphs | None = None) -> None:
        super().__init__()
        self.verdict = Verdict(glyphs=glyphs)

    def compose(self) -> ComposeResult:
        yield self.verdict

    def on_mount(self) -> None:
        self.verdict.focus()


async def test_word_sign_and_memory() -> None:
    app = Shown()
    async with app.run_test(size=(60, 12)):
        assert "pick a model" in app.verdict.plain
        app.verdict.show(judge(Placement(((0,),))))
        assert "● ready" in app.verdict.plain
        assert "KV cache 11,000 tokens · 1.5 × 8,192" in app.verdict.plain
        app.verdict.show(Judgement((WARNING, NOTE)))
        assert "▲ caution  1 warning, 1 note" in app.verdict.plain
        app.verdict.show(Judgement((ERROR, ERROR)), preview=True)
        assert "✗ blocked  if dropped here" in app.verdict.plain


async def test_findings_wrap_in_full_at_every_width() -> None:
    app = Shown()
    for width in (24, 40, 120):
        async with app.run_test(size=(width, 20)):
            app.verdict.show(Judgement((ERROR, WARNING, NOTE)))
            words = "".join(app.verdict.plain.replace("→", "").replace("▌", "").split())
            for finding in (ERROR, WARNING, NOTE):
                for part in (finding.rule, finding.message, finding.fix or ""):
                    assert part.replace(" ", "") in words
            assert all(width_of(line) <= width for line in app.verdict.lines)
        app = Shown()


async def test_the_cursor_brings_its_finding_into_view() -> None:
    app = Shown()
    async with app.run_test(size=(40, 6)) as pilot:
        app.verdict.show(Judgement((ERROR, WARNING, NOTE)))
        await pilot.press("down", "j", "down")
        assert app.verdict.chosen == NOTE
        assert app.verdict.scroll_offset.y > 0
        await pilot.press("k", "up")
        assert app.verdict.chosen == ERROR
        assert app.verdict.scroll_offset.y == 0


async def test_the_memory_stands_in_the_first_row_where_there_is_room() -> None:
    for width, rows in ((90, 1), (40, 2)):
        app = Shown()
        async with app.run_test(size=(width, 12)):
            app.verdict.show(judge(Placement(((0,),))))
            assert app.verdict.plain.startswith("● ready")
            assert "KV cache 11,000 tokens" in app.verdict.plain
            assert len(app.verdict.lines) == rows


async def test_the_cursor_stays_with_its_rule_while_the_plan_changes() -> None:
    app = Shown()
    async with app.run_test(size=(50, 20)) as pilot:
        app.verdict.show(Judgement((ERROR, WARNING, NOTE)))
        await pilot.press("down", "down")
        app.verdict.show(Judgement((NOTE,)))
        assert app.verdict.chosen == NOTE
        app.verdict.show(Judgement((ERROR,)))
        assert app.verdict.chosen == ERROR
        app.verdict.show_hint("Pick a model.")
        assert app.verdict.chosen is None
        assert app.verdict.plain == "Pick a model."


async def test_words_from_elsewhere_are_never_markup_or_control() -> None:
    app = Shown(Glyphs.ascii())
    async with app.run_test(size=(70, 20)):
        app.verdict.show(Judgement((Finding("[b]rule[/b]", Severity.ERROR, "name \x1b[2J of [red]a model[/red]"),)))
        assert "[b]rule[/b]" in app.verdict.plain
        assert "[red]a model[/red]" in app.verdict.plain
        assert "\x1b" not in app.verdict.plain
        assert app.verdict.plain.isascii()
