"""Failures of the command line, the environment and the ground the engine stands on."""

from gpudeck.services.diagnosis.entry import Advice, Entry, Found, sign
from gpudeck.services.plan.changes import options_change
from gpudeck.services.plan.extra import has_option, without_options
from gpudeck.services.text import printable


def _port(found: Found) -> Advice:
    if found.options is None:
        return Advice()
    port, host = found.options.port, printable(found.options.host[:64])
    free = found.around.next_port(port + 1)
    return Advice(
        f"Port {port} on {host} belongs to another process.",
        f"Take another port: --port {free}.",
        options_change(port=free),
    )


def _unknown_option(found: Found) -> Advice:
    option = found.word("option")
    if not option:
        return Advice()
    spec = found.around.spec
    change = None
    if spec is not None and has_option(spec.options.extra, option):
        change = options_change(extra=without_options(spec.options.extra, (option,)))
    return Advice(
        f"This vLLM does not know {option}: it came with another version, or is misspelt.",
        f"Leave {option} out, or look for its name in `vllm serve --help=all`.",
        change,
    )


def _batch(found: Found) -> Advice:
    least = found.number("length") or found.number("seqs")
    if least is None:
        return Advice()
    what = "one full request" if found.word("length") else "as many requests as may run at once"
    return Advice(
        f"A batch of {found.word('tokens')} tokens can not hold {what}: {least:,} are needed.",
        f"Take --max-num-batched-tokens {least}.",
        options_change(max_num_batched_tokens=least),
    )


ENTRIES = (
    Entry(
        "batch-too-small",
        "A batch smaller than what must go into it",
        (
            sign(
                "is smaller than max_model_len",
                r"max_num_batched_tokens \((?P<tokens>\d+)\) is smaller than max_model_len \((?P<length>\d+)\)",
            ),
            sign(
                "must be greater than or equal to max_num_seqs",
                r"max_num_batched_tokens \((?P<tokens>\d+)\) must be greater than or equal to max_num_seqs "
                r"\((?P<seqs>\d+)\)",
            ),
        ),
        "--max-num-batched-tokens is less than a request, or the requests that may run at once, need.",
        "Raise --max-num-batched-tokens, or lower --max-model-len and --max-num-seqs.",
        "vllm/config/scheduler.py",
        _batch,
    ),
    Entry(
        "unknown-option",
        "An option that this vLLM does not know",
        (
            sign("error: unrecognized arguments", r"error: unrecognized arguments: (?P<option>--?[\w-]{1,80})"),
            sign("error: ambiguous option", r"error: ambiguous option: (?P<option>--?[\w-]{1,80})"),
        ),
        "This vLLM does not know an option of the command line: options come and go with its versions.",
        "Leave the option out, or look for its name in `vllm serve --help=all`.",
        "argparse; exit status 2",
        _unknown_option,
    ),
    Entry(
        "option-value",
        "An option with a value that it does not take",
        (
            sign("invalid choice", r"error: argument (?P<option>--?[\w-]{1,80})[^:]{0,80}: invalid choice"),
            sign("error: argument ", r"error: argument (?P<option>--?[\w-]{1,80})[^:]{0,80}: "),
            sign("Input should be ", r"^(?P<option>[\w.]{1,80}): Input should be "),
            sign("Unknown quantization method", r"Unknown quantization method: (?!gguf\b|bitsandbytes\b)"),
            sign("expected one argument", r"error: .{0,80}expected one argument"),
        ),
        "An option has a value that this vLLM does not take; the line names the option.",
        "Give it one of the values that the line or `vllm serve --help=all` lists.",
        "argparse; pydantic",
    ),
    Entry(
        "port-taken",
        "The port is taken",
        (sign("ddress already in use", r"(?:Errno 98\]?:? |\b)[Aa]ddress already in use"),),
        "Another process listens on the engine's port.",
        "Take another --port, or stop the other process: `ss -ltnp` names it.",
        "the API server's bind; exit status 1 before anything is loaded",
        _port,
    ),
    Entry(
        "tool-parser",
        "Tool calling is set up halfway",
        (
            sign("invalid tool call parser"),
            sign("--enable-auto-tool-choice requires"),
        ),
        "--enable-auto-tool-choice needs a --tool-call-parser that this vLLM knows.",
        "Name one of the parsers that the line lists, the one of the model's family, or leave tool calling out.",
        "vllm/parser; vllm/entrypoints/launchers",
    ),
    Entry(
        "disk-full",
        "A disk is full",
        (sign("No space left on device"), sign("Disk quota exceeded")),
        "A file system has no room: for the model's download, the compile cache, or /dev/shm.",
        "Make room (`df -h` names the full one), or move HF_HOME and VLLM_CACHE_ROOT.",
        "the kernel (ENOSPC)",
    ),
    Entry(
        "permission-denied",
        "A file that the engine may not touch",
        (
            sign("Permission denied", r"(?:PermissionError|Errno 13|OSError|os error 13).{0,40}Permission denied"),
            sign("Read-only file system"),
        ),
        "The engine's user, or the unit's sandbox, may not read or write the file that the line names.",
        "Let that user read the model and write HF_HOME and VLLM_CACHE_ROOT; see ProtectHome and ReadWritePaths in "
        "the unit.",
        "the kernel (EACCES, EROFS)",
    ),
    Entry(
        "open-files",
        "Too many open files",
        (sign("Too many open files", r"(?:Errno 24\]|os error 24|OSError|accept).{0,60}Too many open files"),),
        "The process may not open more files: every connection and every weight shard takes one.",
        "Raise LimitNOFILE in the unit.",
        "the kernel (EMFILE)",
    ),
    Entry(
        "transformers-cache",
        "TRANSFORMERS_CACHE is out of date",
        (sign("TRANSFORMERS_CACHE", r"TRANSFORMERS_CACHE.{0,40}deprecated"),),
        "The variable is no longer read by newer versions: the model would be fetched again elsewhere.",
        "Set HF_HOME instead.",
        "transformers",
        notice=True,
    ),
)
