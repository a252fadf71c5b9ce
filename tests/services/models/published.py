"""Figures of published models: what their config.json says of size, their parameters, and bytes of KV cache a token.

Parameters are those that the models' pages give, without layers for multi-token prediction; `kv_bytes` are those of one
token in all layers that keep it, at 16 bits an element.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[2] / "data" / "published_models.jsonl"


@dataclass(frozen=True, slots=True)
class Published:
    name: str
    config: dict[str, Any]
    parameters: int
    kv_bytes: int


PUBLISHED = tuple(Published(**json.loads(line)) for line in DATA.read_text().splitlines())
