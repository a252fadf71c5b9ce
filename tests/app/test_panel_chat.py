"""The chat at the panel, with a server elsewhere that answers as the test says."""

import json
from pathlib import Path

import pytest
from textual.widgets import Input

from gpudeck.services.http.conversation import ChatSettings
from gpudeck.widgets.chat_form import ChatForm
from gpudeck.widgets.chat_turn import Turn
from gpudeck.widgets.path_dialog import PathDialog
from tests.app.panels import Desk, demo, panel
from tests.services.http.stub import Stub, answer, serving, stream

pytestmark = pytest.mark.panel
CHAT = "/v1/chat/completions"
KEY = "k-hush-4711"


def says(stub: Stub, text: str) -> None:
    stub.replies["/v1/models"] = answer(200, json.dumps({"data": [{"id": "far"}]}))
    stub.replies[CHAT] = stream(
        json.dumps({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}), "[DONE]"
    )


def asked(stub: Stub) -> list[list[tuple[str, str]]]:
    """The turns of each request."""
    bodies = [json.loads(body) for path, _, body in stub.requests if path == CHAT]
    return [[(turn["role"], turn["content"]) for turn in body["messages"]] for body in bodies]


async def settle(desk: Desk, **texts: str) -> None:
    """Fill in the settings of the chat and take them."""
    await desk.press("c", "ctrl+o")
    await desk.until(lambda: isinstance(desk.panel.screen, ChatForm), "the settings")
    for name, text in texts.items():
        desk.panel.screen.query_one(f"#{name}", Input).value = text
    await desk.press("ctrl+s")
    await desk.until(lambda: not isinstance(desk.panel.screen, ChatForm), "the settings taken")


async def ask(desk: Desk, text: str) -> None:
    await desk.write(text)
    await desk.press("enter")


@pytest.mark.parametrize("size", [(200, 50), (80, 24)])
async def test_a_server_elsewhere_is_asked_anew_edited_saved_and_loaded(
    home: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    key, kept = tmp_path / "key", tmp_path / "talk.json"
    key.write_text(f"{KEY}\n")
    async with serving() as stub, panel(demo(), size) as desk:
        says(stub, "It is one.")
        await settle(desk, url=f"{stub.url}/v1/", key_file=str(key), temperature="0", max_tokens="7", stop="END")
        await ask(desk, "What is it?")
        await desk.sees("It is one.")
        _, headers, body = stub.requests[-1]
        assert headers["authorization"] == f"Bearer {KEY}"
        sent = json.loads(body)
        assert (sent["model"], sent["temperature"], sent["max_tokens"], sent["stop"]) == ("far", 0.0, 7, ["END"])
        pane = desk.panel.deck.chat
        await desk.until(lambda: not pane.answering, "the answer's end")

        says(stub, "It is two.")
        await desk.press("ctrl+r")
        await desk.sees("It is two.")
        await desk.until(lambda: not pane.answering and len(pane.query(Turn)) == 1, "one turn")

        says(stub, "It is three.")
        await desk.press("ctrl+t")
        await desk.sees("What is it?")
        await ask(desk, "?")
        await desk.sees("It is three.")
        await desk.until(lambda: not pane.answering, "the answer's end")
        assert asked(stub) == [[("user", "What is it?")], [("user", "What is it?")], [("user", "What is it??")]]

        await desk.press("ctrl+s")
        await desk.until(lambda: isinstance(desk.panel.screen, PathDialog), "where to")
        desk.panel.screen.query_one(Input).value = str(kept)
        await desk.press("enter")
        await desk.hears("The conversation is in")
        assert KEY not in kept.read_text()

        await ask(desk, "forget this")
        await desk.until(lambda: len(asked(stub)) == 4 and not pane.answering, "an answer")
        await desk.press("ctrl+g")
        await desk.until(lambda: isinstance(desk.panel.screen, PathDialog), "where from")
        desk.panel.screen.query_one(Input).value = str(kept)
        await desk.press("enter")
        await desk.until(lambda: [turn.question for turn in pane.query(Turn)] == ["What is it??"], "the loaded turn")
        await ask(desk, "more")
        await desk.until(lambda: len(asked(stub)) == 5, "another request")
        assert asked(stub)[-1] == [("user", "What is it??"), ("assistant", "It is three."), ("user", "more")]
        assert KEY not in desk.shown


async def test_what_can_not_be_done_is_said(home: Path, tmp_path: Path) -> None:
    async with panel(demo()) as desk:
        await desk.press("c")
        for key, said in (
            ("ctrl+r", "no question yet"),
            ("ctrl+t", "no earlier question"),
            ("ctrl+s", "nothing to save"),
        ):
            await desk.press(key)
            await desk.hears(said)
        await settle(desk, url="http://127.0.0.1:1", key_file=str(tmp_path / "none"))
        await ask(desk, "hello")
        await desk.sees("can not be read")
        await desk.press("ctrl+o")
        await desk.until(lambda: isinstance(desk.panel.screen, ChatForm), "the settings")
        desk.panel.screen.query_one("#url", Input).value = "http://["
        await desk.press("ctrl+s")
        await desk.sees("is no address of an engine")
        await desk.press("escape")
        assert desk.panel.state.chat_url == ChatSettings("http://127.0.0.1:1").url
