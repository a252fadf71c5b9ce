"""What a box is and what is read from it: the words of every other room.

All of it is frozen and passes between threads freely.  A quantity that a card does not report is None, never 0.
Memory is in bytes, power in watts, temperature in degrees Celsius, bandwidth in GB/s (10^9), clocks in MHz.
"""

from dataclasses import dataclass, field
from typing import Protocol

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, slots=True, order=True)
class ComputeCapability:
    """CUDA's architecture number of a card: 8.9 is `ComputeCapability(8, 9)`."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True, slots=True)
class Pcie:
    """Where a card sits on the bus and the widest connection that card and slot agree on."""

    bus: str | None = None  # "00000000:3B:00.0", as NVML writes it
    gen: int | None = None
    width: int | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """A card's lasting facts: they do not change while the driver is loaded."""

    index: int  # NVML's index, which is PCI order; the number on every screen
    name: str
    memory_bytes: int
    compute_capability: ComputeCapability
    uuid: str | None = None
    pcie: Pcie = field(default_factory=Pcie)
    numa: str | None = None  # as nvidia-smi prints it: "0", "0-1"
    cpu_affinity: str | None = None  # "0-55,112-167"
    power_limit_w: float | None = None
    memory_bandwidth_gbs: float | None = None
    memory_reserved_bytes: int | None = None  # kept by the driver: CUDA's total is memory_bytes without it


@dataclass(frozen=True, slots=True)
class Link:
    """How two GPUs reach each other, in the terms of `nvidia-smi topo -m`: NV<n>, PIX, PXB, PHB, NODE, SYS."""

    a: int
    b: int
    kind: str


@dataclass(frozen=True, slots=True)
class Box:
    """One machine: its cards, the links between them, its driver.  A pair without a link is SYS."""

    gpus: tuple[Gpu, ...]
    links: tuple[Link, ...] = ()
    name: str = ""
    driver: str | None = None
    cuda: str | None = None  # the newest CUDA that the driver runs: "13.0"
    host_memory_bytes: int | None = None
    faults: tuple[str, ...] = ()  # one sentence for each card that the driver counts and that could not be opened

    def gpu(self, index: int) -> Gpu | None:
        return next((gpu for gpu in self.gpus if gpu.index == index), None)

    def link(self, a: int, b: int) -> str:
        """The kind of the link between two cards, "X" for a card and itself."""
        if a == b:
            return "X"
        for link in self.links:
            if {link.a, link.b} == {a, b}:
                return link.kind
        return "SYS"


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds memory on a card; `memory_bytes` is None where NVML can not tell."""

    pid: int
    name: str
    memory_bytes: int | None = None
    user: str | None = None
    engine: str | None = None  # the gpudeck or vLLM engine that it belongs to
    tp_rank: int | None = None
    pp_rank: int | None = None
    dp_rank: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One card at one moment.  With a `fault` (one sentence) the rest may be None or the last that was known."""

    gpu: int
    fault: str | None = None
    utilization_percent: int | None = None
    memory_utilization_percent: int | None = None
    memory_used_bytes: int | None = None  # without the driver's reserved part
    memory_reserved_bytes: int | None = None
    memory_free_bytes: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    sm_clock_mhz: int | None = None
    fan_percent: int | None = None
    pcie_gen: int | None = None
    pcie_width: int | None = None
    throttle_reasons: tuple[str, ...] = ()
    processes: tuple[GpuProcess, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every reading of a box at one moment; `readings` stand in the order of `box.gpus`."""

    box: Box
    at: float  # seconds since the epoch
    readings: tuple[Reading, ...]

    def reading(self, index: int) -> Reading | None:
        return next((reading for reading in self.readings if reading.gpu == index), None)


class BoxSource(Protocol):
    """Where snapshots come from: NVML, or a box file that is replayed.  Used by one thread at a time."""

    def open(self) -> Box:
        """Begin, and return the box.  Raises OperatorError where there is none to be read."""
        ...

    def read(self) -> Snapshot:
        """Read every card once.  A card that fails carries its fault; only the loss of all raises OperatorError."""
        ...

    def close(self) -> None: ...
