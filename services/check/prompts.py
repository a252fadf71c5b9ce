"""The canned prompts, and what their answers must have: short, long context, JSON, Chinese."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpudeck.services.check.types import Item, Outcome
from gpudeck.services.http.events import Done, Message
from gpudeck.services.text import printable

LONGEST = 16_384  # tokens of the long prompt: enough to fill many blocks, and no minute of prefill
UNKNOWN_CONTEXT = 4096  # where the server does not tell its own
_PART = 0.7  # of the context that the long prompt takes
_ANSWER_ROOM = 64  # tokens, of every answer
# Of the filler below, in the tokenizers of Llama 3, Qwen 2.5 and Gemma 2; smaller vocabularies need more, and then the
# prompt is halved until it fits.
_TOKENS_A_LINE = 14
_SHOWN = 60  # characters of an answer

CODE = "7481"
_PROPERTIES = {
    "status": {"type": "string", "enum": ["ok"]},
    "cards": {"type": "integer", "enum": [3]},
    "ready": {"type": "boolean"},
}
SCHEMA = {
    "type": "object",
    "properties": _PROPERTIES,
    "required": list(_PROPERTIES),
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Canned:
    """One prompt; `more` are further fields of the request."""

    id: str
    title: str
    text: str
    max_tokens: int = _ANSWER_ROOM
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def messages(self) -> tuple[Message, ...]:
        return (Message("user", self.text),)


@dataclass(frozen=True, slots=True)
class Heard:
    """What came back: the answer, its pieces as they were streamed, the figures of its end."""

    text: str
    reasoning: str
    pieces: int
    done: Done


SHORT = Canned("prompt-short", "short prompt", "Say hello in one short sentence.")
JSON = Canned(
    "prompt-json",
    "JSON",
    'Answer with a JSON object and nothing else: "status" is "ok", "cards" is the number 3, "ready" is true.',
    128,
    {"response_format": {"type": "json_schema", "json_schema": {"name": "status", "schema": SCHEMA}}},
)
CHINESE = Canned("prompt-chinese", "Chinese", "请用一句中文介绍一下北京。")


def long_prompt(max_model_len: int | None, part: float = 1.0) -> Canned:
    """A prompt that takes most of a context of that many tokens, with a number to be found in its middle.

    `part` below 1 shortens it, for a tokenizer that makes more of the text than was reckoned with.
    """
    context = max_model_len or UNKNOWN_CONTEXT
    tokens = min(context * _PART, LONGEST) * part
    lines = max(int(tokens / _TOKENS_A_LINE) - 6, 2)
    filler = [f"Line {number}: the engine answers while the cards are at work." for number in range(1, lines + 1)]
    filler.insert(len(filler) // 2, f"Remember this: the code is {CODE}.")
    return Canned("prompt-long", "long context", "\n".join(filler) + "\n\nWhat is the code? Answer with the number.")


def judged(prompt: Canned, heard: Heard) -> Item:
    """Whether an answer came, and in the form that was asked for.

    What a model knows is not what an engine is checked for: an answer that is wrong is a note, and only one that did
    not come, or came in a form that the engine had promised to keep out, is a failure.
    """
    words = _figures(heard)
    if not heard.text and not heard.reasoning and not (heard.done.usage and heard.done.usage.completion_tokens):
        return Item(prompt.id, prompt.title, Outcome.FAILED, f"an empty answer ({words})")
    note = _JUDGES.get(prompt.id, _no_note)(heard)
    if isinstance(note, Item):
        return Item(prompt.id, prompt.title, note.outcome, f"{note.words} ({words})")
    return Item(prompt.id, prompt.title, Outcome.PASSED, f"{note}{words}" if note else words)


def _figures(heard: Heard) -> str:
    done, words = heard.done, []
    if done.usage is not None:
        words.append(f"{done.usage.prompt_tokens:,} + {done.usage.completion_tokens:,} tokens")
    if done.ttft is not None:
        words.append(f"first after {done.ttft:.2f} s")
    if done.tokens_per_second is not None:
        words.append(f"{done.tokens_per_second:.1f} tokens/s")
    return ", ".join(words) or f"{done.seconds:.1f} s"


def _no_note(_heard: Heard) -> str:
    return ""


def _long(heard: Heard) -> str | Item:
    if CODE in heard.text or CODE in heard.reasoning:
        return "found the number in its middle, "
    return _note("an answer came, but without the number that stands in the middle of the prompt: look at it", heard)


def _json(heard: Heard) -> str | Item:
    try:
        document = json.loads(heard.text)
    except (ValueError, RecursionError):
        if heard.done.finish_reason == "length":
            return _note("the answer was cut before its JSON was whole", heard)
        return Item("", "", Outcome.FAILED, f"no JSON though it was asked for: {_shown(heard.text)}")
    if isinstance(document, dict) and set(document) == set(_PROPERTIES):
        return "of the shape that was asked for, "
    return _note("JSON, but not of the shape that was asked for", heard)


def _chinese(heard: Heard) -> str | Item:
    text = heard.text or heard.reasoning
    if "\ufffd" in text:
        return _note("characters came broken: the tokenizer, or a model that makes no sense", heard)
    if not any("\u4e00" <= character <= "\u9fff" for character in text):
        return _note("an answer came, but without Chinese characters: look at it", heard)
    return f"{_shown(text)}, "


def _note(words: str, heard: Heard) -> Item:
    text = heard.text or heard.reasoning
    return Item("", "", Outcome.NOTE, f"{words}: {_shown(text)}" if text else words)


def _shown(text: str) -> str:
    text = printable(" ".join(text.split()))
    return f"“{text if len(text) <= _SHOWN else text[: _SHOWN - 1] + '…'}”"


_JUDGES = {"prompt-long": _long, "prompt-json": _json, "prompt-chinese": _chinese}
