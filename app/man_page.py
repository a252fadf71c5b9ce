"""gpudeck(1), in the man macros of groff, from the parser itself and a few sections that no parser holds."""

import argparse
from collections.abc import Iterator

from gpudeck.app.cli import COMMANDS, GROUPS, make_parser

_SHARED = "the box"  # the group of options that every command has
_UNNAMED = ("options", "positional arguments")  # argparse's own groups
_Options = tuple[str | None, ...]  # a group's title and what its options are called

_DESCRIPTION = """\
gpudeck is a terminal control panel for one machine with GPUs that runs vLLM. Without a command it opens the panel: the
cards as they are now, a board on which they are dragged into tensor- and pipeline-parallel groups, the verdict on that
plan, the engines with their logs, and a chat. The commands do the same without a screen.

Engines are units of systemd, called vllm-NAME.service: of the system for root, of the user's own systemd for others.
Where no systemd runs, an embedded runner starts them as detached processes. Leaving gpudeck never stops one."""

_EXIT_CODES = {
    "0": "done. A plan with warnings counts as done; so does diagnose, whatever it found.",
    "1": "refused, failed or blocked. One sentence on standard error says why and names the way out.",
    "2": "wrong usage.",
    "3": "status: the engine does not run, or waits to be tried again.",
    "130": "Ctrl-C ended it before its time. Engines go on; what was measured is kept.",
}
_VARIABLES = {
    "GPUDECK_VLLM": "the vllm program, where it is not found on PATH and in the usual environments.",
    "GPUDECK_MODELS": "folders with models, separated by colons, beside the hub's cache.",
    "VLLM_API_KEY": "the key for engines whose own key can not be read; install --keys-from-env takes it.",
    "HF_TOKEN": "the token of the Hugging Face hub; install --keys-from-env takes it.",
    "HF_HOME, HF_HUB_CACHE": "where the hub's cache lies.",
    "NO_COLOR": "set to anything: no colour.",
}
_FILES = {
    "/etc/systemd/system/vllm-NAME.service": "an engine of the system. Its plan stands in the section [X-Gpudeck].",
    "~/.config/systemd/user/vllm-NAME.service": "an engine of a user's own.",
    "/etc/gpudeck/vllm-NAME.env, ~/.config/gpudeck/vllm-NAME.env": "its keys, mode 0600.",
    "~/.local/state/gpudeck": "embedded engines, times of earlier starts, measured results, the panel's own log.",
}
_EXAMPLES = {
    "gpudeck --demo": "The panel on a simulated box.",
    "gpudeck plan /models/qwen3-8b": "The best placements for this box.",
    "gpudeck install /models/qwen3-8b --stage 0,1 --name chat": "Install an engine over cards 0 and 1.",
    "gpudeck start chat && gpudeck chat chat hello": "Start it, wait until it is ready, ask it.",
    "gpudeck diagnose vllm.log": "What went wrong in a log, and the way out.",
}


def man_page() -> str:
    """The page; `man -l FILE` shows it."""
    parser = make_parser(list(COMMANDS))
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    lines = [
        '.\\" Made by `gpudeck man` from the parser of the command line.',
        '.TH GPUDECK 1 "" gpudeck "User Commands"',
        ".SH NAME",
        "gpudeck \\- terminal control panel for a GPU inference box that runs vLLM",
        ".SH SYNOPSIS",
        "\\fBgpudeck\\fR [\\fIOPTIONS\\fR] [\\fICOMMAND\\fR ...]",
        ".SH DESCRIPTION",
        *_paragraphs(_DESCRIPTION),
        ".SH OPTIONS",
        "Before the command or behind it.",
        *(line for group in parser._action_groups for line in _options(parser, group)),
        ".SH COMMANDS",
    ]
    told: dict[_Options, str] = {}
    for group, names in GROUPS.items():
        lines.append(f".SS {_quoted(_upper(group))}")
        for name in names:
            lines += _command(name, commands.choices[name], told)
    for title, terms in (("EXIT STATUS", _EXIT_CODES), ("ENVIRONMENT", _VARIABLES), ("FILES", _FILES)):
        lines.append(f".SH {_quoted(title)}")
        for term, what in terms.items():
            lines += [".TP", _bold(term), _text(what)]
    lines.append(".SH EXAMPLES")
    for command, what in _EXAMPLES.items():
        lines += [".PP", _text(what), ".PP", ".RS", ".nf", _bold(command), ".fi", ".RE"]
    lines += [".SH SEE ALSO", "\\fBsystemctl\\fR(1), \\fBjournalctl\\fR(1), \\fBnvidia\\-smi\\fR(1)", ""]
    return "\n".join(lines)


def _command(name: str, command: argparse.ArgumentParser, told: dict[_Options, str]) -> Iterator[str]:
    """What must be given, what it does, and its own options, further in.

    `told` holds the groups of options that stand on the page already, and with which command; this one's are added.
    """
    needed = [_invocation(command, action) for action in command._actions if not action.option_strings]
    yield from (".PP", " ".join((_bold(f"gpudeck {name}"), "[\\fIOPTIONS\\fR]", *needed)), ".RS")
    yield _text(f"{command.description}")
    for group in command._action_groups:
        actions = _shown(group)
        if group.title == _SHARED or not actions:
            continue
        if group.title not in _UNNAMED:
            yield from (".PP", f"{_text(_upper(group.title or ''))}:")
            elsewhere = told.setdefault((group.title, *(action.dest for action in actions)), name)
            if elsewhere != name:
                yield f"as with {_bold(elsewhere)}."
                continue
        yield from _options(command, group)
    if command.epilog:
        yield from (".PP", _text(command.epilog))
    yield ".RE"


def _options(parser: argparse.ArgumentParser, group: argparse._ArgumentGroup) -> Iterator[str]:
    """Each option of a group with its help."""
    expand = parser._get_formatter()._expand_help
    for action in _shown(group):
        told = _text(expand(action)) if action.help else "\\&"
        yield from (".TP", _invocation(parser, action), told)


def _shown(group: argparse._ArgumentGroup) -> list[argparse.Action]:
    return [action for action in group._group_actions if not _is_left_out(action)]


def _is_left_out(action: argparse.Action) -> bool:
    return isinstance(action, argparse._HelpAction | argparse._SubParsersAction) or action.help == argparse.SUPPRESS


def _invocation(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """`--port PORT`, the words that are typed in bold and those to be replaced in italics."""
    if action.dest == "demo":
        return "\\fB\\-\\-demo\\fR[=\\fIBOX\\fR]"
    names = ", ".join(_bold(word) for word in action.option_strings)
    value = "" if action.nargs == 0 else parser._get_formatter()._format_args(action, action.dest.upper())
    return " ".join(part for part in (names, f"\\fI{_escaped(value)}\\fR" if value else "") if part)


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield from (".PP", _text(paragraph))


def _upper(title: str) -> str:
    return title[:1].upper() + title[1:]


def _text(text: str) -> str:
    """A line of running text: one that begins with a dot or a quote would be a request to groff."""
    line = _escaped(" ".join(text.split()))
    return f"\\&{line}" if line.startswith((".", "'")) else line


def _bold(text: str) -> str:
    return f"\\fB{_escaped(text)}\\fR"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Every sign as it is typed: groff's own -, ' and ~ are others, which can not be pasted into a shell."""
    for sign, name in (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("~", "\\(ti"), ("^", "\\(ha"), ("`", "\\(ga")):
        text = text.replace(sign, name)
    return text.replace("…", "...")
