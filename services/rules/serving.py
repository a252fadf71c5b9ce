"""Who may reach the engine, and what its options give away."""

from collections.abc import Iterator

from gpudeck.services.plan.changes import options_change
from gpudeck.services.plan.extra import has_option, options_in, without_options
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.plan.secrets import API_KEY, secret_variable
from gpudeck.services.rules.rule import Plan, Rule
from gpudeck.services.text import printable

KEY_SHOWN = Rule(
    "api-key-shown",
    Severity.ERROR,
    "An API key or a token on the command line",
    "Every user of the machine can read a process's command line, and the journal keeps it; gpudeck writes no unit "
    "that holds a key.",
    "vllm serve --help: --api-key, --hf-token; proc(5), /proc/pid/cmdline",
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
_WAYS = {"--api": "--api-key-file", "--hf-": "--hf-token-file"}


def check(plan: Plan) -> Iterator[Finding]:
    options = plan.spec.options
    shown = [name for name, value in options_in(options.extra) if secret_variable(name) and value]
    keyed = any(secret_variable(name) == API_KEY for name in shown)
    if shown:
        variables = " and ".join(sorted({secret_variable(name) or "" for name in shown}))
        yield KEY_SHOWN.finding(
            f"{' and '.join(shown)} would stand on the command line for everyone to read.",
            f"Take it out, and give {variables} as a key: in the options form, or by {_WAYS[shown[0][:5]]}.",
            options_change(extra=without_options(options.extra, set(shown))),
        )
    in_environment = any(name == "VLLM_API_KEY" and value for name, value in plan.spec.environment)
    if not options.host.startswith(_LOOPBACK) and not (keyed or in_environment or plan.around.key_set):
        yield OPEN.finding(
            f"The engine would listen on {printable(options.host[:64]) or 'all addresses'} without an API key that is "
            "known of.",
            f"Use --host {_LOCAL}, or give it a key: in the options form, or by --api-key-file.",
            options_change(host=_LOCAL),
        )
    if has_option(options.extra, "--trust-remote-code"):
        yield REMOTE_CODE.finding(
            "--trust-remote-code lets the model's repository run its own code here.",
            "Leave it out unless this model asks for it and its code was read.",
            options_change(extra=without_options(options.extra, {"--trust-remote-code"})),
        )
