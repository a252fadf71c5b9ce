"""A conversation as data: what an engine was asked and how, and the plain files that it is kept in.

Every text is foreign, and kept as it is.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpudeck.services.errors import OperatorError
from gpudeck.services.http.events import Message

_ROLES = ("system", "user", "assistant")
_HEADING = re.compile(rf"## ({'|'.join(_ROLES)})")
# A line of a text that looks like a heading gets a backslash, and one that looks like such a line one more.
_LIKE_HEADING = re.compile(rf"(\\*)({_HEADING.pattern})")


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """How an engine is asked.  None is the server's default."""

    url: str = ""  # a server anywhere; "" for the engine that is selected
    key_file: str = ""  # whose content is that server's API key; "" for VLLM_API_KEY
    system: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and what was answered, "" where nothing was."""

    question: str
    answer: str = ""


def messages(system: str, exchanges: Iterable[Exchange]) -> tuple[Message, ...]:
    """The turns that are sent; a question without an answer would be sent again with the next one, and is left out."""
    found = [Message("system", system)] if system else []
    for exchange in exchanges:
        if exchange.answer:
            found += [Message("user", exchange.question), Message("assistant", exchange.answer)]
    return tuple(found)


def exchanges(turns: Iterable[Message]) -> tuple[str, tuple[Exchange, ...]]:
    """The system prompt and the exchanges that the turns make."""
    system: list[str] = []
    found: list[Exchange] = []
    for turn in turns:
        if turn.role == "system":
            system.append(turn.content)
        elif turn.role == "user":
            found.append(Exchange(turn.content))
        elif found:
            found[-1] = Exchange(found[-1].question, found[-1].answer + turn.content)
    return "\n".join(system), tuple(found)


def written(name: str, turns: Iterable[Message]) -> str:
    """The turns as text for a file of that name: Markdown where it ends in .md, otherwise JSON as the API takes it."""
    if name.lower().endswith(".md"):
        return "".join(f"## {turn.role}\n\n{_marked(turn.content)}\n\n" for turn in turns)
    listed = [{"role": turn.role, "content": turn.content} for turn in turns]
    return json.dumps({"messages": listed}, ensure_ascii=False, indent=1) + "\n"


def read(name: str, text: str) -> tuple[Message, ...]:
    """The turns of a file with that name.  Raises OperatorError for what is no conversation."""
    turns = tuple(_of_markdown(text) if name.lower().endswith(".md") else _of_json(text))
    if not any(turn.role == "user" for turn in turns):
        raise OperatorError(
            'This file holds no conversation: it takes {"messages": [{"role": "user", "content": "…"}]}, or Markdown '
            "(.md) with headings `## user` and `## assistant`."
        )
    return turns


def _marked(text: str) -> str:
    return "\n".join("\\" + line if _LIKE_HEADING.fullmatch(line) else line for line in text.split("\n"))


def _of_markdown(text: str) -> Iterator[Message]:
    role, lines = "", list[str]()
    for line in text.removesuffix("\n").split("\n"):
        if _HEADING.fullmatch(line):
            if role:
                yield _unwrapped(role, lines)
            role, lines = line.removeprefix("## "), []
        else:
            lines.append(line[1:] if line.startswith("\\") and _LIKE_HEADING.fullmatch(line) else line)
    if role:
        yield _unwrapped(role, lines)


def _unwrapped(role: str, lines: list[str]) -> Message:
    """One empty line before and one behind a text are the file's own."""
    return Message(role, "\n".join(lines).removeprefix("\n").removesuffix("\n"))


def _of_json(text: str) -> Iterator[Message]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return
    listed = document.get("messages") if isinstance(document, dict) else document
    for turn in listed if isinstance(listed, list) else ():
        if isinstance(turn, dict) and turn.get("role") in _ROLES and isinstance(turn.get("content"), str):
            yield Message(turn["role"], turn["content"])
