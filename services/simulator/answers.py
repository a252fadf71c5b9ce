"""What the simulated engine says: that it is one, and what it was asked."""

import json
import re
from collections.abc import Sequence
from typing import Any

from gpudeck.services.simulator.memory import Load
from gpudeck.services.simulator.options import Options

_QUOTED = 160  # characters of the prompt
_TOKEN = re.compile(r"\s*\S{1,8}")  # a token of real models has about four characters


def tokens(text: str) -> list[str]:
    """Cut a text into pieces that stand in for tokens; joined they are the text without trailing blanks."""
    return _TOKEN.findall(text)


def prompt_of(messages: object) -> tuple[str, str]:
    """The whole text of a conversation and the last thing that the user said; content parts are joined."""
    if not isinstance(messages, list):
        return "", ""
    turns = [(str(turn.get("role", "")), _text(turn.get("content"))) for turn in messages if isinstance(turn, dict)]
    last = next((text for role, text in reversed(turns) if role == "user"), "")
    return "\n".join(text for _, text in turns), last


def answer(asked: str, options: Options, load: Load) -> str:
    """Markdown, a few sentences long."""
    words = len(asked.split())
    quoted = " ".join(asked.split())
    quoted = quoted if len(quoted) <= _QUOTED else quoted[: _QUOTED - 1] + "…"
    return (
        "Hello! I am gpudeck's **simulated engine**: no model was loaded and nothing was computed, so please do not "
        f"take this for an answer. You sent {words} {'word' if words == 1 else 'words'}:\n\n"
        f"> {quoted or '(nothing)'}\n\n"
        f"On real cards `{options.served_name}` would answer here, {_placed(options, load)}. "
        f"Its KV cache would hold {load.kv_cache_tokens:,} tokens, that is "
        f"{load.kv_cache_tokens / load.max_model_len:.1f} requests of {load.max_model_len:,} tokens at once.\n\n"
        "What is real: the process, its log, this stream and everything that gpudeck does with them."
    )


def structured(response_format: object) -> str | None:
    """What output that is held to a form would be here: JSON of that schema; None where no form was asked for."""
    if not isinstance(response_format, dict) or response_format.get("type") not in ("json_object", "json_schema"):
        return None
    wrapped = response_format.get("json_schema")
    schema = wrapped.get("schema") if isinstance(wrapped, dict) else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return json.dumps(
        {name: _instance(each) for name, each in properties.items()} if isinstance(properties, dict) else {}
    )


def _instance(schema: object) -> object:
    """The first value that a property's schema allows, as far as a simulation needs it."""
    if not isinstance(schema, dict):
        return None
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    return {"boolean": True, "integer": 0, "number": 0, "string": "", "array": [], "object": {}}.get(
        str(schema.get("type"))
    )


def _placed(options: Options, load: Load) -> str:
    per_stage = options.tensor_parallel_size
    gpus = [str(rank.gpu) for rank in load.ranks]
    stages = ["+".join(gpus[start : start + per_stage]) for start in range(0, len(gpus), per_stage)]
    if len(stages) == 1:
        return f"on card {stages[0]}" if per_stage == 1 else f"on the cards {stages[0]} as one tensor-parallel group"
    kind = "pipeline stages" if options.data_parallel_size == 1 else "stages and copies"
    return f"on the {kind} {' → '.join(stages)}"


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts: Sequence[Any] = content
        return " ".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
    return ""
