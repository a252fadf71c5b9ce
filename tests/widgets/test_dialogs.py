"""The dialogs driven by keys and mouse: what they say and what they give back."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input, Static

from gpudeck.services.engine import types as engine
from gpudeck.services.models.types import ShelfEntry
from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.plan.fit import Fit
from gpudeck.services.plan.types import EngineOptions, Placement
from gpudeck.widgets.confirm import Confirm
from gpudeck.widgets.dialog import KeyButton
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.help_page import HelpGroup, HelpPage
from gpudeck.widgets.messages import ModelPicked
from gpudeck.widgets.model_picker import ModelPicker
from gpudeck.widgets.model_rows import ModelRows
from gpudeck.widgets.option_fields import NamedOptions
from gpudeck.widgets.options_form import FieldRow, OptionsForm, YesNo
from gpudeck.widgets.unit_preview import UnitPreview

_NOTHING = object()
_SIZES = pytest.mark.parametrize("size", [(80, 24), (200, 50)])


class _Harness(App[None]):
    def __init__(self, dialog: Screen[Any]) -> None:
        super().__init__()
        self.dialog = dialog
        self.result: Any = _NOTHING
        self.refusal = ""  # why no model can be read

    def compose(self) -> ComposeResult:
        yield Static("the panel")

    def on_mount(self) -> None:
        self.push_screen(self.dialog, self._take)

    def _take(self, result: Any) -> None:
        self.result = result

    def on_model_picked(self, message: ModelPicked) -> None:
        if self.refusal and isinstance(self.dialog, ModelPicker):
            self.dialog.refuse(message.path, self.refusal)
        else:
            self.screen.dismiss(message.path)

    @property
    def shown(self) -> str:
        """Everything that stands on the screen."""
        return "\n".join(
            "".join(segment.text for segment in strip) for strip in self.screen._compositor.render_strips()
        )


async def _until(pilot: Pilot[None], true: Callable[[], bool]) -> None:
    for _ in range(200):
        if true():
            return
        await pilot.pause(0.02)
    raise AssertionError("did not come about")


def _confirm() -> Confirm:
    return Confirm("Stop gemma?", ["3 requests end [without] an answer."], act="stop gemma", keep="keep it")


_UNIT = "[Service]\nExecStart=/usr/bin/vllm serve x\n"
_PREVIEW = engine.UnitPreview("/etc/systemd/system/vllm-gemma.service", _UNIT)


@_SIZES
@pytest.mark.parametrize(("key", "result"), [("y", True), ("n", False), ("escape", None)])
async def test_a_confirmation_says_what_is_lost_and_takes_y_or_n(
    size: tuple[int, int], key: str, result: bool | None
) -> None:
    app = _Harness(_confirm())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        assert "3 requests end [without] an answer." in app.shown
        assert "y stop gemma" in app.shown
        await pilot.press("enter")
        await pilot.pause()
        assert app.result is _NOTHING
        await pilot.press(key)
        await _until(pilot, lambda: app.result is result)


async def test_the_line_of_keys_takes_clicks() -> None:
    app = _Harness(_confirm())
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.click(app.screen.query(KeyButton).first())
        await _until(pilot, lambda: app.result is True)


@_SIZES
async def test_a_new_unit_is_shown_whole_and_enter_starts_it(size: tuple[int, int]) -> None:
    app = _Harness(UnitPreview(_PREVIEW, VerdictState.CAUTION, "2 findings"))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for text in (_PREVIEW.path, "A new file.", "▲ caution  2 findings", "ExecStart=/usr/bin/vllm serve x"):
            assert text in app.shown
        await pilot.press("enter")
        await _until(pilot, lambda: app.result is True)


async def test_a_changed_unit_shows_its_changes_first_and_d_shows_the_whole() -> None:
    old = "[Unit]\nDescription=old\n\n" + _UNIT
    app = _Harness(UnitPreview(replace(_PREVIEW, existing=old.replace("serve x", "serve y"))))
    async with app.run_test() as pilot:
        await pilot.pause()
        assert "- ExecStart=/usr/bin/vllm serve y" in app.shown
        assert "+ ExecStart=/usr/bin/vllm serve x" in app.shown
        await pilot.press("d")
        await _until(pilot, lambda: "serve y" not in app.shown)
        await pilot.press("escape")
        await _until(pilot, lambda: app.result is False)


async def test_a_unit_that_gpudeck_did_not_write_can_only_be_looked_at() -> None:
    app = _Harness(UnitPreview(replace(_PREVIEW, existing="[Service]\n", managed=False)))
    async with app.run_test() as pilot:
        await pilot.pause()
        assert "never overwritten" in app.shown
        assert "● ready" not in app.shown
        await pilot.press("enter", "y")
        await pilot.pause()
        assert app.result is _NOTHING
        await pilot.press("escape")
        await _until(pilot, lambda: app.result is False)


_SHELF = (
    ShelfEntry("gemma-3-12b-it", "google/gemma-3-12b-it", "hub cache", 24_400_000_000),
    ShelfEntry("broken [x]", "/srv/models/broken", "directory", None, "Its config.json names no architecture."),
    ShelfEntry("tiny", "/srv/models/tiny", "directory", 1_200_000),
)


@_SIZES
async def test_the_picker_filters_as_one_types_and_enter_picks(size: tuple[int, int]) -> None:
    app = _Harness(ModelPicker(_SHELF))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for text in ("24.4 GB", "hub cache", "broken [x]", "Its config.json names no architecture.", "3 of 3 models"):
            assert text in app.shown
        await pilot.press(*"tiny")
        await _until(pilot, lambda: "1 of 3 models" in app.shown)
        await pilot.press("enter")
        await _until(pilot, lambda: app.result == "/srv/models/tiny")


async def test_a_model_that_can_not_be_used_can_not_be_picked() -> None:
    app = _Harness(ModelPicker(_SHELF))
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("down", "down", "enter")
        await pilot.pause()
        assert app.result is _NOTHING
        await pilot.press("up", "enter")
        await _until(pilot, lambda: app.result == "/srv/models/tiny")


@pytest.mark.parametrize("typed", ["/data/x", "~/m.gguf", "Qwen/Qwen2.5-7B"])
async def test_a_path_or_hub_id_is_taken_as_typed(typed: str) -> None:
    app = _Harness(ModelPicker(None))
    async with app.run_test() as pilot:
        await pilot.pause()
        assert "Looking for models" in app.shown
        app.screen.query_one(Input).value = typed
        await _until(pilot, lambda: "as typed" in app.shown)
        await pilot.press("enter")
        await _until(pilot, lambda: app.result == typed)


async def test_models_may_come_after_the_picker_is_open_and_the_cursor_stays() -> None:
    picker = ModelPicker(None)
    app = _Harness(picker)
    async with app.run_test() as pilot:
        await pilot.pause()
        picker.show_entries(_SHELF[::2])
        await pilot.press("down")
        picker.show_entries(_SHELF)
        await pilot.press("enter")
        await _until(pilot, lambda: app.result == "/srv/models/tiny")


async def test_each_model_says_whether_it_fits_and_they_are_sorted_by_what_they_hold() -> None:
    picker = ModelPicker(_SHELF)
    app = _Harness(picker)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        assert "weighed" not in app.shown
        usable = [entry for entry in _SHELF if entry.problem is None]
        picker.show_fits({usable[0].path: Fit(VerdictState.BLOCKED, why="Its weights [x] are too large.")})
        await _until(pilot, lambda: "does not fit now: Its weights [x] are too large." in app.shown)
        assert f"1 of {len(usable)} weighed" in app.shown
        picker.show_fits({usable[1].path: Fit(VerdictState.READY, Placement(((0, 2), (1, 3))), 131072)})
        await _until(pilot, lambda: "GPU 0,2 | 1,3 · 131,072 tokens of context" in app.shown)
        await pilot.press("ctrl+s")
        await _until(pilot, lambda: "by context" in app.shown)
        assert app.shown.index("131,072") < app.shown.index("does not fit")


async def test_a_model_that_can_not_be_read_keeps_the_picker_open() -> None:
    picker = ModelPicker(_SHELF)
    app = _Harness(picker)
    async with app.run_test(size=(100, 30)) as pilot:
        picker.query_one(Input).value = "/nope"
        await _until(pilot, lambda: "as typed" in app.shown)
        app.refusal = "/nope is not there."
        await pilot.press("enter")
        await _until(pilot, lambda: "✗ /nope is not there." in app.shown)
        picker.query_one(Input).value = "/srv/models/tiny"
        app.refusal = ""
        await _until(pilot, lambda: "✗ /nope" not in app.shown)
        await pilot.press("enter")
        await _until(pilot, lambda: app.result == "/srv/models/tiny")


async def test_an_empty_shelf_says_where_was_looked_and_what_to_type() -> None:
    app = _Harness(ModelPicker((), where="Looked in /models and ~/models."))
    async with app.run_test() as pilot:
        await _until(pilot, lambda: "No model found. Looked in /models and ~/models." in app.shown)
        await pilot.press("enter")
        await pilot.pause()
        assert app.result is _NOTHING
        await pilot.press("escape")
        await _until(pilot, lambda: app.result is None)


async def test_a_second_click_on_a_model_picks_it() -> None:
    app = _Harness(ModelPicker(_SHELF))
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.click(ModelRows, offset=(5, 1))
        await pilot.click(ModelRows, offset=(5, 1))
        await _until(pilot, lambda: app.result == "/srv/models/tiny")


@_SIZES
async def test_the_options_come_back_as_they_were_set(size: tuple[int, int]) -> None:
    app = _Harness(OptionsForm("gemma", EngineOptions(port=8000)))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.press("tab", "tab", "end", "backspace", "5")
        eager = app.screen.query_one(YesNo)
        eager.focus()
        await pilot.press("space", "enter")
        await _until(pilot, lambda: app.result == NamedOptions("gemma", EngineOptions(port=8005, enforce_eager=True)))


async def test_a_wrong_field_is_told_beside_it_and_holds_the_form() -> None:
    app = _Harness(OptionsForm("gemma", EngineOptions(), taken={"port:8001": "coder"}))
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("tab", "tab", "end", "backspace", "1")
        await _until(pilot, lambda: "--port 8001 is coder's already" in app.shown)
        await pilot.press("enter")
        await pilot.pause()
        assert app.result is _NOTHING
        wrong = [row.field.attribute for row in app.screen.query(FieldRow) if row.has_class("-wrong")]
        assert wrong == ["port"]
        await pilot.press("backspace", "2", "enter")
        await _until(pilot, lambda: app.result == NamedOptions("gemma", EngineOptions(port=8002)))


async def test_an_installed_engine_keeps_its_name() -> None:
    app = _Harness(OptionsForm("gemma", EngineOptions(), rename=False))
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("x", "escape")
        await _until(pilot, lambda: app.result is None)


@_SIZES
async def test_the_help_page_lists_the_keys_by_pane(size: tuple[int, int]) -> None:
    app = _Harness(HelpPage([HelpGroup("Board", (("space", "lift a card"), ("u", "undo"))), HelpGroup("Log", ())]))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for text in ("Board", "lift a card", "Log"):
            assert text in app.shown
        await pilot.press("escape")
        await _until(pilot, lambda: app.result is None)


async def test_dialogs_are_drawn_in_ascii_where_the_terminal_has_no_more() -> None:
    app = _Harness(UnitPreview(_PREVIEW, VerdictState.BLOCKED, glyphs=Glyphs.ascii()))
    async with app.run_test() as pilot:
        await _until(pilot, lambda: "X blocked" in app.shown)
        assert "+- What will run -" in app.shown
