"""The links inside TP groups: all-reduce runs over them twice a layer."""

from collections.abc import Iterator

from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.plan.links import best_group, weakest_link
from gpudeck.services.rules.regroup import regrouped
from gpudeck.services.rules.rule import Plan, Rule, listed

SLOW_LINK = Rule(
    "tp-slow-link",
    Severity.WARNING,
    "A slow link inside a TP group while a better group exists",
    "Every layer ends in an all-reduce over the TP group's links; pipeline stages pass on far less.",
    "vllm#7958, #22140; NVIDIA's topology levels (nvidia-smi topo -m)",
)
ALL_REDUCE = Rule(
    "custom-all-reduce-off",
    Severity.INFO,
    "Custom all-reduce is off",
    "vLLM's own all-reduce serves 2, 4, 6, 8 or 16 ranks, beyond 2 only where NVLink joins every pair; else NCCL does "
    "it.",
    "vllm/distributed/device_communicators/custom_all_reduce.py",
)
RULES = (SLOW_LINK, ALL_REDUCE)
_CUSTOM_SIZES = (2, 4, 6, 8, 16)


def check(plan: Plan) -> Iterator[Finding]:
    size = plan.tensor_parallel
    if size < 2:
        return
    for place, stage in enumerate(plan.spec.placement.stages):
        cards = tuple(card for card in dict.fromkeys(stage) if plan.box.gpu(card) is not None)
        if len(cards) < 2:
            continue
        link = weakest_link(plan.box, cards)
        better = best_group(plan.box, cards)
        if better is not None:
            yield SLOW_LINK.finding(
                f"Stage {place} ({_cards(cards)}) is joined by {link} at its weakest, while {_cards(better)} are "
                f"joined by {weakest_link(plan.box, better)}.",
                f"Put {_cards(better)} into one stage.",
                regrouped(plan, place, better) if len(stage) == len(better) else None,
            )
        if len(cards) not in _CUSTOM_SIZES or (len(cards) > 2 and not link.startswith("NV")):
            yield ALL_REDUCE.finding(
                f"Stage {place} has {len(cards)} ranks joined by {link}: vLLM's custom all-reduce is off and NCCL is "
                "used.",
                _smaller_groups(len(cards)),
            )


def _smaller_groups(ranks: int) -> str | None:
    if ranks % 2 or ranks < 4:
        return None
    return f"Weigh TP 2 × PP {ranks // 2} or copies against it: pairs keep the custom all-reduce; measure both."


def _cards(cards: tuple[int, ...]) -> str:
    return listed([f"GPU {card}" for card in cards])
