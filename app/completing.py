"""Completion scripts for shells, made by shtab from the parser itself.

The names of engines are asked of gpudeck when they are wanted.
"""

import argparse
from collections.abc import Iterator

import shtab

from gpudeck.app.cli import COMMANDS, make_parser

# Commands whose first word is an engine.
_ON_ENGINES = ("start", "stop", "restart", "status", "logs", "remove", "reload", "rollback", "chat")
_FILES = ("file", "FILE", "box_file", "record", "model")

_NAMES = "gpudeck engines --names"
_PREAMBLE = {
    "bash": f"""
_gpudeck_engines() {{
    local word demo=''
    for word in "${{COMP_WORDS[@]}}"; do [[ $word == --demo* ]] && demo=--demo; done
    compgen -W "$({_NAMES} $demo 2>/dev/null)" -- "$1"
}}
""",
    "zsh": f"""
_gpudeck_engines() {{
    local -a found demo
    # Of $words, what stands before the command is gone by now.
    [[ $BUFFER == *' --demo'* ]] && demo=(--demo)
    found=(${{(f)"$({_NAMES} $demo 2>/dev/null)"}})
    compadd -a found
}}
""",
    "fish": f"""
function _gpudeck_engines
    {_NAMES} (string match -q -- '*--demo*' (commandline -p); and echo -- --demo) 2>/dev/null
end
""",
}


def script(shell: str) -> str:
    """The script for bash, zsh or fish."""
    parser = make_parser(list(COMMANDS))
    for name, command in (("", parser), *_commands(parser)):
        for action in command._actions:
            # Shells know long options and those of one letter; `-tp` has its long form beside it.
            action.option_strings = [word for word in action.option_strings if word.startswith("--") or len(word) == 2]
            if action.dest == "demo":
                action.nargs = 0  # its box stands behind a =, so that the next word is the command
            if name in _ON_ENGINES and action.dest in ("name", "target"):
                action.complete = {  # type: ignore[attr-defined]
                    "bash": "_gpudeck_engines", "zsh": "_gpudeck_engines", "fish": "(_gpudeck_engines)"
                }  # fmt: skip
            elif action.dest in _FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    text: str = shtab.complete(parser, shell=shell, preamble=_PREAMBLE[shell])
    return text


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()
