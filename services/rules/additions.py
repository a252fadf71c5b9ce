"""What a plan counts with that the box does not have."""

from collections.abc import Iterator

from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.plan.what_if import NewBridge, NewCard
from gpudeck.services.rules.rule import Plan, Rule, listed, named

WHAT_IF = Rule(
    "what-if",
    Severity.INFO,
    "A card or a bridge that is not there",
    "The plan counts with it to show what it would change; nothing is started like that.",
    "gpudeck: services/plan/what_if.py",
)
RULES = (WHAT_IF,)


def check(plan: Plan) -> Iterator[Finding]:
    additions = plan.around.additions
    if not additions:
        return
    cards = sum(isinstance(addition, NewCard) for addition in additions)
    added = {gpu.index for gpu in sorted(plan.box.gpus, key=lambda gpu: gpu.index)[len(plan.box.gpus) - cards :]}
    counted = [named(gpu) for gpu in plan.gpus if gpu.index in added]
    placed = {gpu.index for gpu in plan.gpus}
    bridges = [one for one in additions if isinstance(one, NewBridge) and {one.a, one.b} <= placed]
    counted += [f"the bridge between GPU {bridge.a} and GPU {bridge.b}" for bridge in dict.fromkeys(bridges)]
    if counted:
        yield WHAT_IF.finding(f"Not in this box: {listed(counted)}.", "Nothing is started until the box has it.")
