"""A service that others wrote and that runs vLLM, as far as its unit can be read."""

from dataclasses import dataclass

from gpudeck.services.plan.findings import Finding
from gpudeck.services.plan.types import EngineSpec


@dataclass(frozen=True, slots=True)
class UnitFiles:
    """A unit as it stands on disk: its main file and its drop-ins, in the order in which systemd reads them."""

    unit: str  # "qwen-prod.service", "vllm@coder.service"
    texts: tuple[str, ...]
    path: str = ""  # of the main file


@dataclass(frozen=True, slots=True)
class Container:
    """`docker run` (or podman) of an image that holds vLLM."""

    image: str
    name: str | None = None
    gpus: str | None = None  # what --gpus says: "all", "2", "device=0,1"


@dataclass(frozen=True, slots=True)
class Adopted:
    """What a unit runs.  `spec` holds as many ranks as it has cards; what it asks for stands beside it."""

    unit: str
    spec: EngineSpec
    tensor_parallel_size: int
    pipeline_parallel_size: int
    replicas: int
    cards: tuple[int, ...] | None  # that it may see; None: all of the box
    user: str | None = None  # None: root, at system scope
    container: Container | None = None
    old_entry_point: bool = False  # python -m vllm.entrypoints.openai.api_server
    version: str | None = None  # of vLLM, where an image's tag names it
    ordered: bool = True  # its card numbers are NVML's: CUDA_DEVICE_ORDER=PCI_BUS_ID
    missing_files: tuple[str, ...] = ()  # environment files that could not be read

    @property
    def world_size(self) -> int:
        return self.tensor_parallel_size * self.pipeline_parallel_size * self.replicas


@dataclass(frozen=True, slots=True)
class Review:
    """What is wrong with it, and the unit that gpudeck would write instead (None: it can not be written)."""

    adopted: Adopted
    findings: tuple[Finding, ...]
    corrected: EngineSpec | None
