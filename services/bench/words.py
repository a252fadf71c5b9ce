"""How results are said: short enough for a table's cell."""

from collections import Counter
from pathlib import PurePosixPath

from gpudeck.services.bench.types import Level, Result, Target
from gpudeck.services.text import printable

NOTHING = "-"


def duration(seconds: float | None) -> str:
    """ "8.4 ms", "184 ms", "1.24 s"."""
    if seconds is None:
        return NOTHING
    if seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def amount(value: float | None) -> str:
    """ "0.42", "38.8", "1,204"."""
    if value is None:
        return NOTHING
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def queue_words(level: Level) -> str:
    """The 99th percentile in the queue, as far as the engine's buckets tell it."""
    if level.queue is None:
        return NOTHING
    return f"< {duration(level.queue.finest)}" if level.queue.p99 <= level.queue.finest else duration(level.queue.p99)


def percent(share: float | None) -> str:
    return NOTHING if share is None else f"{share:+.0%}"


def placement_words(result: Result) -> str:
    """ "TP2 on A100 1,2" for each engine, "elsewhere" where its placement is not known."""
    names = {card.gpu: short_card(card.name) for card in result.cards}
    return " + ".join(_target_words(target, names) for target in result.targets)


def _target_words(target: Target, names: dict[int, str]) -> str:
    if target.spec is None:
        return printable(target.url)
    placement = target.spec.placement
    sizes = (
        ("TP", placement.tensor_parallel_size),
        ("PP", placement.pipeline_parallel_size),
        ("DP", placement.replicas),
    )
    shape = " ".join(f"{word}{size}" for word, size in sizes if size > 1) or "alone"
    kinds = Counter(names.get(gpu, "GPU") for gpu in placement.gpus)
    cards = " + ".join(f"{count} × {kind}" if count > 1 else kind for kind, count in kinds.items())
    split = f" [{','.join(map(str, target.spec.layer_partition))}]" if target.spec.layer_partition else ""
    return printable(f"{shape}{split} on {cards} ({','.join(map(str, placement.gpus))})")


def short_card(name: str) -> str:
    """ "RTX 4090" for "NVIDIA GeForce RTX 4090": what tells cards of one box apart."""
    for word in ("NVIDIA ", "GeForce ", "Tesla "):
        name = name.replace(word, "")
    return name


def model_words(result: Result) -> str:
    """The model's own name, without the folders that it lies in."""
    return printable(" + ".join(PurePosixPath(part.rstrip("/")).name or part for part in result.model.split(" + ")))


def level_words(result: Result, level: Level) -> str:
    """ "16 at once", "2.5 a second"."""
    return f"{level.level:g} a second" if result.workload.open_loop else f"{level.level:g} at once"


def limits_words(result: Result, level: Level) -> str:
    kept = level.within(result.limits)
    return NOTHING if kept is None else "kept" if kept else "missed"
