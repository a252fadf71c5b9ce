"""Parallel options among the extra ones: experts, and decode context parallelism."""

from collections.abc import Iterator

from gpudeck.services.plan.changes import options_change
from gpudeck.services.plan.extra import extra_whole, has_option, without_options
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.rules.rule import ModelPlan, Rule

NO_EXPERTS = Rule(
    "experts-none",
    Severity.ERROR,
    "Expert parallelism for a model without experts",
    "Expert parallelism hands whole experts to the ranks.",
    "vllm/config/model.py _verify_with_expert_parallelism: Number of experts in the model must be greater than 0 when "
    "expert parallelism is enabled.",
)
BALANCER = Rule(
    "eplb-without-experts",
    Severity.ERROR,
    "Balancing of experts without expert parallelism",
    "EPLB moves experts between the ranks of an expert-parallel group.",
    "vllm/config/parallel.py: enable_expert_parallel must be True to use EPLB.",
)
CONTEXT = Rule(
    "dcp-divisible",
    Severity.ERROR,
    "Decode context parallelism that does not divide TP",
    "Decode context parallelism spreads each request's KV cache over ranks of the TP group.",
    "vllm/config/parallel.py: tp_size=T must be divisible by dcp_size=D.",
)
EXPERTS_SPLIT = Rule(
    "experts-split",
    Severity.INFO,
    "Experts cut into slices",
    "Without --enable-expert-parallel every expert is cut over all ranks; with it a rank holds whole ones, which makes "
    "larger products and needs fewer whole blocks of quantized weights, at the risk of uneven load.",
    "vLLM documentation, expert parallel deployment",
)
RULES = (NO_EXPERTS, BALANCER, CONTEXT, EXPERTS_SPLIT)
EXPERT_OPTIONS = ("--enable-expert-parallel", "-ep")
_CONTEXT_OPTIONS = ("--decode-context-parallel-size", "-dcp")
_MANY_RANKS = 4  # from here on slices of an expert become thin


def check(judged: ModelPlan) -> Iterator[Finding]:
    extra, ranks = judged.plan.spec.options.extra, judged.plan.tensor_parallel
    expert_parallel = any(has_option(extra, option) for option in EXPERT_OPTIONS)
    if expert_parallel and judged.model.experts is None:
        yield NO_EXPERTS.finding(
            f"{judged.model.architecture or 'This model'} has no experts to spread.",
            "Take --enable-expert-parallel out.",
            options_change(extra=without_options(extra, EXPERT_OPTIONS)),
        )
    if has_option(extra, "--enable-eplb") and not expert_parallel:
        yield BALANCER.finding(
            "--enable-eplb balances the experts of --enable-expert-parallel, which is not given.",
            "Take --enable-eplb out, or add --enable-expert-parallel.",
            options_change(extra=without_options(extra, {"--enable-eplb"})),
        )
    if judged.model.experts is not None and not expert_parallel and ranks >= _MANY_RANKS:
        yield EXPERTS_SPLIT.finding(
            f"Each of the {judged.model.experts.count} experts is cut into {ranks} slices.",
            "Try --enable-expert-parallel, which keeps them whole, and measure.",
        )
    size = max((extra_whole(extra, option) or 1 for option in _CONTEXT_OPTIONS), default=1)
    if ranks > 0 and ranks % size:
        yield CONTEXT.finding(
            f"Tensor parallel size {ranks} is not divisible by decode context parallel size {size}.",
            "Take --decode-context-parallel-size out, or use a divisor of the tensor parallel size.",
            options_change(extra=without_options(extra, _CONTEXT_OPTIONS)),
        )
