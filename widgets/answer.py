"""An answer as Markdown.  Imported when the first one comes: it costs what the panel's whole start costs.

An answer is foreign text.  Nothing in it can be clicked, opened, or taken for Textual's own markup: links, images and
HTML stay what was written, and tables and code are drawn by blocks that do no more than draw.
"""

from collections.abc import Callable

from markdown_it import MarkdownIt
from rich import box
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static
from textual.widgets import _markdown as blocks
from textual.widgets.markdown import Markdown

# Highlighting runs a lexer's regular expressions over the answer, again with every piece that comes: only these, whose
# expressions are simple, and only while there is little of it.
_LANGUAGES = frozenset({"python", "py", "json", "yaml", "toml", "ini", "diff", "sql"})
_HIGHLIGHT_UP_TO = 8_000


def parser() -> MarkdownIt:
    """Paragraphs, lists, tables, code, emphasis; what would hide or replace characters of the answer is off."""
    return MarkdownIt("gfm-like", {"html": False, "linkify": False}).disable(
        ["link", "image", "autolink", "reference", "entity"]
    )


class AnswerFence(blocks.MarkdownFence):
    """Code, coloured where that is cheap."""

    @classmethod
    def highlight(cls, code: str, language: str, ansi: bool = False, dark: bool = False) -> Content:
        if language in _LANGUAGES and len(code) <= _HIGHLIGHT_UP_TO:
            return super().highlight(code, language, ansi=ansi, dark=dark)
        return Content(code)


class AnswerTable(blocks.MarkdownTable):
    """A table as one widget; Textual's own has one for each cell, with tooltips that read the cell as markup."""

    def compose(self) -> ComposeResult:
        headers, rows = self._get_headers_and_rows()
        table = Table(box=box.ASCII if self._ascii else box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for header in headers:
            table.add_column(Text(header.plain, style="bold"), overflow="fold")
        for row in rows:
            table.add_row(*(Text(cell.plain) for cell in row[: len(headers)]))
        yield Static(table)

    @property
    def _ascii(self) -> bool:
        markdown = self._markdown
        return isinstance(markdown, AnswerMarkdown) and markdown.ascii_only

    async def _update_from_block(self, block: blocks.MarkdownBlock) -> None:
        await self.remove()
        await self._markdown.mount(block)


class AnswerMarkdown(Markdown):
    """Markdown that grows by `append`.  `ascii_only` draws bullets and tables without Unicode."""

    DEFAULT_CSS = """
    AnswerMarkdown {
        padding: 0;
        MarkdownHeader, MarkdownH1, MarkdownH2, MarkdownH3 {
            margin: 0; padding: 0; width: 1fr; content-align: left top;
            background: transparent; color: $primary; text-style: bold;
        }
        MarkdownFence { margin: 0 0 1 0; background: $panel; color: $foreground; }
        MarkdownFence > Label { padding: 0 2; }
        MarkdownTable { margin: 0 0 1 0; background: transparent; }
        MarkdownTable > Static { width: 1fr; }
        MarkdownBlockQuote { margin: 0 0 1 0; }
    }
    """

    def __init__(self, *, ascii_only: bool = False) -> None:
        factory: Callable[[], MarkdownIt] = parser
        super().__init__(parser_factory=factory, open_links=False, classes="answer")
        self.ascii_only = ascii_only
        if ascii_only:
            self.BULLETS = ["* ", "- ", "+ "]

    def get_block_class(self, block_name: str) -> type[blocks.MarkdownBlock]:
        if block_name in ("fence", "code_block"):
            return AnswerFence
        return AnswerTable if block_name == "table_open" else super().get_block_class(block_name)
