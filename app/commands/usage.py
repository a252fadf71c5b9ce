"""How --help looks: a usage of one line, and the commands by what an operator is about to do."""

import argparse
import textwrap
from collections.abc import Iterable, Mapping
from typing import ClassVar

Groups = Mapping[str, Mapping[str, str]]


class CommandHelp(argparse.HelpFormatter):
    """A usage that names what must be given, and leaves the options to the list below it."""

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[argparse._MutuallyExclusiveGroup],  # noqa: ARG002
        prefix: str | None = None,
    ) -> None:
        names = [
            self._format_args(action, self._get_default_metavar_for_positional(action))
            for action in actions
            if not action.option_strings
        ]
        super().add_usage(usage or " ".join(["%(prog)s", "[OPTIONS]", *names]), (), (), prefix)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        # Its box may be left out, which argparse, for whom the command would then be the box, is not told.
        return "--demo[=BOX]" if action.dest == "demo" else super()._format_action_invocation(action)


class GpudeckHelp(CommandHelp):
    """The help of gpudeck itself: `groups` in place of argparse's one long list."""

    groups: ClassVar[Groups] = {}

    @classmethod
    def of(cls, groups: Groups) -> "type[GpudeckHelp]":
        return type("GpudeckHelp", (cls,), {"groups": groups})

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[argparse._MutuallyExclusiveGroup],
        prefix: str | None = None,
    ) -> None:
        super().add_usage(usage or "%(prog)s [OPTIONS] [COMMAND …]", actions, groups, prefix)

    def add_argument(self, action: argparse.Action) -> None:
        if not isinstance(action, argparse._SubParsersAction):
            super().add_argument(action)
            return
        column = 6 + max(len(name) for group in self.groups.values() for name in group)
        lines = []
        for group, commands in self.groups.items():
            lines.append(f"  {group}:")
            for name, summary in commands.items():
                first = f"    {name}".ljust(column)
                lines += textwrap.wrap(
                    summary, self._width, initial_indent=first, subsequent_indent=" " * column, break_on_hyphens=False
                )
        lines.append("gpudeck COMMAND --help has each command's own arguments.")
        self._add_item(lambda: "\n".join(lines) + "\n", [])
