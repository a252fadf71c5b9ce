"""The engine list: what its rows say, and that keys and mouse move and choose."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from gpudeck.widgets.engine_list import EngineList, EngineView, engine_rows
from gpudeck.widgets.failure_card import FailureView
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.messages import EngineHighlighted, EngineSelected

_GEMMA = EngineView("gemma", "vllm-gemma.service", "ready", port=8000, shape="TP1×PP3", gpus=(0, 1, 2), scope="system")
_CODER = EngineView(
    "coder",
    "vllm-coder.service",
    "starting",
    phase="loading weights",
    progress_percent=62,
    eta="about 40 s left",
    port=8001,
    gpus=(3,),
)
_OLD = EngineView(
    "old [red]x[/]", "old.service", "failed", detail="World size 3 is larger than 2 cards.", managed=False, port=8002
)
_ALL = (_GEMMA, _CODER, _OLD)


class _Harness(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[tuple[str, str]] = []

    def compose(self) -> ComposeResult:
        yield EngineList()

    def on_engine_highlighted(self, message: EngineHighlighted) -> None:
        self.said.append(("highlighted", message.name))

    def on_engine_selected(self, message: EngineSelected) -> None:
        self.said.append(("selected", message.name))

    @property
    def engines(self) -> EngineList:
        return self.query_one(EngineList)


async def _until(pilot: Pilot[None], true: Callable[[], bool]) -> None:
    for _ in range(200):
        if true():
            return
        await pilot.pause(0.02)
    raise AssertionError("did not come about")


async def test_a_row_says_state_port_shape_and_cards() -> None:
    app = _Harness()
    async with app.run_test(size=(110, 20)) as pilot:
        app.engines.show(_ALL)
        app.engines.focus()
        await _until(pilot, lambda: "gemma" in app.engines.plain)
        rows = app.engines.plain.splitlines()
        assert "gemma" in rows[0]
        assert "ready" in rows[0]
        assert ":8000 · TP1×PP3 · cards 0,1,2 · system" in rows[0]
        assert "62 %  loading weights · about 40 s left" in rows[2]
        assert "old.service, not gpudeck's" in rows[3]
        assert "World size 3 is larger than 2 cards." in rows[4]
        assert "old [red]x[/]" in rows[3]


async def test_keys_move_the_cursor_and_enter_selects() -> None:
    app = _Harness()
    async with app.run_test() as pilot:
        app.engines.show(_ALL)
        app.engines.focus()
        await pilot.press("down", "j", "j", "k", "enter")
        await _until(
            pilot,
            lambda: (
                app.said
                == [
                    ("highlighted", "gemma"),
                    ("highlighted", "coder"),
                    ("highlighted", _OLD.name),
                    ("highlighted", "coder"),
                    ("selected", "coder"),
                ]
            ),
        )


async def test_a_click_chooses_and_a_second_one_selects() -> None:
    app = _Harness()
    async with app.run_test(size=(110, 20)) as pilot:
        app.engines.show(_ALL)
        await pilot.pause()
        await pilot.click(EngineList, offset=(5, 2))
        assert app.engines.current == "coder"
        await pilot.click(EngineList, offset=(5, 1))
        await _until(pilot, lambda: ("selected", "coder") in app.said)


async def test_the_cursor_stays_on_its_engine_while_the_others_change() -> None:
    app = _Harness()
    async with app.run_test() as pilot:
        app.engines.show(_ALL)
        app.engines.select("coder")
        chosen = []
        for views in ((_CODER, replace(_GEMMA, state="stopped")), (_GEMMA,), ()):
            app.engines.show(views)
            chosen.append(app.engines.current)
        assert chosen == ["coder", "gemma", None]
        await pilot.pause()
        assert "No vLLM engine on this box yet." in app.engines.plain


@pytest.mark.parametrize("width", [24, 40, 80, 160])
@pytest.mark.parametrize("glyphs", [Glyphs.unicode(), Glyphs.ascii()], ids=["unicode", "ascii"])
def test_no_row_is_wider_than_the_list(width: int, glyphs: Glyphs) -> None:
    odd = replace(_CODER, name="漢字" * 20, phase="p" * 200, detail="word " * 60 + "x" * 200)
    for view in (*_ALL, odd):
        for row in engine_rows(view, glyphs, width, min(20, width // 3)):
            assert cell_len("".join(text for text, _ in row)) <= width


def test_each_state_has_a_sign_of_its_own_kind() -> None:
    signs = {
        state: engine_rows(replace(_GEMMA, state=state), Glyphs.unicode(), 100, 8)[0][0][0].strip()
        for state in ("ready", "starting", "stopped", "failed", "restarting")
    }
    assert len(set(signs.values())) == 5


def _text(view: EngineView, *, chosen: bool = False, width: int = 100) -> str:
    rows = engine_rows(view, Glyphs.unicode(), width, 8, chosen=chosen)
    assert all(sum(cell_len(text) for text, _ in row) <= width for row in rows)
    return "\n".join("".join(text for text, _ in row) for row in rows)


def test_a_start_that_stands_still_lists_what_to_check_each_with_its_sign() -> None:
    checks = ((True, "model path: it is there."), (False, "memory: too little."), (None, "max-num-seqs: 256"))
    told = _text(replace(_CODER, still="nothing has moved for 3 min", checks=checks))
    assert "nothing has moved for 3 min: what to check" in told
    assert "● model path: it is there." in told
    assert "✗ memory: too little." in told
    assert "? max-num-seqs: 256" in told


def test_how_long_a_start_took_is_told_of_the_chosen_engine() -> None:
    view = replace(_GEMMA, took="ready in 46 s: loading weights 31 s")
    assert "ready in 46 s" in _text(view, chosen=True)
    assert "ready in 46 s" not in _text(view)


@pytest.mark.parametrize("width", [100, 40])
def test_what_is_to_be_said_of_a_unit_stands_with_the_key_that_shows_it(width: int) -> None:
    told = _text(replace(_GEMMA, notes=("edited by hand", "runs an older command", "\x1b[2Jodd")), width=width)
    assert "▲ edited by hand" in told
    assert told.rstrip().endswith("  u")
    assert "\x1b" not in told


def test_an_engine_among_several_has_a_block_in_its_colour() -> None:
    rows = engine_rows(replace(_GEMMA, colour=6), Glyphs.unicode(), 100, 8)
    assert ("█", "engine-1") in rows[0]
    assert not any("engine-" in style for row in engine_rows(_GEMMA, Glyphs.unicode(), 100, 8) for _, style in row)


def test_a_long_reason_leaves_room_for_what_it_means_and_the_way_out() -> None:
    reason = "ValueError: " + " ".join(f"word{number}" for number in range(60))
    unknown = EngineView("gemma", "vllm-gemma.service", "failed", detail=reason)
    known = replace(unknown, failure=FailureView("It does not fit.", "Take less."))
    whole, short = (
        ["".join(text for text, _ in row) for row in engine_rows(view, Glyphs.unicode(), 60, 8)]
        for view in (unknown, known)
    )
    assert "word59" in whole[-1]
    assert short[2].endswith("…")
    assert [row.strip() for row in short[3:]] == ["It does not fit.", "→ Take less."]
