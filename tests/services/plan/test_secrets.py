"""Keys and tokens: known by their names, never told, and never let onto a command line."""

import pytest

from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.secrets import (
    Secrets,
    checked_secret,
    is_secret,
    refuse_exposed,
    secret_options,
    secrets_of,
    without_secrets,
)
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement

KEYED = EngineSpec(
    "x",
    "/m",
    Placement(((0,),)),
    EngineOptions(extra=("--api_key=k1", "--seed", "1", "--hf-token", "hf_1", "--api-server-count", "2")),
    environment=(("VLLM_API_KEY", "k0"), ("AWS_SECRET_ACCESS_KEY", "s"), ("HF_HOME", "/hf")),
)


@pytest.mark.parametrize(
    "name", ["VLLM_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "api_key"]
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", ["HF_HOME", "TOKENIZERS_PARALLELISM", "KEYBOARD", "VLLM_MAX_TOKENS", "HF_TOKEN_PATH"])
def test_names_of_what_everyone_may_read(name: str) -> None:
    assert not is_secret(name)


def test_options_in_each_of_vllms_spellings() -> None:
    words = ("--api-key", "a"), ("--api-key=a",), ("--api_key", "a"), ("--api-k", "a"), ("--api_key=a",)
    assert all(secret_options(each) == {"VLLM_API_KEY": "a"} for each in words)
    assert secret_options(("--hf-token", "t", "--hf-config-path", "c")) == {"HF_TOKEN": "t"}
    assert secret_options(("--hf-token", "--api-server-count", "2")) == {}  # the token that huggingface-cli keeps


def test_a_spec_is_parted_into_what_may_be_shown_and_what_not() -> None:
    assert dict(secrets_of(KEYED).values) == {"VLLM_API_KEY": "k1", "AWS_SECRET_ACCESS_KEY": "s", "HF_TOKEN": "hf_1"}
    shown = without_secrets(KEYED)
    assert shown.environment == (("HF_HOME", "/hf"),)
    assert shown.options.extra == ("--seed", "1", "--api-server-count", "2")


def test_a_repr_tells_names_alone() -> None:
    secrets = Secrets((("VLLM_API_KEY", "hush"),))
    assert "hush" not in repr(secrets)
    assert "VLLM_API_KEY" in repr(secrets)
    assert secrets
    assert secrets.sets_key
    assert not Secrets()


@pytest.mark.parametrize("value", ["", " \n", "two words", "ключ", "a\x1bb", "k" * 5000, "first\nsecond"])
def test_what_is_no_key_is_refused_without_being_told(value: str) -> None:
    with pytest.raises(OperatorError, match="The value for VLLM_API_KEY") as refusal:
        checked_secret("VLLM_API_KEY", value)
    assert not value.strip() or value.strip() not in str(refusal.value)


def test_the_line_end_of_a_file_is_none_of_the_key() -> None:
    assert checked_secret("HF_TOKEN", "hf_1\r\n") == "hf_1"


@pytest.mark.parametrize(
    ("words", "variables", "way_out"),
    [
        (("--api-key", "hush"), {}, "--api-key-file"),
        (("--api_key=hush",), {}, "--api-key-file"),
        (("--hf-token", "hush"), {}, "--hf-token-file"),
        ((), {"HF_TOKEN": "hush"}, "--hf-token-file"),
        ((), {"S3_SECRET_ACCESS_KEY": "hush"}, "S3_SECRET_ACCESS_KEY=…"),
    ],
)
def test_what_everyone_could_read_is_refused_with_the_way_out(
    words: tuple[str, ...], variables: dict[str, str], way_out: str
) -> None:
    with pytest.raises(OperatorError) as refusal:
        refuse_exposed(words, variables, "/etc/gpudeck/vllm-x.env")
    assert way_out in str(refusal.value)
    assert "/etc/gpudeck/vllm-x.env" in str(refusal.value)
    assert "hush" not in str(refusal.value)
