"""Values handed from service threads to the screen: nothing grows, the order holds, and nothing is announced twice."""

import threading

from textual.message import Message

from gpudeck.app.feeds import Backlog, LatestSlot
from gpudeck.app.messages import BoxArrived


def test_only_the_newest_value_is_kept_and_announced_once() -> None:
    posted: list[Message] = []
    slot: LatestSlot[int] = LatestSlot(posted.append, BoxArrived)
    for value in range(60):
        slot.put(value)
    assert len(posted) == 1
    assert slot.take() == 59
    assert slot.take() is None
    slot.put(60)
    assert len(posted) == 2
    assert slot.take() == 60


def test_a_backlog_keeps_order_and_counts_what_it_drops() -> None:
    backlog: Backlog[int] = Backlog(limit=5)
    backlog.extend([1, 2, 3])
    assert backlog.take() == ([1, 2, 3], 0)
    assert backlog.take() == ([], 0)
    backlog.extend([1, 2, 3, 4])
    backlog.extend([5, 6, 7])
    assert backlog.take() == ([3, 4, 5, 6, 7], 2)
    backlog.extend(list(range(12)))
    assert backlog.take() == ([7, 8, 9, 10, 11], 7)


def test_nothing_is_lost_between_two_threads() -> None:
    backlog: Backlog[int] = Backlog()
    taken: list[int] = []

    def fill() -> None:
        for start in range(0, 9000, 10):
            backlog.extend(list(range(start, start + 10)))

    writer = threading.Thread(target=fill)
    writer.start()
    while writer.is_alive():
        taken += backlog.take()[0]
    writer.join()
    taken += backlog.take()[0]
    assert taken == list(range(9000))
