"""How many tokens a tokenizer has, read from its files alone."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpudeck.services.models.fields import ModelError, read_json_object
from gpudeck.services.models.hub_cache import cache_root, is_hub_id, snapshot

_FILE = "tokenizer.json"
_MAX_FILE = 64 << 20  # Gemma 3's, the largest known, has 33 MB
_MOST_TOKENS = 1 << 24


def tokenizer_tokens(path: str, environment: Mapping[str, str] = os.environ) -> int | None:
    """One more than the greatest token number in the directory's, or cached hub id's, tokenizer.json.

    None where there is none, or it can not be read: such a tokenizer is not judged.
    """
    try:
        directory = Path(path).expanduser()
        if not directory.is_dir():
            found = snapshot(path, cache_root(environment)) if is_hub_id(path) else None
            if found is None:
                return None
            directory = found
        return _tokens(read_json_object(directory / _FILE, _MAX_FILE))
    except (ModelError, OSError, ValueError, RuntimeError):
        return None


def _tokens(document: dict[str, Any]) -> int | None:
    model = document.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    numbers: list[object] = []
    if isinstance(vocabulary, dict):
        numbers += vocabulary.values()
    elif isinstance(vocabulary, list):  # Unigram: a token's number is its place
        numbers.append(len(vocabulary) - 1)
    added = document.get("added_tokens")
    numbers += [entry.get("id") for entry in added if isinstance(entry, dict)] if isinstance(added, list) else []
    known = [number for number in numbers if isinstance(number, int) and 0 <= number < _MOST_TOKENS]
    return max(known) + 1 if known else None
