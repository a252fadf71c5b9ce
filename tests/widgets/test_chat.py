"""The chat pane driven by keys, and by an app that answers as an engine would."""

import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Static

from gpudeck.widgets.chat import ChatPane
from gpudeck.widgets.chat_input import ChatInput
from gpudeck.widgets.chat_turn import Reasoning, Turn, shown_text
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.messages import ChatCancelled, ChatSubmitted


class _Harness(App[None]):
    def __init__(self, glyphs: Glyphs | None = None) -> None:
        super().__init__()
        self._glyphs = glyphs
        self.sent: list[str] = []
        self.back = 0
        self.cancelled = 0

    def compose(self) -> ComposeResult:
        yield ChatPane(glyphs=self._glyphs)

    def on_mount(self) -> None:
        self.pane.set_target("gemma", True)
        self.pane.focus_input()

    def on_chat_submitted(self, message: ChatSubmitted) -> None:
        self.sent.append(message.text)
        self.back = message.back

    def on_chat_cancelled(self, _message: ChatCancelled) -> None:
        self.cancelled += 1

    @property
    def pane(self) -> ChatPane:
        return self.query_one(ChatPane)

    @property
    def shown(self) -> str:
        """Everything that stands on the screen."""
        return "\n".join(
            "".join(segment.text for segment in strip) for strip in self.screen._compositor.render_strips()
        )


async def _until(pilot: Pilot[None], true: Callable[[], bool]) -> None:
    for _ in range(300):
        if true():
            return
        await pilot.pause(0.02)
    raise AssertionError("did not come about")


async def test_enter_sends_and_ctrl_j_begins_a_new_line() -> None:
    app = _Harness()
    async with app.run_test() as pilot:
        await pilot.press(*"one", "ctrl+j", *"two", "enter")
        await _until(pilot, lambda: app.sent == ["one\ntwo"])
        assert app.query_one(ChatInput).text == ""


async def test_nothing_is_sent_to_an_engine_that_is_not_ready_and_the_text_stays() -> None:
    app = _Harness()
    async with app.run_test() as pilot:
        app.pane.set_target("gemma", False)
        await pilot.press(*"hello", "enter")
        await pilot.pause()
        assert app.sent == []
        assert app.query_one(ChatInput).text == "hello"
        assert "gemma is not ready" in str(app.pane.border_subtitle)


async def test_up_and_down_go_through_what_was_sent_and_back_to_the_draft() -> None:
    app = _Harness()
    async with app.run_test() as pilot:
        field = app.query_one(ChatInput)
        await pilot.press(*"first", "enter", *"second", "enter", *"draft")
        await pilot.press("up")
        assert field.text == "second"
        await pilot.press("up", "up")
        assert field.text == "first"
        await pilot.press("down", "down")
        assert field.text == "draft"


async def test_an_answer_comes_in_pieces_and_ends_with_its_figures() -> None:
    app = _Harness()
    async with app.run_test() as pilot:
        app.pane.begin("What is TP?")
        await _until(pilot, lambda: "waiting for the first token" in app.shown)
        for piece in ("It ", "is **ten", "sor** parallelism.\r", "\n\n- fast", " links"):
            app.pane.append(piece)
        app.pane.finish("41 tokens/s")
        await _until(pilot, lambda: not app.pane.answering)
        await _until(pilot, lambda: "41 tokens/s" in app.shown)
        assert "It is tensor parallelism." in app.shown
        assert "• fast links" in app.shown
        assert "waiting" not in app.shown
        assert app.query_one(Turn).answer == "It is **tensor** parallelism.\n\n- fast links"


async def test_many_pieces_are_drawn_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    app = _Harness()
    drawn: list[str] = []
    async with app.run_test() as pilot:
        app.pane.begin("q")
        await pilot.pause()
        turn = app.query_one(Turn)
        speak = turn.speak

        async def counted(text: str) -> None:
            drawn.append(text)
            await speak(text)

        monkeypatch.setattr(turn, "speak", counted)
        for number in range(500):
            app.pane.append(f"{number} ")
        app.pane.finish("")
        await _until(pilot, lambda: not app.pane.answering)
    assert "".join(drawn) == "".join(f"{number} " for number in range(500))
    assert len(drawn) <= 3


async def test_a_question_that_is_edited_takes_the_place_of_those_behind_it() -> None:
    app = _Harness()
    async with app.run_test() as pilot:
        for question in ("one", "two", "three"):
            app.pane.begin(question)
            app.pane.append(f"answer {question}")
            app.pane.finish("")
        await _until(pilot, lambda: "answer three" in app.shown)
        app.pane.edit("two", 2)
        await pilot.press(*"?", "enter")
        await _until(pilot, lambda: app.sent == ["two?"])
        assert app.back == 2
        app.pane.drop(2)
        await _until(pilot, lambda: [turn.question for turn in app.query(Turn)] == ["one"])
        # Escape leaves the edit, and with it the place that it would have taken.
        app.pane.edit("one", 1)
        await pilot.press("escape", *"new", "enter")
        await _until(pilot, lambda: app.sent == ["two?", "new"])
        assert app.back == 0


