"""Which events of the box are new, and how many of them are told one by one."""

from dataclasses import replace

from gpudeck.app.box_news import MOST, news, told
from gpudeck.services.box.types import Box, BoxEvent, Severity, Snapshot

XID = BoxEvent(10.0, Severity.ERROR, "GPU 0: Xid 79.", 0, 79)
BACK = BoxEvent(20.0, Severity.INFO, "GPU 0 answers again.", 0)


def shown(*events: BoxEvent) -> Snapshot:
    return Snapshot(Box(()), 30.0, (), events)


def test_only_what_came_since_the_snapshot_before_is_news() -> None:
    assert news(None, shown(XID)) == ()
    assert news(shown(), shown(XID)) == (XID,)
    assert news(shown(XID), shown(XID, BACK)) == (BACK,)
    assert news(shown(XID, BACK), shown(BACK)) == ()


def test_the_same_again_later_is_news_and_a_replays_lost_digits_are_not() -> None:
    again = replace(XID, at=40.0)
    assert news(shown(XID), shown(XID, again)) == (again,)
    assert news(shown(XID), shown(replace(XID, at=10.0 + 1e-7))) == ()


def test_many_at_once_are_one_notice_with_the_worst() -> None:
    assert told((XID, BACK)) == [(Severity.ERROR, XID.text), (Severity.INFO, BACK.text)]
    many = (*(replace(BACK, gpu=gpu) for gpu in range(MOST)), XID)
    assert told(many) == [(Severity.ERROR, f"{MOST + 1} things happened to the cards; the worst: GPU 0: Xid 79.")]
