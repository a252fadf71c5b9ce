"""Who may reach the engine, and what its options give away."""

from collections.abc import Iterator

from gpudeck.services.plan.changes import options_change
from gpudeck.services.plan.extra import has_option, without_options
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.rules.rule import Plan, Rule
from gpudeck.services.text import printable

KEY_SHOWN = Rule(
    "api-key-shown",
    Severity.ERROR,
    "An API key on the command line",
    "Every user of the machine can read a process's command line, and the journal keeps it; gpudeck writes no unit "
    "that holds a key.",
    "vllm serve --help: --api-key; proc(5), /proc/pid/cmdline",
)
OPEN = Rule(
    "open-to-network",
    Severity.WARNING,
    "An engine that everyone on the network may use",
    "Without a key anybody who reaches the port is served.  Even with one, /invocations, /tokenize and /metrics stay "
    "open: vLLM's key guards /v1 only.",
    "run on the CPU build of vLLM 0.32",
)
REMOTE_CODE = Rule(
    "trust-remote-code",
    Severity.WARNING,
    "Code from the model's repository is run",
    "--trust-remote-code runs Python files that lie beside the weights, with the rights of the engine's user.",
    "vllm/config/model.py trust_remote_code",
)
RULES = (KEY_SHOWN, OPEN, REMOTE_CODE)
_LOOPBACK = ("localhost", "::1", "127.")
_LOCAL = "127.0.0.1"


def check(plan: Plan) -> Iterator[Finding]:
    options = plan.spec.options
    keyed = has_option(options.extra, "--api-key")
    if keyed:
        yield KEY_SHOWN.finding(
            "--api-key would stand on the command line for everyone to read.",
            "Take it out, and put VLLM_API_KEY into the engine's key file (gpudeck unit names it).",
            options_change(extra=without_options(options.extra, {"--api-key"})),
        )
    in_environment = any(name == "VLLM_API_KEY" and value for name, value in plan.spec.environment)
    if not options.host.startswith(_LOOPBACK) and not (keyed or in_environment or plan.around.key_set):
        yield OPEN.finding(
            f"The engine would listen on {printable(options.host[:64]) or 'all addresses'} without an API key that is "
            "known of.",
            f"Use --host {_LOCAL}, or put VLLM_API_KEY into the engine's key file (gpudeck unit names it).",
            options_change(host=_LOCAL),
        )
    if has_option(options.extra, "--trust-remote-code"):
        yield REMOTE_CODE.finding(
            "--trust-remote-code lets the model's repository run its own code here.",
            "Leave it out unless this model asks for it and its code was read.",
            options_change(extra=without_options(options.extra, {"--trust-remote-code"})),
        )
