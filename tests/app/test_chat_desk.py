"""A conversation with a server that answers as the test says."""

import asyncio
import json

import pytest

from gpudeck.app.chat_desk import NO_TEMPLATE, ChatDesk, ChatFace, told
from gpudeck.services.http.conversation import ChatSettings, Exchange
from gpudeck.services.http.events import Done, Message, Usage
from tests.services.http.stub import Stub, answer, serving, stream

CHAT = "/v1/chat/completions"


class Shown:
    """What stands in the chat pane."""

    def __init__(self) -> None:
        self.text = ""
        self.reasoning = ""
        self.notes: list[str] = []
        self.ends: list[tuple[str, str]] = []

    @property
    def face(self) -> ChatFace:
        def text(more: str) -> None:
            self.text += more

        def reasoning(more: str) -> None:
            self.reasoning += more

        return ChatFace(
            text,
            reasoning,
            self.notes.append,
            lambda figures: self.ends.append(("finish", figures)),
            lambda sentence: self.ends.append(("fail", sentence)),
        )


def piece(**delta: object) -> str:
    return json.dumps({"choices": [{"delta": delta, "finish_reason": None}]})


END = json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]})


def sent(stub: Stub) -> list[list[dict[str, str]]]:
    """The messages of each request, oldest request first."""
    return [json.loads(body)["messages"] for path, _, body in stub.requests if path == CHAT]


async def test_an_answer_streams_and_the_next_question_knows_it() -> None:
    shown = Shown()
    desk = ChatDesk(shown.face)
    async with serving() as stub:
        stub.replies[CHAT] = stream(piece(reasoning="hm"), piece(content="Good "), piece(content="day"), END, "[DONE]")
        await desk.ask(stub.url, "m", "hello")
        assert (shown.text, shown.reasoning) == ("Good day", "hm")
        [(kind, figures)] = shown.ends
        assert kind == "finish"
        assert "first token" in figures
        await desk.ask(stub.url, "m", "again")
        assert sent(stub)[1] == [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "Good day"},
            {"role": "user", "content": "again"},
        ]
        # With another engine a new conversation begins, with the same one it goes on.
        assert desk.turn_to("other")
        assert not desk.turn_to("other")
        await desk.ask(stub.url, "m", "new")
        assert sent(stub)[2] == [{"role": "user", "content": "new"}]


async def test_a_question_that_got_no_answer_is_not_sent_again() -> None:
    shown = Shown()
    desk = ChatDesk(shown.face)
    async with serving() as stub:
        stub.replies[CHAT] = answer(400, json.dumps({"error": {"message": "too long"}}))
        await desk.ask(stub.url, "m", "first")
        assert shown.ends[0][0] == "fail"
        assert "too long" in shown.ends[0][1]
        stub.replies[CHAT] = stream(piece(content="yes"), END, "[DONE]")
        await desk.ask(stub.url, "m", "second")
        assert sent(stub)[1] == [{"role": "user", "content": "second"}]


async def test_an_answer_that_breaks_off_stays() -> None:
    shown = Shown()
    desk = ChatDesk(shown.face)
    async with serving() as stub:
        stub.replies[CHAT] = stream(piece(content="half"), end="")
        await desk.ask(stub.url, "m", "hello")
        assert shown.text == "half"
        assert shown.ends[-1][0] == "fail"
        await desk.ask(stub.url, "m", "more")
        assert {"role": "assistant", "content": "half"} in sent(stub)[1]


async def test_cancelling_hangs_up_and_says_so() -> None:
    shown = Shown()
    desk = ChatDesk(shown.face)
    async with serving() as stub:

        async def endless(writer: asyncio.StreamWriter) -> None:
            writer.write(stream(piece(content="x"), end=""))
            await writer.drain()
            await asyncio.Event().wait()

        stub.replies[CHAT] = endless
        asking = asyncio.ensure_future(desk.ask(stub.url, "m", "hello"))
        while not shown.text:
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert shown.ends == [("fail", "Cancelled; the engine was told to stop.")]
        await asyncio.wait_for(stub.hung_up.wait(), 20)


