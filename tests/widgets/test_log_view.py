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
        assert "Nothing logged yet by coder; h lists" in str(app.query_one("#log-empty").render())


async def test_a_view_may_be_given_a_smaller_ring() -> None:
    app = _Harness()
    async with app.run_test() as pilot:
        view = LogView(LogBuffer(max_lines=10))
        await app.mount(view)
        view.extend(_lines(25))
        await _until(pilot, lambda: view.virtual_size.height == 10)
        assert view.skipped == 15


async def test_the_lines_of_one_worker_can_be_read_alone() -> None:
    app = _Harness()
    async with app.run_test(size=(80, 12)) as pilot:
        app.pane.view.focus()
        app.pane.extend(
            [LogLine(f"(Worker_TP{number % 2} pid=7) INFO 12-01 01:17:56 [a.py:1] {number}") for number in range(6)]
        )
        shown = []
        for _ in range(3):
            await pilot.press("W")
            await _until(pilot, lambda: not app.pane.view.text().count("\n") % 3)
            shown.append(app.pane.view.worker)
        assert shown == ["Worker_TP0", "Worker_TP1", None]
        assert app.pane.view.text().count("\n") == 6


async def test_a_search_begun_at_the_end_goes_to_the_newest_hit() -> None:
    app = _Harness()
    async with app.run_test(size=(80, 12)) as pilot:
        app.pane.view.focus()
        app.pane.extend([LogLine(f"{'needle' if number in (3, 40, 70) else 'hay'} {number}") for number in range(100)])
        await _until(pilot, lambda: any("hay 99" in row for row in _shown(app.pane)))
        await pilot.press("slash", *"needle", "enter")
        assert app.pane.view.current == 70
        await pilot.press("N")
        assert app.pane.view.current == 40


async def test_prefixes_are_brief_where_the_screen_is_narrow_and_b_shows_them() -> None:
    app = _Harness()
    async with app.run_test(size=(80, 12)) as pilot:
        app.pane.view.focus()
        app.pane.extend(_lines(1))
        await _until(pilot, lambda: _shown(app.pane)[0] == "01:17:56 INFO    line 0")
        await pilot.press("b")
        await _until(pilot, lambda: _shown(app.pane)[0] == "INFO 12-01 01:17:56 [a.py:1] line 0")
        await pilot.press("b")
        await pilot.resize_terminal(160, 12)
        await _until(pilot, lambda: _shown(app.pane)[0] == "01:17:56 INFO    line 0")
        app.pane.view.brief = None
        await pilot.resize_terminal(150, 12)
        await _until(pilot, lambda: _shown(app.pane)[0] == "INFO 12-01 01:17:56 [a.py:1] line 0")
        assert app.pane.view.text() == "INFO 12-01 01:17:56 [a.py:1] line 0\n"


async def test_lines_can_be_selected_with_the_mouse_and_copied() -> None:
    app = _Harness()
    async with app.run_test(size=(80, 12)) as pilot:
        app.pane.extend([LogLine("first line"), LogLine("漢字 second"), LogLine("third")])
        await _until(pilot, lambda: _shown(app.pane)[2] == "third")
        await pilot.mouse_down(LogView, offset=(6, 0))
        await pilot.hover(LogView, offset=(4, 1))
        await pilot.mouse_up(LogView, offset=(4, 1))
        await _until(pilot, lambda: (app.screen.get_selected_text() or "").startswith("line\n漢字"))


async def test_another_theme_colours_the_lines_anew() -> None:
    app = _Harness()
    async with app.run_test(size=(80, 12)) as pilot:
        app.pane.extend([LogLine("ValueError: x")])
        await _until(pilot, lambda: "ValueError" in _shown(app.pane)[0])
        before = [segment.style for segment in app.pane.view.render_line(0)]
        app.theme = "textual-light"
        await _until(pilot, lambda: [segment.style for segment in app.pane.view.render_line(0)] != before)


async def test_a_title_may_be_given_before_the_pane_is_on_screen() -> None:
    app = _Harness()
    async with app.run_test() as pilot:
        pane = LogPane()
        pane.title_for("gemma")
        await app.mount(pane)
        await pilot.pause()
        assert str(pane.border_title) == "Log  gemma"


async def test_what_was_left_out_is_counted_on_the_frame() -> None:
    app = _Harness()
    async with app.run_test(size=(100, 12)) as pilot:
        app.pane.extend([LogLine("gpudeck: 4,711 lines are left out", left_out=4711), *_lines(3)])
        await _until(pilot, lambda: "4,711 lines came too fast" in str(app.pane.border_subtitle))
        app.pane.clear()
        await _until(pilot, lambda: "too fast" not in str(app.pane.border_subtitle))


async def test_an_earlier_start_is_shown_beside_what_is_followed() -> None:
    app = _Harness()
    async with app.run_test(size=(100, 12)) as pilot:
        pane, view = app.pane, app.pane.view
        pane.title_for("coder")
        pane.extend(_lines(5), reason=2)
        pane.show_start("01 Dec, killed", [*_lines(40, 900), LogLine("ValueError: it")], 40)
        await _until(pilot, lambda: "ValueError: it" in "\n".join(_shown(pane)))
        assert "coder, 01 Dec, killed" in str(pane.border_title)
        pane.extend(_lines(2, 5), reason=6)
        view.focus()
        await pilot.press("escape")
        await _until(pilot, lambda: "line 6" in "\n".join(_shown(pane)))
        assert len(view.buffer) == 7
        await pilot.press("r")
        assert view.current == 6
        # Another engine is selected while an earlier start is in view.
        pane.show_start("01 Dec, killed", _lines(3, 900), None)
        pane.title_for("chat")
        assert view.buffer.end == 7
