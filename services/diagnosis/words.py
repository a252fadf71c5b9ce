"""Words that several entries share."""

from gpudeck.services.box.types import GIB, Gpu
from gpudeck.services.diagnosis.entry import Found
from gpudeck.services.plan.types import EngineSpec


def card(gpu: Gpu) -> str:
    """`card 1 (NVIDIA A100-SXM4-40GB)`."""
    return f"card {gpu.index} ({gpu.name})"


def where(found: Found, *, otherwise: str = "the card") -> str:
    """The card that the line is about, as far as it is known."""
    return card(found.gpu) if found.gpu is not None else otherwise


def holders(found: Found) -> str:
    """Who holds memory on that card now, `ollama (pid 12, 9.5 GiB)`; "" where nobody does or it is not known."""
    gpu, snapshot = found.gpu, found.around.snapshot
    reading = snapshot.reading(gpu.index) if gpu is not None and snapshot is not None else None
    own = found.around.spec.name if found.around.spec is not None else ""
    told = []
    for process in reading.processes if reading is not None else ():
        if process.engine is not None and process.engine == own:
            continue
        size = f", {gib(process.memory_bytes)} GiB" if process.memory_bytes is not None else ""
        told.append(f"{process.engine or process.name} (pid {process.pid}{size})")
    return ", ".join(told)


def gib(size: int) -> str:
    return f"{size / GIB:.1f}"


def cards_below(found: Found, capability: tuple[int, int]) -> str:
    """The engine's cards of a lower compute capability, `card 0 (Tesla T4, 7.5)`; "" where none is known."""
    spec, snapshot = found.around.spec, found.around.snapshot
    if spec is None or snapshot is None:
        return ""
    gpus = [snapshot.box.gpu(index) for index in dict.fromkeys(spec.placement.gpus)]
    low = [
        gpu
        for gpu in gpus
        if gpu is not None and (gpu.compute_capability.major, gpu.compute_capability.minor) < capability
    ]
    return ", ".join(f"card {gpu.index} ({gpu.name}, {gpu.compute_capability})" for gpu in low)


def shape(spec: EngineSpec) -> str:
    """`TP 2 × PP 2`."""
    placement = spec.placement
    return f"TP {placement.tensor_parallel_size} × PP {placement.pipeline_parallel_size}"