async def test_nobody_listens() -> None:
    shown = Shown()
    await ChatDesk(shown.face).ask("http://127.0.0.1:1", "m", "hello")
    assert shown.ends[0][0] == "fail"
    assert "Nothing answers at http://127.0.0.1:1" in shown.ends[0][1]


async def test_settings_go_with_every_question() -> None:
    shown = Shown()
    desk = ChatDesk(shown.face)
    desk.settings = ChatSettings(system="Be brief.", temperature=0.0, max_tokens=9, stop=("END",))
    async with serving() as stub:
        stub.replies[CHAT] = stream(piece(content="yes"), END, "[DONE]")
        await desk.ask(stub.url, "m", "hello")
        body = json.loads(stub.requests[-1][2])
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (body["temperature"], body["max_tokens"], body["stop"]) == (0.0, 9, ["END"])


async def test_asking_again_forgets_what_came_after() -> None:
    shown = Shown()
    desk = ChatDesk(shown.face)
    async with serving() as stub:
        stub.replies[CHAT] = stream(piece(content="yes"), END, "[DONE]")
        for question in ("one", "two", "three"):
            await desk.ask(stub.url, "m", question)
        assert [desk.question(back) for back in (0, 1, 3, 4)] == [None, "three", "one", None]
        await desk.ask(stub.url, "m", "two, better", back=2)
        assert [turn["content"] for turn in sent(stub)[-1]] == ["one", "yes", "two, better"]
        assert [turn.content for turn in desk.turns] == ["one", "yes", "two, better", "yes"]


async def test_a_loaded_conversation_goes_on() -> None:
    shown = Shown()
    desk = ChatDesk(shown.face)
    turns = [Message("system", "s"), Message("user", "q"), Message("assistant", "a")]
    assert desk.load(turns) == (Exchange("q", "a"),)
    assert not desk.turn_to("first")
    assert list(desk.turns) == turns
    async with serving() as stub:
        stub.replies[CHAT] = stream(piece(content="yes"), END, "[DONE]")
        await desk.ask(stub.url, "m", "more")
        assert [turn["content"] for turn in sent(stub)[0]] == ["s", "q", "a", "more"]


async def test_tool_calls_refusals_and_a_missing_template_are_said() -> None:
    shown = Shown()
    desk = ChatDesk(shown.face)
    call = {"index": 0, "function": {"name": "weather", "arguments": "{}"}}
    async with serving() as stub:
        stub.replies[CHAT] = stream(piece(tool_calls=[call]), END, "[DONE]")
        await desk.ask(stub.url, "m", "one")
        stub.replies[CHAT] = stream(piece(tool_calls=[call]), end="")  # cut: the call that had come stays
        await desk.ask(stub.url, "m", "two")
        assert shown.notes == ["The model calls a tool: weather({})"] * 2
        stub.replies[CHAT] = stream(piece(refusal="I can "), piece(refusal="not."), END, "[DONE]")
        await desk.ask(stub.url, "m", "three")
        assert (shown.text, shown.notes[2:]) == ("I can not.", ["The model refuses:"])
        stub.replies[CHAT] = answer(400, json.dumps({"error": {"message": "you must provide a chat template"}}))
        stub.replies["/v1/completions"] = stream(json.dumps({"choices": [{"text": "x", "finish_reason": "stop"}]}))
        await desk.ask(stub.url, "m", "four")
        assert shown.notes[3:] == [NO_TEMPLATE]


def test_figures_are_told_as_far_as_they_are_known() -> None:
    assert told(Done("stop", 2.0, None, None)) == "2.0 s"
    whole = told(Done("length", 2.25, 0.25, Usage(3, 41)))
    assert whole == "first token 0.25 s · 20.0 tokens/s · 3 + 41 tokens · 2.2 s · cut at max tokens"
