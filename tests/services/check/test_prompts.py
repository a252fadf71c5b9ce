"""What an answer to a canned prompt must have."""

import pytest

from gpudeck.services.check.prompts import CHINESE, CODE, JSON, LONGEST, SHORT, Canned, Heard, judged, long_prompt
from gpudeck.services.check.types import Item, Outcome, passed
from gpudeck.services.http.events import Done, Usage


def heard(text: str, *, reasoning: str = "", finish: str = "stop", tokens: int = 8) -> Heard:
    return Heard(text, reasoning, 3, Done(finish, 1.0, 0.2, Usage(12, tokens)))


@pytest.mark.parametrize(
    ("prompt", "answer", "outcome", "words"),
    [
        (SHORT, heard("Hello."), Outcome.PASSED, "12 + 8 tokens"),
        (SHORT, heard("", tokens=0), Outcome.FAILED, "an empty answer"),
        (SHORT, heard("", reasoning="Hm."), Outcome.PASSED, "first after 0.20 s"),
        (JSON, heard('{"status": "ok", "cards": 3, "ready": true}'), Outcome.PASSED, "of the shape"),
        (JSON, heard("[1]"), Outcome.NOTE, "not of the shape"),
        (JSON, heard("Sure! Here"), Outcome.FAILED, "no JSON"),
        (JSON, heard('{"status": "o', finish="length"), Outcome.NOTE, "cut before"),
        (JSON, heard("[" * 100_000), Outcome.FAILED, "no JSON"),
        (CHINESE, heard("北京是中国的首都。"), Outcome.PASSED, "北京"),
        (CHINESE, heard("Beijing is a city."), Outcome.NOTE, "without Chinese characters"),
        (CHINESE, heard("北\ufffd\ufffd"), Outcome.NOTE, "came broken"),
        (long_prompt(1024), heard(f"It is {CODE}."), Outcome.PASSED, "found the number"),
        (long_prompt(1024), heard("\x1b[31mNo idea"), Outcome.NOTE, "^[[31mNo idea"),
    ],
)
def test_an_answer_is_judged(prompt: Canned, answer: Heard, outcome: Outcome, words: str) -> None:
    item = judged(prompt, answer)
    assert (item.id, item.outcome) == (prompt.id, outcome)
    assert words in item.words


def test_the_long_prompt_takes_most_of_the_context_and_never_minutes() -> None:
    lengths = [len(long_prompt(context).text) for context in (512, 4096, 1 << 20)]
    assert lengths == sorted(lengths)
    assert lengths[0] < 512 * 5
    assert lengths[2] < LONGEST * 6
    assert len(long_prompt(4096, 0.5).text) < lengths[1] * 0.6
    assert CODE in long_prompt(None).text


def test_a_list_passes_where_nothing_failed_and_something_was_seen() -> None:
    lines = {outcome: Item("x", "x", outcome) for outcome in Outcome}
    assert passed((lines[Outcome.PASSED], lines[Outcome.NOTE], lines[Outcome.SKIPPED]))
    assert not passed((lines[Outcome.PASSED], lines[Outcome.FAILED]))
    assert not passed((lines[Outcome.SKIPPED],))
    assert not passed(())
