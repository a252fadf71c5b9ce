"""A spec survives its journey through a unit's text, and a damaged one is refused by the field's name."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.spec_json import dumps, loads
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement

SPEC = EngineSpec("llama", "/models/llama", Placement(((0, 2), (1, 3))), EngineOptions(max_model_len=8192))

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
whole = st.integers(-(2**53), 2**53)
specs = st.builds(
    EngineSpec,
    name=st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,20}", fullmatch=True),
    model=texts,
    placement=st.builds(
        Placement,
        stages=st.lists(st.lists(whole, max_size=4).map(tuple), max_size=4).map(tuple),
        replicas=st.integers(0, 8),
    ),
    options=st.builds(
        EngineOptions,
        host=texts,
        port=whole,
        served_model_name=st.none() | texts,
        max_model_len=st.none() | whole,
        gpu_memory_utilization=st.none() | st.floats(allow_nan=False, allow_infinity=False),
        enforce_eager=st.booleans(),
        extra=st.lists(texts, max_size=3).map(tuple),
    ),
    layer_partition=st.none() | st.lists(whole, max_size=4).map(tuple),
    program=st.lists(texts, max_size=3).map(tuple),
    environment=st.lists(st.tuples(texts, texts), max_size=3).map(tuple),
    shared_gpus=st.lists(whole, max_size=3).map(tuple),
    user=st.none() | texts,
    quiet=st.booleans(),
)


@given(specs)
def test_round_trip_on_one_line_of_ascii(spec: EngineSpec) -> None:
    text = dumps(spec)
    assert text.isascii()
    assert text.isprintable()
    assert loads(text) == spec


def test_the_key_order_is_that_of_the_words() -> None:
    assert list(json.loads(dumps(SPEC)))[:4] == ["name", "model", "placement", "options"]


def damaged(path: str, value: Any) -> str:
    document = json.loads(dumps(SPEC))
    place = document
    *parents, last = path.split(".")
    for parent in parents:
        place = place[parent]
    place[last] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("name", "Two Words", "Two Words"),
        ("name", "../etc", "engine's name"),
        ("model", 7, "model"),
        ("model", "a\0b", "NUL"),
        ("placement", [], "placement"),
        ("placement.stages", [[0, "1"]], r"placement.stages\[0\]\[1\]"),
        ("placement.replicas", True, "placement.replicas"),
        ("placement.stages", [[10**30]], "whole number"),
        ("options.port", "8000", "options.port"),
        ("options.gpu_memory_utilization", "much", "options.gpu_memory_utilization"),
        ("options.enforce_eager", 1, "options.enforce_eager"),
        ("options.colour", "red", "colour"),
        ("environment", [["A"]], r"environment\[0\]"),
        ("layer_partition", 3, "layer_partition"),
    ],
)
def test_a_wrong_field_is_named(path: str, value: Any, named: str) -> None:
    with pytest.raises(OperatorError, match=named):
        loads(damaged(path, value))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, "x" * (1 << 19), '{"name": "a"}'])
def test_what_is_no_spec_is_refused(text: str) -> None:
    with pytest.raises(OperatorError):
        loads(text)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_nothing_but_a_refusal_comes_of_foreign_json(value: object) -> None:
    document = json.loads(dumps(SPEC))
    for field in document:
        with suppress(OperatorError):
            assert isinstance(loads(json.dumps({**document, field: value})), EngineSpec)
