"""What a proposal costs: `python -m tests.bench.proposals` prints a table, and exits 1 where a box takes too long.

Targets: up to 8 cards in under 100 ms, 16 cards in under 1 s, on one core.  The better of two runs counts: it is what
the work takes when nothing else has the core.
"""

import random
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

from gpudeck.services.box.boxfile import load_box_file
from gpudeck.services.box.simulated import simulated_box
from gpudeck.services.box.types import GIB, Box, ComputeCapability, Gpu, Link
from gpudeck.services.plan.propose import Objective, propose
from tests.services.plan.test_grouping import BOXES
from tests.services.rules.plans import a100, h100, l40s, model, rtx3090, rtx4090, spec

MODELS = ("llama-3.1-70b", "qwen3-30b-a3b", "gemma-3-12b-text")
RUNS = 2
LIMITS = {8: 0.1, 16: 1.0}
KINDS = ("NV2", "NV4", "PIX", "PXB", "PHB", "NODE", "SYS")


def tangled(cards: int) -> Box:
    """Equal cards without any symmetry: every pair joined by a link of its own."""
    chance = random.Random(cards)
    links = tuple(Link(a, b, chance.choice(KINDS)) for a in range(cards) for b in range(a))
    return Box(tuple(replace(h100(at), numa=str(at % 2)) for at in range(cards)), links, name=f"{cards} tangled")


def bridged(cards: int) -> Box:
    half = cards // 2
    return Box(
        tuple(replace(rtx3090(at), numa=str(at // 4)) for at in range(cards)),
        tuple(Link(at, at + half, "NV4") for at in range(half)),
        name=f"{cards} on bridges",
    )


def kinds(cards: int) -> Box:
    """Four kinds of card in turn."""
    makers = (a100, rtx4090, l40s, h100)
    return Box(tuple(makers[at % 4](at) for at in range(cards)), (Link(0, 4, "NV4"),), name=f"{cards} of four kinds")


def two_kinds(cards: int) -> Box:
    half = cards // 2
    gpus = tuple((a100 if at < half else rtx4090)(at) for at in range(cards))
    return Box(gpus, tuple(Link(a, b, "NV12") for a in range(half) for b in range(a)), name=f"{cards} of two kinds")


def all_different(cards: int) -> Box:
    gpus = tuple(Gpu(at, f"Card {at}", (24 + 4 * at) * GIB, ComputeCapability(8, at % 4)) for at in range(cards))
    return Box(gpus, name=f"{cards} all different")


def boxes() -> Iterator[Box]:
    for name in ("mixed", "bridges", "two-sockets", "nvswitch", "sixteen"):
        yield simulated_box(name).box
    for name in ("01-v100-16g-8x-dgx1-cube-mesh", "28-a6000-8x-four-pairs", "26-h200-nvl-8x-two-islands"):
        yield load_box_file(BOXES / f"{name}.json").box
    for make in (tangled, bridged, two_kinds, kinds, all_different):
        yield make(8)
        yield make(16)


def slowest(box: Box) -> tuple[float, str]:
    """Seconds of the slowest question, and which it was."""
    found = []
    for name in MODELS:
        facts = model(name)
        for objective in Objective:
            best = float("inf")
            for _ in range(RUNS):
                start = time.process_time()
                propose(box, facts, spec(max_model_len=None), objective=objective)
                best = min(best, time.process_time() - start)
            found.append((best, f"{name}, {objective.value}"))
    return max(found)


def main() -> int:
    late = False
    print(f"{'box':34} {'cards':>5} {'slowest':>10} {'limit':>8}   question")
    for box in boxes():
        seconds, question = slowest(box)
        limit = LIMITS[8 if len(box.gpus) <= 8 else 16]
        late = late or seconds > limit
        mark = "" if seconds <= limit else "  too slow"
        print(f"{box.name:34} {len(box.gpus):5} {seconds * 1e3:7.0f} ms {limit * 1e3:5.0f} ms   {question}{mark}")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
