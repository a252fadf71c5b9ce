"""Why an engine failed, as far as the panel knows it; pure."""

from gpudeck.app.state import DeckState, EngineInfo
from gpudeck.services.diagnosis.standing import of_standing
from gpudeck.services.diagnosis.types import Around, Diagnosis


def failure_of(state: DeckState, info: EngineInfo) -> Diagnosis | None:
    """The diagnosis of an engine that does not run, on this box; None where it runs or the reason is not known."""
    if not info.why:
        return None
    taken = state.ports_of_others(info.unit.name)

    def next_port(port: int) -> int:
        return next((each for each in range(port, 65536) if each not in taken), port)

    return of_standing(info.standing, Around(state.snapshot, info.unit.spec, next_port))
