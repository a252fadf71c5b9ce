"""The form of a measured run, and its progress."""

import pytest
from textual.app import App

from gpudeck.widgets.bench_page import BenchPage, words_of
from gpudeck.widgets.glyphs import Glyphs


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (("chat", "512", "128", "1,4", "own", "200,1000"),
         ("chat", "--input-tokens=512", "--output-tokens=128", "--concurrency=1,4", "--load=own", "--first-token=200",
          "--p99=1000")),
        (("a, b", "", "", " 1, 4 ", "", ""), ("a", "b", "--concurrency=1,4")),
        (("--export=csv x", "1", "1", "1", "auto", "5"),
         ("x", "--input-tokens=1", "--output-tokens=1", "--concurrency=1", "--load=auto", "--first-token=5")),
        (("", "", "", "", "", ",9"), ("--p99=9",)),
    ],
)  # fmt: skip
def test_the_form_becomes_words_of_the_command(texts: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert words_of(texts) == words


class Shown(App[None]):
    def __init__(self, page: BenchPage) -> None:
        super().__init__()
        self.page = page

    def on_mount(self) -> None:
        self.push_screen(self.page)

    def text(self) -> str:
        strips = self.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip) for strip in strips)


async def test_progress_and_results_are_data_and_never_markup() -> None:
    page = BenchPage("chat", Glyphs.unicode())
    app = Shown(page)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        page.begin()
        page.step({"place": 0, "levels": 2, "level": 1.0, "done": 3, "wanted": 8, "failed": 1, "finished": None})
        page.show_results("[red]a[/red] result")
        await pilot.pause()
        assert "level 1 of 2: 1" in app.text()
        assert "3/8, 1 failed" in app.text()
        assert "[red]a[/red] result" in app.text()
        page.step({"place": 0, "levels": 2, "level": 1.0, "done": 8, "wanted": 8, "failed": 0,
                   "finished": {"tokens_per_s": 1234.5, "seconds": 1}})  # fmt: skip
        await pilot.pause()
        assert "1,234.5 tokens/s" in app.text()
        page.end("It broke [off]\x1b[2J", failed=True)
        await pilot.pause()
        assert "It broke [off]^[[2J" in app.text()
