"""The diagnosis of a start that was followed: by its decisive line, without its log being read again."""

from gpudeck.services.diagnosis.reader import told
from gpudeck.services.diagnosis.table import known_failure
from gpudeck.services.diagnosis.types import Around, Diagnosis, RunFacts
from gpudeck.services.engine.phases import Phase, Standing


def of_standing(standing: Standing, around: Around | None = None) -> Diagnosis | None:
    """What the decisive line of a failed start means; None where there is none, or the table does not know it."""
    line = standing.decisive
    entry = known_failure(line.text) if line is not None else None
    if line is None or entry is None:
        return None
    ended = (Phase.FAILED, Phase.STOPPING)
    phase = next((phase for phase, _ in reversed(standing.entered) if phase not in ended), Phase.STARTING)
    return told(
        entry, line.text, line.number, line.writer, RunFacts(phase, standing.kv_cache_tokens), around or Around()
    )
