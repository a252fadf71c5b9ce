"""vLLM's versions compare as numbers, whatever hangs on them."""

import pytest

from gpudeck.services.plan.versions import NEWEST_KNOWN, release


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.24.0", (0, 24, 0)), ("0.9", (0, 9, 0)), ("v0.27.1rc2+cu130", (0, 27, 1)), ("1", (1, 0, 0))],
)
def test_a_release(text: str, expected: tuple[int, int, int]) -> None:
    assert release(text) == expected


def test_what_is_no_version_counts_as_the_newest_known() -> None:
    assert release("nightly") == release("") == release(NEWEST_KNOWN)
