"""Real texts of failures (tests/data/failures.jsonl): rule, text, and where the text comes from.

`vllm x.y` is what that version itself writes; `owner/repo#n` is a public report that quotes it.  Lines stand as they
were logged, prefixes and all; paths are made neutral.
"""

import json
from pathlib import Path

_FILE = Path(__file__).parents[2] / "data" / "failures.jsonl"
_ROWS = [json.loads(line) for line in _FILE.read_text(encoding="utf-8").splitlines()]
TEXTS: tuple[tuple[str, str, str], ...] = tuple((row["rule"], row["text"], row["source"]) for row in _ROWS)
