"""Conversations come back from their files as they were."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpudeck.services.errors import OperatorError
from gpudeck.services.http.conversation import Exchange, exchanges, messages, read, written
from gpudeck.services.http.conversation_file import load
from gpudeck.services.http.events import Message

TEXTS = st.text(alphabet=st.one_of(st.sampled_from("\n\\# userasitn"), st.characters(exclude_categories=["Cs"])))


@pytest.mark.parametrize("name", ["talk.json", "talk.md", "TALK.MD"])
@given(
    turns=st.lists(st.builds(Message, st.sampled_from(["system", "user", "assistant"]), TEXTS)).map(
        lambda turns: [*turns, Message("user", "q")]
    )
)
@example(turns=[Message("user", "## user\n\\## assistant\n\\\\## system"), Message("assistant", "\n\n## end\n\n")])
def test_a_file_gives_back_what_was_said(name: str, turns: list[Message]) -> None:
    assert read(name, written(name, turns)) == tuple(turns)


def test_a_list_of_messages_as_other_programs_keep_it() -> None:
    assert read("x.json", '[{"role": "user", "content": "hi"}, {"role": "tool"}, 3]') == (Message("user", "hi"),)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]", '{"messages": 3}', "# hello"])
@pytest.mark.parametrize("name", ["x.json", "x.md"])
def test_what_is_no_conversation_is_refused(name: str, text: str) -> None:
    with pytest.raises(OperatorError, match="holds no conversation"):
        read(name, text)


def test_turns_and_exchanges() -> None:
    found = (Exchange("a", "b"), Exchange("lost"), Exchange("c", "d"))
    turns = messages("Be brief.", found)
    assert [turn.content for turn in turns] == ["Be brief.", "a", "b", "c", "d"]
    assert exchanges(turns) == ("Be brief.", (found[0], found[2]))
    assert messages("", ()) == ()


def test_a_file_is_loaded_or_refused_in_a_sentence(tmp_path: Path) -> None:
    kept = tmp_path / "talk.md"
    turns = (Message("user", "a\r\nb"), Message("assistant", "c"))
    kept.write_text(written("talk.md", turns), encoding="utf-8", newline="")
    assert load(f" {kept} ") == turns
    kept.write_bytes(b"\xff\xfe")
    for path, said in ((kept, "it is no text"), (tmp_path, "Is a directory"), (tmp_path / "none", "No such file")):
        with pytest.raises(OperatorError, match=said):
            load(str(path))
