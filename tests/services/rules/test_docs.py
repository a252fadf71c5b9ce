"""The page of rules is the rule table's."""

from gpudeck.services.rules.judge import RULES
from tests.services.rules.write_docs import PAGE, page, table


def test_the_page_is_what_the_table_makes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python -m tests.services.rules.write_docs"


def test_every_rule_stands_in_one_section() -> None:
    told = [rule for _, section in table() for rule in section]
    assert len(told) == len(set(told))
    assert set(RULES) <= set(told)


def test_every_rule_has_an_anchor_of_its_own() -> None:
    headings = [line[4:] for line in page().splitlines() if line.startswith("### ")]
    assert len(headings) == len(set(headings))
    assert {rule.id for rule in RULES} <= set(headings)
