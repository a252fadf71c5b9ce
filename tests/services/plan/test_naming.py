"""Engine names that systemd, the file system and an operator can live with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.naming import checked_name, name_for, valid_name


@pytest.mark.parametrize("name", ["a", "llama-3.1-8b", "0", "x_y.z-"])
def test_good_names(name: str) -> None:
    assert valid_name(name)
    assert checked_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "-a", ".a", "A", "a b", "a/b", "../a", "a\n", "a\x1b[2J", "é", "a@b", "a%n", "x" * 65, "a\n\n[Service]"],
)
def test_bad_names_are_refused_in_one_printable_sentence(name: str) -> None:
    assert not valid_name(name)
    with pytest.raises(OperatorError) as caught:
        checked_name(name)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b-instruct"),
        ("/models/Qwen2.5 7B (local)/", "qwen2.5-7b-local"),
        ("/models/mistral.Q4_K_M.gguf", "mistral.q4_k_m"),
        ("/", "engine"),
        ("", "engine"),
        ("///..", "engine"),
    ],
)
def test_names_from_models(model: str, name: str) -> None:
    assert name_for(model) == name


def test_a_taken_name_gets_a_number() -> None:
    assert name_for("x/llama", {"llama", "llama-2"}) == "llama-3"
    long = "m" * 64
    assert name_for(long, {long}) == "m" * 62 + "-2"


@given(st.text(max_size=200), st.sets(st.sampled_from(["engine", "a", "b"])))
def test_every_model_gets_a_valid_name(model: str, taken: set[str]) -> None:
    name = name_for(model, taken)
    assert valid_name(name)
    assert name not in taken
