"""The command line: which command, with which arguments.

Only the module of the command that was asked for is imported, so that `gpudeck topo` needs no D-Bus and `gpudeck box`
no Textual.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from gpudeck.app.commands.common import add_box_options
from gpudeck.app.commands.usage import CommandHelp, GpudeckHelp

# By what an operator is about to do: name → what it does.  Each is gpudeck.app.commands.<name>, with
# `arguments(parser)` and `run(args) -> int`.
GROUPS = {
    "the box": {
        "box": "the box now: cards, readings, processes",
        "topo": "the link matrix, as nvidia-smi topo -m prints it",
        "doctor": "what works here and what does not",
        "metrics": "the box's readings for Prometheus",
        "grafana": "a scrape config and a dashboard for Prometheus and Grafana",
    },
    "a plan": {
        "plan": "findings, memory and command of a placement, or the best placements for this box",
        "unit": "the unit that would be installed for a placement",
        "install": "install that unit",
        "adopt": "what a hand-written unit runs, what is wrong with it, and the corrected unit",
    },
    "engines": {
        "engines": "every engine on the box",
        "start": "start an engine and wait until it is ready",
        "stop": "stop an engine",
        "restart": "restart an engine",
        "schedule": "have an engine restarted by the clock",
        "status": "the state of an engine",
        "rollback": "back to the last plan of an engine that reached ready",
        "reload": "have systemd read an engine's unit anew, after it was changed on disk",
        "logs": "the log of an engine",
        "diagnose": "what went wrong in a log, and the way out",
        "chat": "a test prompt, streamed",
        "check": "canned prompts, and whether every card did its part meanwhile",
        "bench": "a measured run, and earlier ones beside each other",
        "remove": "stop an engine and delete its unit",
    },
    "setting up": {
        "completions": "a script by which your shell completes all this",
        "man": "the manual page of all this",
        "polkit": "a rule that lets a group start and stop the system's engines",
    },
}
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}

# Commands that plan an engine: what stands behind their -- goes to vLLM as it is.
_PLANNING = ("plan", "unit", "install")


def run(argv: Sequence[str]) -> int:
    """Parse `argv` (without the program's name) and do it.  Wrong usage exits 2 through argparse."""
    words, passed_on = _split(argv)
    arguments = [_demo_spelled_out(word) for word in words]
    parser = make_parser([name for name in COMMANDS if name in arguments])
    args = parser.parse_args(arguments)
    args.extra = passed_on
    if args.version:
        # Looked up only here: reading a distribution's metadata takes as long as all the rest.
        from importlib import metadata

        print(f"gpudeck {metadata.version('gpudeck')}")  # noqa: T201
        return 0
    if args.demo and args.box_file:
        parser.error("--demo and --box are two boxes: give one of them")
    if args.command is None:
        from gpudeck.app.launch import open_panel

        return open_panel(args)
    if args.demo and args.command in _PLANNING:
        from gpudeck.app.programs import demo_model

        args.model = demo_model(args.model)
    module = import_module(f"gpudeck.app.commands.{args.command}")
    result: int = module.run(args)
    return result


def _split(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Our own words, and those for vLLM.

    Left to argparse, options behind -- would need a positional argument to take them, which takes stray words as well.
    """
    if "--" not in argv:
        return argv, ()
    at = argv.index("--")
    if not any(name in argv[:at] for name in _PLANNING):
        return argv, ()
    return argv[:at], argv[at + 1 :]


def _demo_spelled_out(word: str) -> str:
    """`--demo` alone names the first demo box; left to argparse it would swallow the command that follows."""
    return "--demo=mixed" if word in ("--demo", "--demo=") else word


def make_parser(whole: Sequence[str]) -> argparse.ArgumentParser:
    """The parser; the arguments of the commands named in `whole` are added, for which their modules are imported."""
    parser = argparse.ArgumentParser(
        prog="gpudeck",
        description="A terminal control panel for a GPU inference box.  Without a command it opens the panel.",
        allow_abbrev=False,
        formatter_class=GpudeckHelp.of(GROUPS),
    )
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    parser.set_defaults(demo=None, box_file=None, plain=False, scope=None)
    add_box_options(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", prog="gpudeck")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=summary[:1].upper() + summary[1:] + ".",
            allow_abbrev=False,
            formatter_class=CommandHelp,
        )
        add_box_options(command)
        if name in whole:
            import_module(f"gpudeck.app.commands.{name}").arguments(command)
    return parser


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
