"""What would go wrong between a start and the engines that run already, told before systemd is asked."""

from collections.abc import Iterable

from gpudeck.services.box.types import Snapshot
from gpudeck.services.engine.types import UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.models.read import read_model
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.rules.judge import judge
from gpudeck.services.rules.neighbours import shared
from gpudeck.services.rules.surroundings import Surroundings

_OCCUPIED = "gpu-occupied"
_EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104


def collision(spec: EngineSpec, engines: Iterable[UnitState], seen: Snapshot | None, vllm_version: str) -> str | None:
    """Why the engine of this spec can not start beside those that run, with the way out; None where it can.

    Cards, then ports, then memory, which is judged where card and model can be read; reads the model's files.
    """
    running = [state for state in engines if state.runs and state.name != spec.name and state.spec is not None]
    return _cards(spec, running) or _port(spec, running) or _memory(spec, seen, vllm_version)


def used_by_others(seen: Snapshot, name: str) -> dict[int, int]:
    """Bytes that others than the engine hold on each card."""
    return {
        reading.gpu: max(
            0,
            (reading.memory_used_bytes or 0)
            - sum(process.memory_bytes or 0 for process in reading.processes if process.engine == name),
        )
        for reading in seen.readings
    }


def _cards(spec: EngineSpec, running: list[UnitState]) -> str | None:
    for state in running:
        assert state.spec is not None
        both = sorted(set(spec.placement.gpus) & set(state.spec.placement.gpus))
        taken = [card for card in both if not shared(card, spec, state.spec)]
        if taken:
            cards = ", ".join(f"GPU {card}" for card in taken)
            one = len(taken) == 1
            return (
                f"{cards} belong{'s' if one else ''} to {state.name}, which runs: stop that first, or plan "
                f"{spec.name} on other cards, or with {'it' if one else 'them'} shared on purpose."
            )
    return None


def _port(spec: EngineSpec, running: list[UnitState]) -> str | None:
    host, port = spec.options.host, spec.options.port
    for state in running:
        assert state.spec is not None
        other = state.spec.options
        if other.port == port and (other.host == host or other.host in _EVERYWHERE or host in _EVERYWHERE):
            way_out = f"give {spec.name} another port, or stop that first."
            return f"Port {port} is {state.name}'s, which runs: {way_out}"
    return None


def _memory(spec: EngineSpec, seen: Snapshot | None, vllm_version: str) -> str | None:
    if seen is None or any(seen.box.gpu(card) is None for card in spec.placement.gpus):
        return None
    try:
        model = read_model(spec.model, dict(spec.environment))
    except OperatorError:
        return None  # a container's, or one that only the engine's user may read: vLLM will say so
    around = Surroundings(vllm_version=vllm_version)
    found = judge(seen.box, model, spec, used=used_by_others(seen, spec.name), around=around).findings
    told = next((each for each in found if each.rule == _OCCUPIED), None)
    return f"{told.message} {told.fix or ''}".rstrip() if told is not None else None
