"""The page of failures is the table's."""

from gpudeck.services.diagnosis.table import ENTRIES
from tests.services.diagnosis.write_docs import PAGE, page


def test_the_page_is_what_the_table_makes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python -m tests.services.diagnosis.write_docs"


def test_every_entry_has_a_heading() -> None:
    headings = {line[4:] for line in page().splitlines() if line.startswith("### ")}
    assert headings == {entry.id for entry in ENTRIES}
