"""Every entry of the table is held to real texts."""

import pytest

from gpudeck.services.diagnosis.entry import Entry
from gpudeck.services.diagnosis.reader import LogReader
from gpudeck.services.diagnosis.table import ENTRIES
from gpudeck.services.diagnosis.types import Diagnosis
from gpudeck.services.engine.loglines import take_apart
from tests.services.diagnosis.texts import TEXTS


def read(text: str) -> tuple[Diagnosis, ...]:
    reader = LogReader()
    reader.feed_all(text.split("\n"))
    return reader.diagnoses()


@pytest.mark.parametrize(("rule", "text", "source"), TEXTS, ids=[f"{rule}-{n}" for n, (rule, _, _) in enumerate(TEXTS)])
def test_a_real_text_is_known_by_its_entry_first(rule: str, text: str, source: str) -> None:
    found = read(text)
    assert found, source
    assert found[0].rule == rule
    assert found[0].meaning
    assert found[0].fix
    assert 1 <= found[0].line_number <= text.count("\n") + 1


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_every_sign_of_an_entry_has_a_real_text(entry: Entry) -> None:
    lines = [take_apart(line).text for rule, text, _ in TEXTS if rule == entry.id for line in text.split("\n")]
    lines += [found.line for rule, text, _ in TEXTS if rule == entry.id for found in read(text)]
    for sign in entry.signs:
        assert any(sign.literal in line and sign.pattern.search(line) for line in lines), sign.literal


def test_ids_are_unique() -> None:
    ids = [entry.id for entry in ENTRIES]
    assert len(ids) == len(set(ids))


def test_entries_that_are_covered_exist() -> None:
    ids = {entry.id for entry in ENTRIES}
    assert {rule for entry in ENTRIES for rule in entry.covers} <= ids
