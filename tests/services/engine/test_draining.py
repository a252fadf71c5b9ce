import threading
from collections.abc import Callable

import pytest

from gpudeck.services.engine import draining
from gpudeck.services.engine.draining import InFlight, drain, in_flight_words


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "_EVERY_S", 0.001)


def answers(*told: InFlight | None) -> Callable[[], InFlight | None]:
    """Each in turn, the last one for ever."""
    left = list(told)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_a_drain_ends_when_nothing_is_in_flight() -> None:
    heard: list[InFlight] = []
    look = answers(InFlight(2, 1), InFlight(2, 1), InFlight(1, 0), None, InFlight(0, 0))
    assert drain(look, 60, heard.append, threading.Event()) == InFlight(0, 0)
    assert heard == [InFlight(2, 1), InFlight(1, 0), InFlight(0, 0)]


def test_a_queue_alone_is_waited_for_too() -> None:
    assert drain(answers(InFlight(0, 1), InFlight(0, 0)), 60, lambda _: None, threading.Event()) == InFlight(0, 0)


def test_a_drain_ends_at_its_deadline_and_when_it_is_cut_short() -> None:
    busy = answers(InFlight(1, 0))
    assert drain(busy, 0.01, lambda _: None, threading.Event()) == InFlight(1, 0)
    cut = threading.Event()
    assert drain(busy, 3600, lambda _: cut.set(), cut) == InFlight(1, 0)


def test_an_engine_that_tells_nothing_any_more_is_not_waited_for() -> None:
    assert drain(answers(InFlight(1, 0), None), 3600, lambda _: None, threading.Event()) is None


@pytest.mark.parametrize(
    ("running", "waiting", "words"),
    [
        (0, 0, "no request is in flight"),
        (1, 0, "1 request runs"),
        (2, 1, "2 requests run and 1 waits"),
        (0, 1, "1 request waits"),
        (1024, 3000, "1,024 requests run and 3,000 wait"),
    ],
)
def test_requests_in_words(running: int, waiting: int, words: str) -> None:
    assert in_flight_words(InFlight(running, waiting)) == words
