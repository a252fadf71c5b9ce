"""Why a job was not done, as a sentence."""

from gpudeck.services.engine.systemd.units import Facts
from gpudeck.services.engine.types import Scope

# Exit statuses of systemd itself, before the program runs: systemd.exec(5), "Process Exit Codes".
_EXEC_TROUBLE = {
    200: "its working directory can not be entered",
    203: "its program can not be executed",
    204: "it could not be set up",
    209: "its log could not be connected",
    216: "its group does not exist",
    217: "its user does not exist",
    226: "its namespace could not be set up",
}


def why_not_done(result: str, unit: str, facts: Facts, scope: Scope) -> str:
    """What the operator is told when a job ended with `result` instead of "done"."""
    look = f"journalctl{' --user' if scope is Scope.USER else ''} -u {unit}"
    if result == "canceled":
        return f"What was asked of {unit} was given up, since something else was asked of it meanwhile: try again."
    if result == "timeout":
        return f"{unit} took longer than its own time-out allows: see {look}."
    if result == "dependency":
        return f"{unit} was not started, since a unit that it needs did not start: see {look}."
    if result == "skipped":
        return f"{unit} was skipped, since a condition in it is not met: see systemctl status {unit}."
    status = facts.get("ExecMainStatus", 0)
    if facts.get("Result") == "start-limit-hit":
        return f"{unit} was started too often in a short time: see {look}, mend it, and start it again."
    if status in _EXEC_TROUBLE:
        return f"{unit} did not start, since {_EXEC_TROUBLE[status]} (status {status}): see {look}."
    return f"{unit} failed ({facts.get('Result', result)}): see {look}."


def why_not_loaded(unit: str, facts: Facts, scope: Scope) -> str | None:
    """What the operator is told of a unit that can not be started as it stands; None where it can."""
    user = " --user" if scope is Scope.USER else ""
    match facts["LoadState"]:
        case "not-found":
            return f"There is no {unit}: install the engine first."
        case "masked":
            return f"{unit} is masked: systemctl{user} unmask {unit} lets it be started again."
        case "bad-setting" | "error":
            _name, message = facts.get("LoadError", ("", ""))
            return f"systemd can not load {unit} ({message or facts['LoadState']}): see systemctl{user} status {unit}."
    return None
