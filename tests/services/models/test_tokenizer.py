"""A tokenizer's size, from files that others wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpudeck.services.models.tokenizer import tokenizer_tokens


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"model": {"vocab": {"a": 0, "b": 1}}, "added_tokens": [{"id": 5, "content": "<s>"}]}, 6),
        ({"model": {"vocab": {"a": 0, "b": 1}}}, 2),
        ({"model": {"vocab": [["a", -1.0], ["b", -2.0], ["c", -3.0]]}}, 3),
        ({"model": {"vocab": {"a": "x", "b": 10**30, "c": -1}}}, None),
        ({"model": "bpe", "added_tokens": {"id": 1}}, None),
        ([], None),
    ],
)
def test_a_tokenizer_file(tmp_path: Path, document: Any, expected: int | None) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    assert tokenizer_tokens(str(tmp_path), {}) == expected


@pytest.mark.parametrize("path", ["no/such-model", "/no/such/folder", "", "~nobody-here/x", "a\0b"])
def test_what_can_not_be_read_is_not_judged(path: str, tmp_path: Path) -> None:
    assert tokenizer_tokens(path, {"HF_HOME": str(tmp_path)}) is None
