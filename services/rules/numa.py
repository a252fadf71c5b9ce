"""NUMA nodes inside a TP group: known from each card's affinity even where the driver says SYS for every pair."""

from collections.abc import Iterator

from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.plan.links import weakest_link
from gpudeck.services.rules.regroup import regrouped
from gpudeck.services.rules.rule import Plan, Rule, listed

CROSSING = Rule(
    "numa-crossing",
    Severity.WARNING,
    "A TP group across NUMA nodes while one node has enough cards",
    "Every all-reduce then passes the link between the processors; two cards on different sockets have been slower "
    "than one.",
    "vllm#1838; NVIDIA/go-gpuallocator#17",
)
SPANNED = Rule(
    "numa-spanned",
    Severity.INFO,
    "A TP group larger than a NUMA node",
    "Its all-reduces pass the link between the processors; a stage on each node passes on far less.",
    "vllm#1838; NVIDIA/go-gpuallocator#17",
)
RULES = (CROSSING, SPANNED)


def check(plan: Plan) -> Iterator[Finding]:
    if plan.tensor_parallel < 2:
        return
    nodes = {gpu.index: gpu.numa for gpu in plan.box.gpus}
    for place, stage in enumerate(plan.spec.placement.stages):
        cards = tuple(dict.fromkeys(card for card in stage if card in nodes))
        touched = sorted({node for card in cards if (node := nodes[card]) is not None})
        # NVLink does not pass the processors.
        if len(cards) < 2 or len(touched) < 2 or weakest_link(plan.box, cards).startswith("NV"):
            continue
        where = f"Stage {place} ({_cards(cards)}) lies on NUMA nodes {listed(touched)}"
        better = _on_one_node(plan, cards)
        if better is None:
            yield SPANNED.finding(f"{where}: its all-reduces pass the link between the processors.")
        else:
            yield CROSSING.finding(
                f"{where}, and its all-reduces pass the link between the processors; {_cards(better)} lie on node "
                f"{nodes[better[0]]}.",
                f"Put {_cards(better)} into one stage.",
                regrouped(plan, place, better) if len(stage) == len(cards) else None,
            )


def _on_one_node(plan: Plan, cards: tuple[int, ...]) -> tuple[int, ...] | None:
    """As many cards of the first one's capability and at least its memory on one node, most of them of the group."""
    first = plan.box.gpu(cards[0])
    if first is None:
        return None
    nodes: dict[str, list[int]] = {}
    for gpu in plan.box.gpus:
        like = gpu.compute_capability == first.compute_capability and gpu.memory_bytes >= first.memory_bytes
        if gpu.numa is not None and like:
            nodes.setdefault(gpu.numa, []).append(gpu.index)
    groups = [
        tuple(sorted(sorted(there, key=lambda card: (card not in cards, card))[: len(cards)]))
        for there in nodes.values()
        if len(there) >= len(cards)
    ]
    return max(groups, key=lambda group: len(set(group) & set(cards)), default=None)


def _cards(cards: tuple[int, ...]) -> str:
    return listed([f"GPU {card}" for card in cards])