async def test_notes_stand_where_they_came() -> None:
    app = _Harness()
    async with app.run_test() as pilot:
        app.pane.begin("q")
        app.pane.note("no [b]template[/b] \x1b[2J")
        app.pane.append("The answer.")
        app.pane.note("calls a tool")
        app.pane.finish("1 s")
        await _until(pilot, lambda: "1 s" in app.shown)
        places = [app.shown.index(text) for text in ("no [b]template[/b] ^[[2J", "The answer.", "calls a tool", "1 s")]
        assert places == sorted(places)


async def test_a_loaded_conversation_is_shown_whole() -> None:
    app = _Harness()
    async with app.run_test() as pilot:
        app.pane.begin("before")
        app.pane.finish("")
        app.pane.show_past([("first", "one"), ("second", "two")])
        await _until(pilot, lambda: "two" in app.shown and not app.pane.answering)
        assert [(turn.question, turn.answer) for turn in app.query(Turn)] == [("first", "one"), ("second", "two")]


async def test_reasoning_folds_when_the_answer_begins_and_opens_with_a_key() -> None:
    app = _Harness()
    async with app.run_test() as pilot:
        app.pane.begin("q")
        app.pane.append_reasoning("first I think\nthen I think more")
        await _until(pilot, lambda: "then I think more" in app.shown)
        app.pane.append("The answer.")
        app.pane.finish("")
        await _until(pilot, lambda: "The answer." in app.shown)
        assert "reasoning, 7 words" in app.shown
        assert "then I think more" not in app.shown
        app.query_one(Reasoning).focus()
        await pilot.press("enter")
        await _until(pilot, lambda: "then I think more" in app.shown)


async def test_what_had_come_stays_when_the_answer_fails() -> None:
    app = _Harness()
    async with app.run_test() as pilot:
        app.pane.begin("q")
        app.pane.append("half an ans")
        app.pane.fail("The engine ended [while] answering.")
        await _until(pilot, lambda: "The engine ended [while] answering." in app.shown)
        assert "half an ans" in app.shown
        assert not app.pane.answering


async def test_escape_cancels_only_an_answer_that_is_coming() -> None:
    app = _Harness()
    async with app.run_test() as pilot:
        await pilot.press("escape")
        await pilot.pause()
        assert app.cancelled == 0
        app.pane.begin("q")
        await pilot.pause()
        await pilot.press("escape")
        await _until(pilot, lambda: app.cancelled == 1)


async def test_a_new_question_closes_one_that_never_ended() -> None:
    app = _Harness()
    async with app.run_test(size=(80, 40)) as pilot:
        app.pane.begin("one")
        app.pane.append("partly")
        app.pane.begin("two")
        app.pane.append("in full")
        app.pane.finish("done")
        await _until(pilot, lambda: not app.pane.answering and "in full" in app.shown)
        assert "partly" in app.shown
        assert "Another question was sent before this answer ended." in app.shown


async def test_an_answer_is_never_obeyed() -> None:
    app = _Harness()
    async with app.run_test(size=(100, 40)) as pilot:
        app.pane.begin("[@click=app.quit]q[/]")
        app.pane.append(
            "[@click=app.quit]x[/] [site](http://a.b) <http://c.d> ![i](u) <b>tag</b> \x1b[2J &#x202e;\n\n"
            "| [bold]h[/] |\n|---|\n| [red]c[/] |\n\n```[x]\n[@click=app.bell]\x07\n```\n"
        )
        app.pane.finish("[/]")
        await _until(pilot, lambda: not app.pane.answering)
        for written in (
            "[@click=app.quit]q[/]",
            "[@click=app.quit]x[/] [site](http://a.b) <http://c.d> ![i](u) <b>tag</b> ^[[2J &#x202e;",
            "[bold]h[/]",
            "[red]c[/]",
            "[@click=app.bell]^G",
        ):
            assert written in app.shown
        metas = [
            segment.style.meta
            for strip in app.screen._compositor.render_strips()
            for segment in strip
            if segment.style is not None
        ]
        assert not any("@click" in meta for meta in metas)


async def test_old_questions_are_let_go_and_counted() -> None:
    app = _Harness()
    async with app.run_test(size=(80, 200)) as pilot:
        for number in range(45):
            app.pane.begin(f"question {number}")
            app.pane.fail("no")
        await _until(pilot, lambda: not app.pane.answering)
        await _until(pilot, lambda: len(app.query(Turn)) == 40)
        assert "5 earlier questions are no longer shown." in str(app.query_one("#chat-pruned", Static).render())


async def test_an_ascii_terminal_gets_ascii() -> None:
    app = _Harness(Glyphs.ascii())
    async with app.run_test() as pilot:
        app.pane.begin("q")
        app.pane.append("- a\n  - b\n\n|h|\n|-|\n|c|\n")
        app.pane.fail("broke")
        await _until(pilot, lambda: "X broke" in app.shown)
        turn = app.query_one(Turn).region
        rows = app.shown.splitlines()[turn.y : turn.bottom]
        assert all(row[turn.x + 2 : turn.right].isascii() for row in rows)
        assert any("* a" in row for row in rows)


def test_markdown_is_not_imported_before_there_is_an_answer() -> None:
    code = "import sys, gpudeck.widgets.chat; sys.exit('textual.widgets._markdown' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@given(st.text())
def test_shown_text_keeps_the_lines_and_no_control_character(text: str) -> None:
    shown = shown_text(text)
    assert not any(ord(character) < 32 and character != "\n" for character in shown)
    assert shown.count("\n") == text.count("\n")
