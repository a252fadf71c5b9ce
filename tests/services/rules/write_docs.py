"""Writes docs/rules.md from the rule table: `python -m tests.services.rules.write_docs`."""

from collections import Counter
from pathlib import Path
from types import ModuleType

from gpudeck.services.plan import propose
from gpudeck.services.plan.findings import Severity
from gpudeck.services.rules import (
    additions,
    advice,
    architecture,
    asked,
    backends,
    driver,
    flags,
    health,
    identity,
    links,
    memory,
    mixed_memory,
    model,
    neighbours,
    numa,
    options,
    parallel,
    parallel_options,
    placement,
    quantized,
    serving,
)
from gpudeck.services.rules.rule import Rule

PAGE = Path(__file__).parents[3] / "docs" / "rules.md"
SECTIONS: tuple[tuple[str, tuple[ModuleType, ...]], ...] = (
    ("Placement", (placement, neighbours)),
    ("Parallelism", (parallel, parallel_options, quantized)),
    ("Cards and kernels", (architecture, backends)),
    ("Links and sockets", (links, numa)),
    ("Memory", (memory, mixed_memory)),
    ("Options and environment", (options, flags, serving)),
    ("The model", (model, identity)),
    ("Driver and health", (driver, health)),
    ("Advice", (advice, additions)),
    ("Asking the installed vLLM", (asked,)),
)
MEANINGS = {
    Severity.ERROR: "vLLM will not start, or will not run: the plan is blocked",
    Severity.WARNING: "it runs, at a cost or a risk: a caution",
    Severity.INFO: "worth knowing: the plan stays ready",
}
INTRODUCTION = """\
# The rules of a verdict

Every finding on the board, in `gpudeck plan`, `unit` and `install` comes from one of these rules and carries its name.
This page is made from the rule table (`python -m tests.services.rules.write_docs`); a test holds it to that.

vLLM asks only the first visible card for its compute capability; gpudeck checks every card. What is said of a card
follows from its compute capability and memory, never from its name. A source like vllm#7958 is an issue or pull
request of vllm-project/vllm; a path is one of vLLM's own files (0.32 unless another version is named).
"""


def table() -> list[tuple[str, tuple[Rule, ...]]]:
    """The sections with their rules, in the page's order."""
    sections = [(title, tuple(rule for theme in themes for rule in theme.RULES)) for title, themes in SECTIONS]
    return [*sections, ("Proposals", (propose.NO_PLACEMENT,))]


def page() -> str:
    rules = table()
    counts = Counter(rule.severity for _, section in rules for rule in section)
    lines = [INTRODUCTION]
    lines += [f"- **{severity.value}** ({counts[severity]} rules): {MEANINGS[severity]}" for severity in Severity]
    lines.append("")
    for title, section in rules:
        lines += [f"## {title}", "", "| rule | severity | what |", "| --- | --- | --- |"]
        lines += [f"| [{rule.id}](#{rule.id}) | {rule.severity.value} | {_cell(rule.title)} |" for rule in section]
        lines.append("")
        for rule in section:
            lines += [f"### {rule.id}", "", f"**{_plain(rule.title)}** ({rule.severity.value}).", ""]
            lines += [_plain(rule.why), "", f"Source: {_plain(rule.source)}", ""]
    return "\n".join(lines).rstrip() + "\n"


def _plain(text: str) -> str:
    """Text whose characters mean nothing to Markdown: `*` and `_` stand in names of files and options."""
    parts = text.split("`")
    parts[::2] = [part.replace("*", r"\*").replace("_", r"\_").replace("<", r"\<") for part in parts[::2]]
    return "`".join(parts)


def _cell(text: str) -> str:
    return _plain(text).replace("|", r"\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
