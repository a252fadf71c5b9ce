"""Cards that are sliced, worn, silent, or that draw a screen."""

from dataclasses import replace
from typing import Any

import pytest

from gpudeck.services.box.types import BoxEvent, Ecc, Modes, Reading, Rows
from gpudeck.services.box.types import Severity as EventSeverity
from gpudeck.services.rules.judge import judge
from gpudeck.services.rules.surroundings import Surroundings
from tests.services.rules.plans import MIXED, model, rules, spec

HEALTHY = Reading(
    1,
    ecc=Ecc(enabled=True, volatile_uncorrected=0),
    rows=Rows(),
    modes=Modes("default", True, False),
    mig_enabled=False,
)


def found(reading: Reading, *events: BoxEvent, cards: tuple[int, ...] = (1,)) -> dict[str, str]:
    around = Surroundings(readings=(reading,), events=events)
    return rules(judge(MIXED, model("llama-3.2-1b"), spec(cards), around=around))


def test_a_healthy_card_gets_no_word() -> None:
    assert found(HEALTHY) == {}


@pytest.mark.parametrize(
    ("changes", "rule", "severity"),
    [
        ({"mig_enabled": True}, "mig-mode", "error"),
        ({"modes": Modes(compute="prohibited", persistence=True)}, "compute-prohibited", "error"),
        ({"modes": Modes(fabric="in progress", persistence=True)}, "fabric-not-ready", "error"),
        ({"fault": "GPU 1 fell off the bus."}, "gpu-fault", "warning"),
        ({"rows": Rows(remapping_failed=True)}, "memory-worn", "warning"),
        ({"rows": Rows(remapping_pending=True)}, "memory-worn", "warning"),
        ({"ecc": Ecc(enabled=True, volatile_uncorrected=3)}, "memory-worn", "warning"),
        ({"modes": Modes(display_active=True, persistence=True)}, "display-attached", "info"),
        ({"modes": Modes(persistence=False)}, "persistence-off", "info"),
        ({"ecc": Ecc(enabled=False)}, "ecc-off", "info"),
    ],
)
def test_what_a_reading_tells(changes: dict[str, Any], rule: str, severity: str) -> None:
    assert found(replace(HEALTHY, **changes)) == {rule: severity}


def test_a_card_that_the_plan_does_not_use_is_left_alone() -> None:
    assert found(replace(HEALTHY, mig_enabled=True), cards=(2,)) == {}


def test_several_ranks_can_not_have_several_slices() -> None:
    judgement = judge(
        MIXED,
        model("llama-3.2-1b"),
        spec((1, 2)),
        around=Surroundings(readings=(replace(HEALTHY, mig_enabled=True),)),
    )
    assert "2 ranks can not each have a slice" in judgement.findings[0].message


def test_an_xid_is_remembered_for_its_card() -> None:
    event = BoxEvent(0.0, EventSeverity.ERROR, "Xid 79", gpu=1, xid=79)
    assert found(HEALTHY, event) == {"xid-history": "warning"}
    assert found(HEALTHY, replace(event, gpu=0)) == {}
    assert found(HEALTHY, replace(event, severity=EventSeverity.INFO)) == {}
