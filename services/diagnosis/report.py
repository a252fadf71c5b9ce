"""The JSON document that `gpudeck diagnose --json` prints."""

from collections.abc import Iterable
from typing import Any

from gpudeck.services.box.shape import Field, Listing, OrNull, Record, Text, Whole
from gpudeck.services.diagnosis.types import Diagnosis

_SENTENCE = 1 << 16  # one may repeat a path, or a line of a log
_MANY = 1 << 10

DIAGNOSE_DOCUMENT = Record(
    {
        "diagnoses": Field(
            Listing(
                Record(
                    {
                        "rule": Field(Text(), "the entry's id, as in docs/failures.md", required=True),
                        "line": Field(Text(most=_SENTENCE), "what the log says, without its prefixes", required=True),
                        "line_number": Field(Whole(1, 1 << 62), "the line of the input, from 1", required=True),
                        "meaning": Field(Text(most=_SENTENCE), "what it means here", required=True),
                        "fix": Field(OrNull(Text(most=_SENTENCE)), "the way out", required=True),
                    }
                ),
                _MANY,
            ),
            "what went wrong, the decisive one first",
            required=True,
        )
    }
)


def document(diagnoses: Iterable[Diagnosis]) -> dict[str, Any]:
    return {
        "diagnoses": [
            {
                "rule": each.rule,
                "line": each.line,
                "line_number": each.line_number,
                "meaning": each.meaning,
                "fix": each.fix,
            }
            for each in diagnoses
        ]
    }
