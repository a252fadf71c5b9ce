"""The other engines of the box: cards, memory shares and ports that they have already."""

from collections.abc import Iterator

from gpudeck.services.memory.plan import MemoryDetail
from gpudeck.services.memory.settings import default_utilization
from gpudeck.services.plan.changes import Change, options_change
from gpudeck.services.plan.extra import extra_value
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.rules.rule import Plan, Rule, listed

CLAIMED = Rule(
    "gpu-claimed",
    Severity.ERROR,
    "A card that belongs to another engine",
    "vLLM takes its whole share of a card when it starts: a second engine on it finds too little memory, unless both "
    "shares are made for it.",
    "vllm/v1/worker/gpu_worker.py: Free memory on device is less than desired GPU memory utilization",
)
SHARED_BUDGET = Rule(
    "gpu-shared-budget",
    Severity.ERROR,
    "Shares that add up to more than the card",
    "gpu-memory-utilization is a share of the whole card for each engine, not of what the others leave.",
    "vllm/config/cache.py gpu_memory_utilization: a per-instance limit",
)
SHARED_TIGHT = Rule(
    "gpu-shared-tight",
    Severity.WARNING,
    "Shares that leave no room beside them",
    "Each engine's CUDA context and allocator leftovers lie outside its share and must fit beside all of them.",
    "run on an H200 (vLLM 0.24): NVML's use at readiness against the budget",
)
PORT_CLAIMED = Rule(
    "port-claimed",
    Severity.ERROR,
    "A port that another engine has",
    "Two servers can not listen on one port; the second ends when it binds, before it loads anything.",
    "vllm/entrypoints: OSError: [Errno 98] Address already in use",
)
RULES = (CLAIMED, SHARED_BUDGET, SHARED_TIGHT, PORT_CLAIMED)
_TIGHT_FROM = 0.95
_LEAST_SHARE = 0.1  # below it no engine is worth its start


def check(plan: Plan, memory: MemoryDetail | None = None) -> Iterator[Finding]:
    """`memory` is the plan's, where it has a model: a share that it could not start in is no way out."""
    if not plan.around.neighbours:
        return
    yield from _claimed(plan)
    yield from _budgets(plan, memory)
    yield from _port(plan)


def shared(card: int, spec: EngineSpec, neighbour: EngineSpec) -> bool:
    """Whether one of the two engines on a card says that it is shared on purpose."""
    return card in spec.shared_gpus or card in neighbour.shared_gpus


def _claimed(plan: Plan) -> Iterator[Finding]:
    spec = plan.spec
    owners: dict[int, list[str]] = {}
    for neighbour in plan.around.neighbours:
        for card in dict.fromkeys(neighbour.placement.gpus):
            if card in spec.placement.gpus and not shared(card, spec, neighbour):
                owners.setdefault(card, []).append(neighbour.name)
    if not owners:
        return
    cards = sorted(owners)
    belong = [f"GPU {card} to {listed(owners[card])}" for card in cards]
    taken = {card for neighbour in plan.around.neighbours for card in neighbour.placement.gpus}
    free = [f"GPU {gpu.index}" for gpu in plan.box.gpus if gpu.index not in taken | set(spec.placement.gpus)]
    numbers = ",".join(str(card) for card in cards)
    other = f"Use {listed(free)}, which no engine has, or" if free else "Remove the other engine, or"
    yield CLAIMED.finding(
        f"Cards that belong to other engines: {listed(belong)}.",
        f"{other} share the card on purpose (--share {numbers}).",
        Change(shared_gpus=tuple(sorted({*spec.shared_gpus, *cards}))),
    )


def _budgets(plan: Plan, memory: MemoryDetail | None) -> Iterator[Finding]:
    spec = plan.spec
    for card in dict.fromkeys(spec.placement.gpus):
        others = [
            neighbour
            for neighbour in plan.around.neighbours
            if card in neighbour.placement.gpus and shared(card, spec, neighbour)
        ]
        if not others:
            continue
        shares = [_share(plan, engine) for engine in (spec, *others)]
        known = [share for share in shares if share is not None]
        total = sum(known)
        if total <= _TIGHT_FROM + 1e-9:
            continue
        told = [
            f"{engine.name} {share:g}"
            for engine, share in zip((spec, *others), shares, strict=True)
            if share is not None
        ]
        room = int((_TIGHT_FROM - (total - (shares[0] or 0))) * 100 + 1e-9) / 100
        possible = shares[0] is not None and room >= max(_LEAST_SHARE, _least_share(memory))
        rule = SHARED_BUDGET if total > 1 + 1e-9 else SHARED_TIGHT
        yield rule.finding(
            f"GPU {card} is shared, and the engines' shares of its memory add up to {total:.2f}: {listed(told)}.",
            f"Use --gpu-memory-utilization {room:.2f} here."
            if possible
            else "Give the other engines smaller shares, or use another card.",
            options_change(gpu_memory_utilization=room) if possible else None,
        )
        return  # one card tells it; the change mends the least room first where it is applied again


def _least_share(memory: MemoryDetail | None) -> float:
    """The share of each card in which weights, peak and one request find room."""
    if memory is None:
        return 0.0
    return max((rank.least(memory.needed) / max(rank.cuda_total, 1) for rank in memory.ranks), default=0.0)


def _share(plan: Plan, engine: EngineSpec) -> float | None:
    """The engine's share of each card; None where --kv-cache-memory-bytes stands for it."""
    if extra_value(engine.options.extra, "--kv-cache-memory-bytes") is not None:
        return None
    share = engine.options.gpu_memory_utilization
    return default_utilization(plan.around.vllm_version) if share is None else share


def _port(plan: Plan) -> Iterator[Finding]:
    port = plan.spec.options.port
    owners = [neighbour.name for neighbour in plan.around.neighbours if neighbour.options.port == port]
    if not owners:
        return
    taken = {neighbour.options.port for neighbour in plan.around.neighbours}
    free = next((number for number in range(port + 1, 65536) if number not in taken), None)
    yield PORT_CLAIMED.finding(
        f"Port {port} is {listed(owners)}'s.",
        f"Use --port {free}." if free is not None else "Use a lower --port.",
        options_change(port=free) if free is not None else None,
    )
