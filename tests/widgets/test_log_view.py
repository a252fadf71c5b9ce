"""The log pane driven by keys and mouse in a headless app."""

from collections.abc import Callable

from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Input

from gpudeck.services.engine.types import LogLine
from gpudeck.widgets.log_buffer import LogBuffer
from gpudeck.widgets.log_line import Level
from gpudeck.widgets.log_pane import LogPane, NewBelow
from gpudeck.widgets.log_view import LogView


class _Harness(App[None]):
    def compose(self) -> ComposeResult:
        yield LogPane()

    @property
    def pane(self) -> LogPane:
        return self.query_one(LogPane)


def _lines(count: int, start: int = 0) -> list[LogLine]:
    return [LogLine(f"INFO 12-01 01:17:56 [a.py:1] line {number}") for number in range(start, start + count)]


async def _until(pilot: Pilot[None], true: Callable[[], bool]) -> None:
    for _ in range(200):
        if true():
            return
        await pilot.pause(0.02)
    raise AssertionError("did not come about")


def _shown(pane: LogPane) -> list[str]:
    return [pane.view.render_line(y).text.rstrip() for y in range(pane.view.scrollable_content_region.height)]


async def test_it_follows_the_end_until_the_operator_scrolls_up() -> None:
    app = _Harness()
    async with app.run_test(size=(80, 12)) as pilot:
        view = app.pane.view
        view.focus()
        app.pane.extend(_lines(50))
        await _until(pilot, lambda: any("line 49" in row for row in _shown(app.pane)))
        await pilot.press("pageup")
        await _until(pilot, lambda: not view.following)
        before = _shown(app.pane)
        app.pane.extend(_lines(7, 50))
        await _until(pilot, lambda: view.new_below == 7)
        assert _shown(app.pane) == before
        below = app.query_one(NewBelow)
        await _until(pilot, lambda: below.display)
        assert "7 new lines below" in str(below.render())
        await pilot.click(NewBelow)
        await _until(pilot, lambda: "line 56" in _shown(app.pane)[-1])
        assert view.following
        await _until(pilot, lambda: not below.display)


async def test_pausing_holds_the_view_and_end_follows_again() -> None:
    app = _Harness()
    async with app.run_test(size=(80, 12)) as pilot:
        app.pane.view.focus()
        app.pane.extend(_lines(50))
        await _until(pilot, lambda: any("line 49" in row for row in _shown(app.pane)))
        await pilot.press("space")
        app.pane.extend(_lines(3, 50))
        await _until(pilot, lambda: app.pane.view.new_below == 3)
        assert "line 49" in _shown(app.pane)[-1]
        await pilot.press("end")
        await _until(pilot, lambda: "line 52" in _shown(app.pane)[-1])


async def test_what_is_dropped_does_not_move_what_is_read() -> None:
    app = _Harness()
    async with app.run_test(size=(80, 12)) as pilot:
        app.pane.extend(_lines(100_000))
        await _until(pilot, lambda: any("line 99999" in row for row in _shown(app.pane)))
        app.pane.view.focus()
        await pilot.press("pageup")
        await _until(pilot, lambda: not app.pane.view.following)
        before = _shown(app.pane)
        app.pane.extend(_lines(500, 100_000))
        await _until(pilot, lambda: app.pane.view.skipped == 500 and app.pane.view.new_below == 500)
        assert _shown(app.pane) == before
        await _until(pilot, lambda: "500 older lines skipped" in str(app.pane.border_subtitle))


async def test_searching_goes_from_hit_to_hit_and_escape_ends_it() -> None:
    app = _Harness()
    async with app.run_test(size=(80, 12)) as pilot:
        view = app.pane.view
        view.focus()
        app.pane.extend(_lines(60))
        await _until(pilot, lambda: any("line 59" in row for row in _shown(app.pane)))
        await pilot.press("slash", *"line 1")
        await pilot.press("enter")
        assert view.search is not None
        assert len(view.search.hits) == 11
        first = view.current
        await pilot.press("n")
        assert view.current == view.search.step(first or 0, 1)
        await pilot.press("N")
        assert view.current == first
        assert any(f"line {first}" in row for row in _shown(app.pane))
        assert "hit" in str(app.pane.border_subtitle)
        await pilot.press("escape")
        await _until(pilot, lambda: view.search is None and not app.query_one(Input).display)


async def test_e_goes_to_the_first_error_and_l_leaves_only_errors() -> None:
    app = _Harness()
    async with app.run_test(size=(80, 12)) as pilot:
        view = app.pane.view
        view.focus()
        app.pane.extend([*_lines(30), LogLine("ValueError: first"), *_lines(30, 30), LogLine("ValueError: second")])
        await _until(pilot, lambda: len(view.buffer.errors) == 2)
        await pilot.press("e")
        assert view.current == 30
        assert any("ValueError: first" in row for row in _shown(app.pane))
        await pilot.press("E")
        assert view.current == 61
        await pilot.press("l", "l")
        assert view.level is Level.ERROR
        await _until(pilot, lambda: view.virtual_size.height == 2)
        assert [row for row in _shown(app.pane) if row] == ["ValueError: first", "ValueError: second"]
        assert view.text() == "ValueError: first\nValueError: second\n"


async def test_wrapping_shows_the_whole_of_a_long_line() -> None:
    app = _Harness()
    async with app.run_test(size=(40, 12)) as pilot:
        app.pane.view.focus()
        app.pane.extend([LogLine("x" * 60 + "the end")])
        await pilot.press("w")
        await _until(pilot, lambda: any("the end" in row for row in _shown(app.pane)))
        await pilot.resize_terminal(30, 12)
        await _until(pilot, lambda: any("the end" in row for row in _shown(app.pane)))
        assert app.pane.view.virtual_size.height == 3


async def test_foreign_text_is_shown_and_never_obeyed() -> None:
    app = _Harness()
    async with app.run_test(size=(100, 12)) as pilot:
        app.pane.title_for("[@click=app.quit]x[/]")
        app.pane.extend([LogLine("\x1b]0;title\x07 \x1b[2J [bold red]x[/] [@click=app.quit]q[/] \u202edesrever")])
        await _until(pilot, lambda: "^[]0;title^G ^[[2J [bold red]x[/] [@click=app.quit]q[/]" in _shown(app.pane)[0])
        assert "<U+202E>" in _shown(app.pane)[0]
        assert r"\[@click=app.quit]x\[/]" in str(app.pane.border_title)


async def test_clearing_begins_another_log() -> None:
    app = _Harness()
    async with app.run_test(size=(80, 12)) as pilot:
        app.pane.title_for("gemma")
        app.pane.extend(_lines(5))
        await _until(pilot, lambda: any("line 4" in row for row in _shown(app.pane)))
        app.pane.clear()
        app.pane.title_for("coder")
        await pilot.pause()
        assert not any(_shown(app.pane))
        assert "Nothing logged yet by coder." in str(app.query_one("#log-empty").render())


async def test_a_view_may_be_given_a_smaller_ring() -> None:
    app = _Harness()
    async with app.run_test() as pilot:
        view = LogView(LogBuffer(max_lines=10))
        await app.mount(view)
        view.extend(_lines(25))
        await _until(pilot, lambda: view.virtual_size.height == 10)
        assert view.skipped == 15
