"""What runs in the engine's own Python: let its vLLM read a command line and make its configuration.

    python probe.py DESCRIPTOR SECONDS MODEL [OPTIONS]

Writes one JSON object to the descriptor: {"reply": "accepted" | "refused" | "no device" | "not asked", "text": …}.
Stands alone: the engine's Python has no gpudeck, and what is imported of vLLM lies elsewhere in each version.
"""

import contextlib
import importlib
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

_PARSER = ("vllm.utils.argparse_utils", "vllm.utils", "vllm.utils.arg_utils")
_ARGUMENTS = ("vllm.entrypoints.launchers.cli_args", "vllm.entrypoints.openai.cli_args")
_NO_DEVICE = re.compile(
    r"Failed to infer device type|Device string must not be empty|No CUDA GPUs are available"
    r"|NVML Shared Library Not Found|Found no NVIDIA driver|libcuda\.so"
)


class NotFoundError(Exception):
    """vLLM has no such function in this version."""


class RefusedError(Exception):
    """The parser's own words."""


def main() -> None:
    descriptor, seconds = int(sys.argv[1]), int(sys.argv[2])
    # Should the panel be killed, nobody is left to end this.
    signal.alarm(seconds)
    reply, text = ask(sys.argv[3:])
    os.write(descriptor, json.dumps({"reply": reply, "text": text[:2000]}).encode())
    # Leaving would wait for threads that vLLM's imports have started.
    os._exit(0)


def ask(words: "list[str]") -> "tuple[str, str]":
    try:
        parser_class = found("FlexibleArgumentParser", "class FlexibleArgumentParser", _PARSER)
        make_parser = found("make_arg_parser", "def make_arg_parser", _ARGUMENTS)
        arguments = importlib.import_module("vllm.engine.arg_utils").AsyncEngineArgs
    except (ImportError, AttributeError, NotFoundError) as error:
        return "not asked", said(error)
    except Exception as error:  # noqa: BLE001 (whatever vLLM raises is its answer)
        return ("no device" if _NO_DEVICE.search(str(error)) else "not asked"), said(error)
    try:
        judge(parser_class, make_parser, arguments, words)
    except SystemExit:
        return "not asked", "the options ask for something else than to serve"
    except Exception as error:  # noqa: BLE001 (as above)
        if _NO_DEVICE.search(str(error)):
            return "no device", said(error)
        # A cached hub id whose files lie in another cache than the unit's: asking downloads nothing.
        if "offline" in type(error).__name__.lower() or type(error).__name__ == "LocalEntryNotFoundError":
            return "not asked", said(error)
        return "refused", said(error)
    return "accepted", ""


def judge(parser_class: Any, make_parser: Any, arguments: Any, words: "list[str]") -> None:
    def error(message: str) -> NoReturn:
        raise RefusedError(message)

    parser = make_parser(parser_class(prog="vllm serve"))
    parser.error = error
    parsed = parser.parse_args(words)
    if getattr(parsed, "model_tag", None) is not None:
        parsed.model = parsed.model_tag  # as vllm/entrypoints/cli/serve.py does
    with contextlib.suppress(NotFoundError):  # older versions have no such check
        found("validate_parsed_serve_args", "def validate_parsed_serve_args", _ARGUMENTS)(parsed)
    arguments.from_cli_args(parsed).create_engine_config()


def found(name: str, definition: str, modules: "tuple[str, ...]") -> Any:
    """vLLM's object of that name: from where it is known to lie, else from the file that defines it."""
    for module in modules:
        try:
            return getattr(importlib.import_module(module), name)
        except (ModuleNotFoundError, AttributeError):
            continue
    package = Path(importlib.import_module("vllm").__path__[0])
    for folder in ("entrypoints", "utils", "engine"):
        for path in sorted((package / folder).rglob("*.py")):
            if definition in path.read_text(errors="replace"):
                parts = path.relative_to(package.parent).with_suffix("").parts
                return getattr(importlib.import_module(".".join(parts).replace(".__init__", "")), name)
    raise NotFoundError(f"this vLLM has no {name}")


def said(error: BaseException) -> str:
    """The sentence that decides: of a pydantic error its causes, else the message, else where it was raised."""
    causes = getattr(error, "errors", None)
    if callable(causes):
        with contextlib.suppress(LookupError, TypeError, AttributeError):
            return "; ".join(cause_of(cause) for cause in causes()[:3])
    text = str(error).strip()
    if text:
        return text
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})" if trace is not None else ""
    return f"{type(error).__name__}{where}"


def cause_of(cause: "dict[str, Any]") -> str:
    where = ".".join(str(part) for part in cause.get("loc", ()))
    text = str(cause["msg"]).replace("Value error, ", "").replace("Assertion failed, ", "")
    return f"{where}: {text}" if where else text


if __name__ == "__main__":
    # The folder of this script holds modules of gpudeck, which must not stand for others of the same name.
    sys.path[:] = [entry for entry in sys.path if entry != str(Path(__file__).parent)]
    main()
