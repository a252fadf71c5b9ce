"""Writes docs/failures.md from the failure table: `python -m tests.services.diagnosis.write_docs`."""

from pathlib import Path

from gpudeck.services.diagnosis.table import SECTIONS

PAGE = Path(__file__).parents[3] / "docs" / "failures.md"
INTRODUCTION = """\
# Failures that gpudeck knows

`gpudeck diagnose`, a failed `gpudeck start` and the panel's failure card tell one of these. This page is made from the
table (`python -m tests.services.diagnosis.write_docs`); a test holds it to that, and every entry to real texts of vLLM
0.6 to 0.33, torch, NCCL, Hugging Face and the kernel.

Told first is the decisive line: the first exception of the first process that failed, never a wrapper such as "See root
cause above". Where the line has numbers, the fix is computed from them; where engine and box are known, the words name
the card and who holds its memory. A path is one of vLLM's own files; owner/repo#n is a public report.
"""


def page() -> str:
    lines = [INTRODUCTION]
    for title, entries in SECTIONS:
        lines += [f"## {title}", ""]
        for entry in entries:
            note = " (worth knowing, no failure)" if entry.notice else ""
            lines += [f"### {entry.id}", "", f"**{_plain(entry.title)}**{note}.", ""]
            lines += [_plain(entry.meaning), "", f"Fix: {_plain(entry.fix)}", "", f"Source: {_plain(entry.source)}", ""]
    return "\n".join(lines).rstrip() + "\n"


def _plain(text: str) -> str:
    """Text whose characters mean nothing to Markdown: `*` and `_` stand in names of files and options."""
    parts = text.split("`")
    parts[::2] = [part.replace("*", r"\*").replace("_", r"\_").replace("<", r"\<") for part in parts[::2]]
    return "`".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
