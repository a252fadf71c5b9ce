"""What may stand in a field of the options form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.plan.types import EngineOptions
from gpudeck.widgets.option_fields import FIELDS, read_fields, texts_of

_WORDS = st.from_regex(r"[0-9A-Za-z_.\-]{1,20}", fullmatch=True)
_OPTIONS = st.builds(
    EngineOptions,
    host=st.sampled_from(["127.0.0.1", "0.0.0.0", "::1", "box-01.local"]),
    port=st.integers(1, 65535),
    served_model_name=st.none() | _WORDS,
    max_model_len=st.none() | st.integers(1, 10_000_000),
    gpu_memory_utilization=st.none() | st.integers(1, 100).map(lambda percent: percent / 100),
    max_num_seqs=st.none() | st.integers(1, 4096),
    max_num_batched_tokens=st.none() | st.integers(1, 100_000),
    kv_cache_dtype=st.none() | _WORDS,
    quantization=st.none() | _WORDS,
    dtype=st.none() | _WORDS,
    load_format=st.none() | _WORDS,
    enforce_eager=st.booleans(),
    extra=st.lists(st.sampled_from(["--seed", "7", "it's", 'a "b"', "x y", "{}"]), max_size=4).map(
        lambda words: ("--trust-remote-code", *words)
    ),
)


@given(_OPTIONS)
def test_options_go_through_the_form_unchanged(options: EngineOptions) -> None:
    named, errors = read_fields(texts_of("gemma", options), {})
    assert errors == {}
    assert named is not None
    assert (named.name, named.options) == ("gemma", options)


@pytest.mark.parametrize(
    ("attribute", "text", "sentence"),
    [
        ("name", "", "An engine needs a name"),
        ("name", "Gemma 3", "can not be an engine's name"),
        ("port", "", "--port takes a number from 1 to 65535, like 8000."),
        ("port", "65536", "--port takes a number from 1 to 65535, like 8000."),
        ("port", "٣", "--port takes a number from 1 to 65535, like 8000."),
        ("host", "a b", "--host takes an address or a host name"),
        ("max_model_len", "0", "--max-model-len takes a whole number from 1 to 100,000,000, like 32768."),
        ("max_model_len", "many", "--max-model-len takes a whole number"),
        ("gpu_memory_utilization", "1.2", "--gpu-memory-utilization takes a share above 0 and up to 1, like 0.92."),
        ("gpu_memory_utilization", "nan", "--gpu-memory-utilization takes a share above 0 and up to 1, like 0.92."),
        ("dtype", "half --port 1", "--dtype takes one word, like half."),
        ("served_model_name", "two words", "--served-model-name takes one name without blanks"),
        ("extra", "--chat-template 'x", "A quotation mark is not closed"),
        ("extra", "--api_key=hush", "A key on the command line is there for everyone to read"),
        ("user", "no one", "user takes the name of an account"),
        ("api_key", "two words", "The value for VLLM_API_KEY is more than one word"),
        ("extra", "model", "Options begin with a dash: what is model for?"),
        ("extra", "--a\x1b[2J", "An option holds a character that can not be printed"),
    ],
)
def test_what_can_not_stand_in_a_field_is_told_in_a_sentence(attribute: str, text: str, sentence: str) -> None:
    texts = texts_of("gemma", EngineOptions()) | {attribute: text}
    named, errors = read_fields(texts, {})
    assert named is None
    assert list(errors) == [attribute]
    assert sentence in errors[attribute]


@pytest.mark.parametrize(("text", "value"), [("32k", 32_000), ("32K", 32_768), ("1M", 1_048_576), ("16,384", 16_384)])
def test_whole_numbers_take_vllms_suffixes(text: str, value: int) -> None:
    named, _ = read_fields(texts_of("gemma", EngineOptions()) | {"max_model_len": text}, {})
    assert named is not None
    assert named.options.max_model_len == value


def test_a_share_may_be_given_in_per_cent() -> None:
    named, _ = read_fields(texts_of("gemma", EngineOptions()) | {"gpu_memory_utilization": "85%"}, {})
    assert named is not None
    assert named.options.gpu_memory_utilization == 0.85


def test_what_another_engine_uses_is_refused_by_its_name() -> None:
    taken = {"name:coder": "coder", "port:8001": "coder"}
    _, errors = read_fields(texts_of("coder", EngineOptions(port=8001)), taken)
    assert errors == {
        "name": "name coder is coder's already: choose another.",
        "port": "--port 8001 is coder's already: choose another.",
    }


def test_every_option_has_a_field_under_vllms_name() -> None:
    attributes = {field.attribute for field in FIELDS} - {"name", "user", "api_key", "hf_token"}
    assert attributes == set(EngineOptions.__dataclass_fields__)
    for field in FIELDS:
        if field.attribute not in ("name", "extra", "user", "api_key", "hf_token"):
            assert field.label == "--" + field.attribute.replace("_", "-")


def test_keys_come_out_of_their_fields_and_never_into_one() -> None:
    texts = texts_of("gemma", EngineOptions(), "vllm")
    assert (texts["user"], texts["api_key"], texts["hf_token"]) == ("vllm", "", "")
    named, errors = read_fields(texts | {"api_key": "k1", "hf_token": "hf_1"}, {})
    assert errors == {}
    assert named is not None
    assert named.user == "vllm"
    assert named.secrets.values == (("VLLM_API_KEY", "k1"), ("HF_TOKEN", "hf_1"))
    assert "k1" not in repr(named)
