"""`gpudeck diagnose [FILE]`: what went wrong in a log, and the way out."""

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpudeck.app.commands.common import box_if_read, known_engine, print_json, runner_for
from gpudeck.services.diagnosis.kernel import XID
from gpudeck.services.diagnosis.lines import lines_in
from gpudeck.services.diagnosis.reader import LogReader
from gpudeck.services.diagnosis.report import document
from gpudeck.services.diagnosis.types import Around, Diagnosis
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

if TYPE_CHECKING:
    pass

_WIDTH = 100  # columns


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="a log: plain, from journalctl or docker (default: standard input)"
    )
    parser.add_argument("--engine", metavar="NAME", help="read this engine's own log instead")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.epilog = "Reads logs of vLLM 0.6 to 0.33 and of the kernel.  The exit code is 0 whatever was found."


def run(args: argparse.Namespace) -> int:
    if args.engine is not None and args.file is not None:
        raise OperatorError("FILE and --engine are two logs: give one of them.")
    diagnoses = _of_engine(args) if args.engine is not None else _of_file(args)
    if args.json:
        print_json(document(diagnoses))
    else:
        print(told(diagnoses))
    return 0


def told(diagnoses: Sequence[Diagnosis]) -> str:
    """The diagnoses as text, the decisive one first."""
    if not diagnoses:
        return "Nothing here says that an engine failed."
    return "\n\n".join("\n".join(_lines(each)) for each in diagnoses)


def _lines(diagnosis: Diagnosis) -> list[str]:
    line = textwrap.shorten(printable(diagnosis.line), 3 * _WIDTH, placeholder=" …")
    head = f"{diagnosis.rule}, line {diagnosis.line_number}"
    rows = [head, *_wrapped(line, "  | "), *_wrapped(printable(diagnosis.meaning), "  ")]
    return rows if diagnosis.fix is None else [*rows, *_wrapped(printable(diagnosis.fix), "  fix: ", "       ")]


def _wrapped(text: str, first: str, further: str | None = None) -> list[str]:
    indent = first if further is None else further
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)


def _of_file(args: argparse.Namespace) -> tuple[Diagnosis, ...]:
    """What a file says.  The kernel names cards by their place on the bus: whose that is, the box tells."""
    name, reader = args.file, LogReader()
    try:
        if name is None or name == "-":
            reader.feed_all(lines_in(sys.stdin.buffer))
        else:
            with Path(name).open("rb") as file:
                reader.feed_all(lines_in(file))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        shown = "standard input" if name in (None, "-") else printable(name)
        raise OperatorError(
            f"{shown} can not be read ({reason}): give the path of a log file, or --engine NAME."
        ) from None
    found = reader.diagnoses()
    if any(each.rule == XID for each in found):
        return reader.diagnoses(Around(box_if_read(args)))
    return found


def _of_engine(args: argparse.Namespace) -> tuple[Diagnosis, ...]:
    """What the engine's own log says, with what is known of the engine and of the box."""
    from gpudeck.services.engine.program import free_port

    runner = runner_for(args)
    try:
        state = known_engine(runner, args.engine)
        reader = LogReader()
        for line in runner.history(state.name):
            reader.feed(line.text)
    finally:
        runner.close()
    host = state.spec.options.host if state.spec is not None else "127.0.0.1"
    return reader.diagnoses(Around(box_if_read(args), state.spec, lambda port: free_port(port, host)))
