"""The verdict on a plan: every rule asked, and the findings in order."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from gpudeck.services.box.types import Box
from gpudeck.services.memory.partition import partition_of
from gpudeck.services.memory.plan import MemoryDetail, memory_detail
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.findings import Finding, Judgement, Severity
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.rules import (
    additions,
    advice,
    architecture,
    asked,
    backends,
    driver,
    flags,
    health,
    identity,
    links,
    memory,
    mixed_memory,
    model,
    neighbours,
    numa,
    options,
    parallel,
    parallel_options,
    placement,
    quantized,
    serving,
)
from gpudeck.services.rules.rule import ModelPlan, Plan, Rule, plan_of
from gpudeck.services.rules.surroundings import Surroundings

THEMES = (
    placement, neighbours, parallel, parallel_options, quantized, architecture, backends, links, numa, memory,
    mixed_memory, options, flags, serving, model, identity, driver, health, additions, advice, asked,
)  # fmt: skip
RULES: tuple[Rule, ...] = tuple(rule for theme in THEMES for rule in theme.RULES)

_NOTHING_USED: Mapping[int, int] = MappingProxyType({})
_ALONE = Surroundings()
# What the second tells of the same cards with more weight, the first need not add.
_TOLD_BY = {
    mixed_memory.PP_MEMORY.id: memory.UNEVEN.id,
    numa.CROSSING.id: links.SLOW_LINK.id,
    numa.SPANNED.id: links.SLOW_LINK.id,
    backends.MIXED.id: architecture.FLASH_ATTENTION.id,
    memory.TIGHT.id: memory.BESIDE_BUDGET.id,
}
_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


def judge(
    box: Box,
    model: ModelFacts | None,
    spec: EngineSpec,
    *,
    used: Mapping[int, int] = _NOTHING_USED,
    around: Surroundings = _ALONE,
) -> Judgement:
    """The verdict on `spec` on `box`, worst findings first; pure, and fast enough for every move of a drag.

    Without a model only box and placement are judged.  `used` is the bytes that other processes hold on a card, the
    driver's reserve left out; `around` what stands beside
    the box, its other engines among it.
    """
    plan = plan_of(box, spec, around)
    if model is None:
        return Judgement(_ordered(_without_model(plan)))
    copies = spec.placement.replicas
    sound = bool(plan.gpus) and copies >= 1 and len(spec.placement.stages) >= copies
    detail = memory_detail(box, model, spec, used, around.memory_version) if sound else None
    judged = ModelPlan(plan, model, detail)
    findings = _ordered(_with_model(judged))
    layers = partition_of(spec, model.layers) if sound else None
    return Judgement(findings, detail.plan if detail is not None and model.weights is not None else None, layers)


def _without_model(plan: Plan, detail: MemoryDetail | None = None) -> Iterator[Finding]:
    yield from placement.check(plan)
    yield from neighbours.check(plan, detail)
    yield from architecture.check_cards(plan)
    yield from links.check(plan)
    yield from numa.check(plan)
    yield from mixed_memory.check(plan)
    yield from flags.check(plan)
    yield from serving.check(plan)
    yield from driver.check(plan)
    yield from health.check(plan)
    yield from additions.check(plan)
    yield from advice.check_box(plan)


def _with_model(judged: ModelPlan) -> Iterator[Finding]:
    yield from _without_model(judged.plan, judged.memory)
    if not judged.plan.gpus:
        return
    yield from parallel.check(judged)
    yield from parallel_options.check(judged)
    yield from quantized.check(judged)
    yield from architecture.check(judged)
    yield from backends.check(judged)
    yield from memory.check(judged)
    yield from options.check(judged)
    yield from model.check(judged)
    yield from identity.check(judged)
    yield from advice.check(judged)


def _ordered(findings: Iterator[Finding]) -> tuple[Finding, ...]:
    # A card that stands in two places would be told twice.
    found = dict.fromkeys(findings)
    ids = {finding.rule for finding in found}
    told = [finding for finding in found if _TOLD_BY.get(finding.rule) not in ids]
    return tuple(sorted(told, key=lambda finding: _ORDER[finding.severity]))
