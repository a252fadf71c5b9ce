"""Options and variables that vLLM no longer takes, by version."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpudeck.services.plan.changes import Change, options_change
from gpudeck.services.plan.extra import options_in, without_options
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.plan.versions import release
from gpudeck.services.rules.rule import Plan, Rule

REMOVED = Rule(
    "option-removed",
    Severity.ERROR,
    "An option that this vLLM refuses",
    "argparse ends with exit code 2 on an option that it does not know, before anything loads.",
    "run on the CPU build of vLLM 0.32: the options of its parser; 0.33 by the deprecation texts in 0.32",
)
LEAVING = Rule(
    "option-deprecated",
    Severity.WARNING,
    "An option that a later vLLM refuses",
    "The engine starts today and ends with exit code 2 after an upgrade.",
    "run on the CPU build of vLLM 0.32; vllm/engine/arg_utils.py deprecation texts",
)
FORM = Rule(
    "option-form",
    Severity.ERROR,
    "An option whose value is written as it was",
    "The option is still there and takes its value in another form.",
    "vllm/engine/arg_utils.py (0.32)",
)
VARIABLE = Rule(
    "environment-gone",
    Severity.WARNING,
    "A variable that nothing reads any more",
    "vLLM only warns about VLLM_ variables that it does not know, and transformers 5 passes over its old ones in "
    "silence: what was set by it is not.",
    "vllm/envs.py (0.32); transformers 5: TRANSFORMERS_CACHE",
)
RULES = (REMOVED, LEAVING, FORM, VARIABLE)


@dataclass(frozen=True, slots=True)
class Gone:
    """An option that is refused from `since` on; `instead` continues the sentence "…: ", "" where nothing is needed."""

    option: str
    since: str
    instead: str = ""


# Refused by 0.32, where `since` is no later version: which release before it dropped one is not always known, and a
# plan for an older vLLM is then only warned.  --swap-space is known to have left in 0.18.
GONE = (
    Gone("--swap-space", "0.18", "V1 keeps no swap space; leave it out"),
    Gone("--disable-log-requests", "0.32", "requests are not logged unless --enable-log-requests is given"),
    Gone("--enable-reasoning", "0.32", "--reasoning-parser alone does it"),
    Gone("--task", "0.32", "use --runner and --convert"),
    Gone("--guided-decoding-backend", "0.32", "use --structured-outputs-config"),
    Gone("--guided-decoding-disable-fallback", "0.32", "use --structured-outputs-config"),
    Gone("--device", "0.32", "vLLM finds the device by itself"),
    Gone("--num-scheduler-steps", "0.32", "V1 schedules every step"),
    Gone("--multi-step-stream-outputs", "0.32", "V1 schedules every step"),
    Gone("--num-lookahead-slots", "0.32", "use --speculative-config"),
    Gone("--max-seq-len-to-capture", "0.32", "use --compilation-config"),
    Gone("--max-context-len-to-capture", "0.32", "use --compilation-config"),
    Gone("--cuda-graph-sizes", "0.32", "use --cudagraph-capture-sizes"),
    Gone("--rope-scaling", "0.32", "use --hf-overrides"),
    Gone("--rope-theta", "0.32", "use --hf-overrides"),
    Gone("--calculate-kv-scales", "0.32", "scales come from the checkpoint"),
    Gone("--quantization-param-path", "0.32", "scales come from the checkpoint"),
    Gone("--max-num-partial-prefills", "0.32"),
    Gone("--max-long-partial-prefills", "0.32"),
    Gone("--num-redundant-experts", "0.32", "use --eplb-config"),
    Gone("--override-pooler-config", "0.32", "use --pooler-config"),
    Gone("--speculative-model", "0.32", "use --speculative-config"),
    Gone("--num-speculative-tokens", "0.32", "use --speculative-config"),
    Gone("--disable-frontend-multiprocessing", "0.32"),
    Gone("--disable-async-output-proc", "0.32"),
    Gone("--disable-mm-preprocessor-cache", "0.32", "use --mm-processor-cache-gb 0"),
    Gone("--preemption-mode", "0.32", "V1 always computes anew"),
    Gone("--use-v2-block-manager", "0.32", "there is only one"),
    Gone("--worker-use-ray", "0.32", "use --distributed-executor-backend ray"),
    Gone("--engine-use-ray", "0.32", "use --distributed-executor-backend ray"),
    Gone("--tokenizer-pool-size", "0.32"),
    Gone("--tokenizer-pool-type", "0.32"),
    Gone("--log-config-file", "0.33", "the logging config has its own option, or VLLM_LOGGING_CONFIG_PATH"),
    Gone("--disable-cascade-attn", "0.33", "cascade attention itself is gone"),
)
_GONE = {entry.option: entry for entry in GONE}
_VALUES_CHANGED = (0, 32, 0)  # the version by whose parser the other forms are known

GONE_VARIABLES = {
    "VLLM_USE_V1": "V1 is the only engine",
    "VLLM_ATTENTION_BACKEND": "pass --attention-backend",
    "VLLM_FLASH_ATTN_VERSION": "pass --attention-config",
    "VLLM_USE_TRITON_FLASH_ATTN": "pass --attention-backend TRITON_ATTN",
    "VLLM_ALL2ALL_BACKEND": "pass --all2all-backend",
    "VLLM_TORCH_PROFILER_DIR": "pass --profiler-config",
    "VLLM_USE_RAY_SPMD_WORKER": "leave it out",
    "VLLM_USE_RAY_COMPILED_DAG": "leave it out",
    "VLLM_USE_TRTLLM_ATTENTION": "pass --attention-config",
    "VLLM_DISABLE_FLASHINFER_PREFILL": "pass --attention-config",
    "VLLM_USE_CUDNN_PREFILL": "pass --attention-config",
    "TRANSFORMERS_CACHE": "set HF_HOME",
}


def check(plan: Plan) -> Iterator[Finding]:
    extra = plan.spec.options.extra
    for name, value in dict.fromkeys(options_in(extra)):
        if name in _GONE:
            yield _gone(plan, _GONE[name])
        elif release(plan.around.vllm_version) >= _VALUES_CHANGED:
            yield from _form(extra, name, value)
    yield from _variables(plan)


def _gone(plan: Plan, entry: Gone) -> Finding:
    instead = f": {entry.instead}" if entry.instead else ""
    refused = release(plan.around.vllm_version) >= release(entry.since)
    message = (
        f"vLLM {plan.around.vllm_version} does not know {entry.option} and would end at once{instead}."
        if refused
        else f"vLLM {entry.since} does not know {entry.option} any more{instead}."
    )
    extra = without_options(plan.spec.options.extra, {entry.option})
    return (REMOVED if refused else LEAVING).finding(message, f"Take {entry.option} out.", options_change(extra=extra))


def _form(extra: tuple[str, ...], name: str, value: str | None) -> Iterator[Finding]:
    if name == "--compilation-config" and value is not None and value.isdecimal():
        level = min(int(value[:2]), 3)
        changed = (*without_options(extra, {name}), f"-O{level}")
        yield FORM.finding(
            "--compilation-config takes JSON, and no level.", f"Use -O{level}.", options_change(extra=changed)
        )
    elif name == "--limit-mm-per-prompt" and value is not None and not value.lstrip().startswith("{"):
        kind, found, count = value.partition("=")
        known = found and kind.isalpha() and kind.isascii() and count.isdecimal()
        json = f'{{"{kind}": {count}}}' if known else '{"image": 2}'
        changed = (*without_options(extra, {name}), name, json)
        yield FORM.finding(
            "--limit-mm-per-prompt takes JSON.",
            f"Write it as {name} '{json}'.",
            options_change(extra=changed) if known else None,
        )


def _variables(plan: Plan) -> Iterator[Finding]:
    found = [name for name, _ in plan.spec.environment if name in GONE_VARIABLES]
    for name in dict.fromkeys(found):
        kept = tuple(pair for pair in plan.spec.environment if pair[0] != name)
        yield VARIABLE.finding(
            f"{name} in the engine's environment has no effect: {GONE_VARIABLES[name]}.",
            f"Take {name} out of the environment.",
            Change(environment=kept),
        )
