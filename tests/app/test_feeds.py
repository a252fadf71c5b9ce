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


def test_a_backlog_keeps_order_and_announces_the_first_only() -> None:
    announced: list[int] = []
    backlog: Backlog[int] = Backlog(lambda: announced.append(len(backlog)))
    backlog.extend([])
    backlog.extend([1, 2, 3])
    backlog.extend([4])
    assert announced == [3]
    assert backlog.take(2) == [1, 2]
    backlog.extend([5])
    assert announced == [3]
    assert backlog.take(9) == [3, 4, 5]
    assert backlog.take(9) == []
    backlog.extend([6])
    assert announced == [3, 1]


def test_who_brings_more_than_is_taken_waits_and_nothing_is_lost() -> None:
    backlog: Backlog[int] = Backlog(lambda: None, limit=50)
    taken: list[int] = []

    def fill() -> None:
        for start in range(0, 9000, 10):
            backlog.extend(list(range(start, start + 10)))

    writer = threading.Thread(target=fill)
    writer.start()
    while len(taken) < 9000:
        assert len(backlog) < 60
        taken += backlog.take(7)
    writer.join()
    assert taken == list(range(9000))


def test_one_that_is_closed_lets_go_of_who_waits() -> None:
    backlog: Backlog[int] = Backlog(lambda: None, limit=2)
    backlog.extend([1, 2])
    writer = threading.Thread(target=backlog.extend, args=([3],))
    writer.start()
    backlog.close()
    writer.join(10)
    assert not writer.is_alive()
    assert backlog.take(9) == [1, 2]
