"""An engine spec as one line of JSON: how a unit carries what it was made from."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.naming import checked_name
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from gpudeck.services.text import printable

# A spec is a few hundred characters; json.loads of a hostile file must not eat the panel's memory.
MAX_TEXT = 1 << 18
_INT_LIMIT = 1 << 53  # what every JSON reader keeps exactly


def dumps(spec: EngineSpec) -> str:
    """One line of ASCII with the fields in the order of the dataclasses; `loads` gives back an equal spec."""
    return json.dumps(asdict(spec), separators=(",", ":"), allow_nan=False)


def loads(text: str) -> EngineSpec:
    """The spec that `dumps` wrote.  Raises OperatorError naming the field that is missing, unknown or wrong."""
    if len(text) > MAX_TEXT:
        raise OperatorError(f"The engine spec has {len(text)} characters, more than any spec needs: write it anew.")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OperatorError(f"The engine spec is no JSON ({printable(str(error))}): write it anew.") from None
    fields = _object(document, "spec", EngineSpec)
    placement = _object(fields["placement"], "placement", Placement)
    options = _object(fields["options"], "options", EngineOptions)
    partition = fields["layer_partition"]
    return EngineSpec(
        name=checked_name(_text(fields["name"], "name")),
        model=_text(fields["model"], "model"),
        placement=Placement(
            stages=_list(placement["stages"], "placement.stages", _stage),
            replicas=_whole(placement["replicas"], "placement.replicas"),
        ),
        options=EngineOptions(
            **{name: _OPTION_READERS[name](value, f"options.{name}") for name, value in options.items()}
        ),
        layer_partition=None if partition is None else _list(partition, "layer_partition", _whole),
        program=_list(fields["program"], "program", _text),
        environment=_list(fields["environment"], "environment", _pair),
        shared_gpus=_list(fields["shared_gpus"], "shared_gpus", _whole),
        user=_maybe(_text)(fields["user"], "user"),
        quiet=_flag(fields["quiet"], "quiet"),
    )


def _object(value: object, field: str, kind: type) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(field, "an object", value)
    expected = list(kind.__dataclass_fields__)  # type: ignore[attr-defined]
    for name in value:
        if name not in expected:
            raise OperatorError(
                f"The engine spec's {field} has an unknown field {printable(repr(name[:64]))}: remove it."
            )
    for name in expected:
        if name not in value:
            raise OperatorError(f"The engine spec's {field} lacks the field {name!r}: write it anew.")
    return value


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise _wrong(field, "a text", value)
    if "\0" in value:
        raise OperatorError(f"The engine spec's {field} holds a NUL character, which no command can carry.")
    return value


def _whole(value: object, field: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _INT_LIMIT:
        raise _wrong(field, "a whole number", value)
    return value


def _number(value: object, field: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        raise _wrong(field, "a number", value)
    return value


def _flag(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(field, "true or false", value)
    return value


def _list(value: object, field: str, read: Callable[[object, str], Any]) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _wrong(field, "a list", value)
    return tuple(read(entry, f"{field}[{place}]") for place, entry in enumerate(value))


def _stage(value: object, field: str) -> tuple[int, ...]:
    return _list(value, field, _whole)


def _pair(value: object, field: str) -> tuple[str, str]:
    pair = _list(value, field, _text)
    if len(pair) != 2:
        raise _wrong(field, "a name and a value", value)
    return pair[0], pair[1]


def _maybe(read: Callable[[object, str], Any]) -> Callable[[object, str], Any]:
    return lambda value, field: None if value is None else read(value, field)


def _extra(value: object, field: str) -> tuple[str, ...]:
    return _list(value, field, _text)


_OPTION_READERS: dict[str, Callable[[object, str], Any]] = {
    "host": _text,
    "port": _whole,
    "served_model_name": _maybe(_text),
    "max_model_len": _maybe(_whole),
    "gpu_memory_utilization": _maybe(_number),
    "max_num_seqs": _maybe(_whole),
    "max_num_batched_tokens": _maybe(_whole),
    "kv_cache_dtype": _maybe(_text),
    "quantization": _maybe(_text),
    "dtype": _maybe(_text),
    "load_format": _maybe(_text),
    "enforce_eager": _flag,
    "extra": _extra,
}


def _wrong(field: str, wanted: str, value: object) -> OperatorError:
    shown = printable(repr(value)[:80])
    return OperatorError(f"The engine spec's {field} must be {wanted}, not {shown}.")
