"""Units as D-Bus shows them, read into the panel's words."""

from collections.abc import Mapping
from typing import Any

from gpudeck.services.engine.systemd.connection import CALL_SECONDS, SYSTEMD, Connection
from gpudeck.services.engine.types import Scope, UnitState
from gpudeck.services.plan.types import EngineSpec

UNIT = f"{SYSTEMD}.Unit"
SERVICE = f"{SYSTEMD}.Service"
_UNIT_PATH = "/org/freedesktop/systemd1/unit/"

_CLD_EXITED = 1  # ExecMainCode speaks waitid(2)'s language
Facts = Mapping[str, Any]


def unit_of_path(path: str) -> str:
    """The unit's name in an object path, in which all but letters and digits is written _xx; "" for other objects."""
    if not path.startswith(_UNIT_PATH):
        return ""
    first, *rest = path.removeprefix(_UNIT_PATH).split("_")
    try:
        decoded = [bytes.fromhex(part[:2]).decode("latin-1") + part[2:] for part in rest]
    except ValueError:
        return ""
    return first + "".join(decoded)


def load(connection: Connection, unit: str) -> str:
    """The object path of a unit, which systemd loads for that; what it could not load has a path as well."""
    return str(connection.manager.LoadUnit(unit, timeout=CALL_SECONDS))


def facts_of(connection: Connection, path: str) -> dict[str, Any]:
    """All properties of a service unit, of both interfaces; of a timer only those that all units have."""
    properties = connection.properties(path)
    is_service = unit_of_path(path).endswith(".service")
    facts: dict[str, Any] = properties.GetAll(SERVICE, timeout=CALL_SECONDS) if is_service else {}
    facts.update(properties.GetAll(UNIT, timeout=CALL_SECONDS))
    return facts


def state_from(facts: Facts, *, name: str, unit: str, scope: Scope, spec: EngineSpec | None) -> UnitState:
    """`spec` is what gpudeck made the unit from; None for a unit that it did not write."""
    return UnitState(
        name=name,
        unit=unit,
        scope=scope,
        managed=spec is not None,
        active=facts["ActiveState"],
        # A masked unit is "dead" like any other that does not run, and can not be started.
        sub="masked" if facts["LoadState"] == "masked" else facts["SubState"],
        result=facts.get("Result", ""),
        main_pid=facts.get("MainPID") or None,
        since=facts["StateChangeTimestamp"] / 1e6 if facts["StateChangeTimestamp"] else None,
        exit_status=_exit_status(facts),
        restarts=facts.get("NRestarts", 0),
        spec=spec,
        retry_at=_retry_at(facts),
        gave_up=_gave_up(facts),
    )


def _retry_at(facts: Facts) -> float | None:
    """When a crashed unit is started again, in seconds since the epoch; None where no start is due."""
    if "auto-restart" not in facts["SubState"] or not facts["StateChangeTimestamp"]:
        return None
    # The pause grows by RestartSteps=, which systemd knows from 254 on; before, it is always the same.
    pause = facts.get("RestartUSecNext") or facts.get("RestartUSec", 0)
    return float(facts["StateChangeTimestamp"] + pause) / 1e6


def _gave_up(facts: Facts) -> bool:
    """Whether the start limit ended a crash loop.

    Result says so only after an end that looked like none (exit code 0); else it stays that of the last crash, and
    the count of restarts stands at the limit.
    """
    burst = facts.get("StartLimitBurst", 0)
    return facts["ActiveState"] == "failed" and (
        facts.get("Result") == "start-limit-hit" or 0 < burst <= facts.get("NRestarts", 0)
    )


def _exit_status(facts: Facts) -> int | None:
    """How the main process last ended: its exit code, or 128+N when signal N killed it; None while it runs."""
    code, status = facts.get("ExecMainCode", 0), facts.get("ExecMainStatus", 0)
    if not code:
        return None
    return int(status) if code == _CLD_EXITED else 128 + int(status)
