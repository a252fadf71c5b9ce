"""What `gpudeck check --json` prints."""

from collections.abc import Sequence

from gpudeck.services.box.shape import Field, Flag, Listing, OneOf, Record, Text
from gpudeck.services.check.types import Item, Outcome, passed

_LONG = 1 << 16

ITEM_DOCUMENT = Record(
    {
        "id": Field(Text(), "which line it is, the same in every run", required=True),
        "title": Field(Text(), "what is looked at", required=True),
        "outcome": Field(OneOf(tuple(outcome.value for outcome in Outcome)), "how it stands", required=True),
        "words": Field(Text(most=_LONG), "what was seen, or why it failed", required=True),
    }
)
CHECK_DOCUMENT = Record(
    {
        "passed": Field(Flag(), "whether nothing failed", required=True),
        "url": Field(Text(most=_LONG), "the engine's address", required=True),
        "items": Field(Listing(ITEM_DOCUMENT, 1 << 10), "the list, in the order of its finding", required=True),
        "curl": Field(Text(most=_LONG), "the short prompt by hand; the key is the variable", required=True),
    }
)


def document(url: str, items: Sequence[Item], curl: str) -> dict[str, object]:
    return {
        "passed": passed(tuple(items)),
        "url": url,
        "items": [
            {"id": item.id, "title": item.title, "outcome": item.outcome.value, "words": item.words} for item in items
        ],
        "curl": curl,
    }
