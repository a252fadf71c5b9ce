"""How a unit that is not what is loaded, written or run is told in lines."""

from collections.abc import Sequence

from gpudeck.services.engine.drift import Drift, drift_diff


def drift_lines(found: Sequence[Drift]) -> list[str]:
    """Each difference with its diff."""
    lines = []
    for drift in found:
        lines.append(f"  {drift.kind.value:7} {drift.sentence}")
        diff = drift_diff(drift)
        if not diff:
            diff = "(other lines than its command and its cards)"
        lines += [f"          {line}" for line in diff.splitlines()]
    return lines
