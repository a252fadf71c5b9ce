"""The tiny model is whole in itself; that vLLM takes it, the engine tests show."""

import json
from pathlib import Path
from typing import Any

from tests.rigs.tiny_model import CONFIG, TRAINING_TEXT, VOCAB_SIZE, byte_alphabet, make


def read(model: Path, name: str) -> Any:
    return json.loads((model / name).read_text(encoding="utf-8"))


def test_tokenizer_fills_the_vocabulary_and_spells_every_text(tmp_path: Path) -> None:
    bpe = read(make(tmp_path), "tokenizer.json")["model"]
    vocabulary = bpe["vocab"]
    assert sorted(vocabulary.values()) == list(range(VOCAB_SIZE))
    assert set(byte_alphabet()) <= vocabulary.keys()
    assert all({left, right, left + right} <= vocabulary.keys() for left, right in bpe["merges"])
    assert any("".join(pair).removeprefix("Ġ") in TRAINING_TEXT.split() for pair in bpe["merges"])


def test_special_tokens_are_those_that_config_and_template_name(tmp_path: Path) -> None:
    model = make(tmp_path)
    tokens = {token["id"]: token["content"] for token in read(model, "tokenizer.json")["added_tokens"]}
    settings = read(model, "tokenizer_config.json")
    config = read(model, "config.json")
    assert tokens[config["bos_token_id"]] == settings["bos_token"]
    assert tokens[config["eos_token_id"]] == settings["eos_token"]
    assert tokens[2] in settings["chat_template"]


def test_config_entries_can_be_replaced(tmp_path: Path) -> None:
    config = read(make(tmp_path, num_attention_heads=3), "config.json")
    assert config == CONFIG | {"num_attention_heads": 3}
