"""Prompts of an exact length, the same for the same seed."""

import random
from collections.abc import Iterator

# Where the vocabulary is not known: ids that every model's tokenizer has, past the special ones of most.
_COMMON = range(100, 500)
_LARGEST = 30_000  # past this, vocabularies have special tokens and holes


def prompts(count: int, tokens: int, seed: int, vocabulary: int | None = None) -> Iterator[list[int]]:
    """Token ids for /v1/completions, which takes them as they are: no tokenizer is needed, and the count is exact."""
    ids = range(min(_COMMON.start, vocabulary // 2), min(vocabulary, _LARGEST)) if vocabulary else _COMMON
    chosen = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    for _ in range(count):
        yield chosen.choices(ids, k=tokens)


def arrivals(count: int, rate: float, seed: int) -> list[float]:
    """When the requests of an open loop are sent, in seconds from its beginning: a Poisson process, as vLLM's own."""
    chosen, at, times = random.Random(f"{seed} arrivals"), 0.0, []  # noqa: S311
    for _ in range(count):
        times.append(at)
        at += chosen.expovariate(rate)
    return times
