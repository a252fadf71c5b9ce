"""What a box is and what is read from it: the words of every other room.

All of it is frozen and passes between threads freely.  A quantity that a card does not report is None, never 0.
Memory is in bytes, power in watts, temperature in degrees Celsius, bandwidth in GB/s (10^9), traffic in bytes a second,
clocks in MHz.
"""

from dataclasses import dataclass, field
from enum import Enum, Flag, auto
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
class NvLink:
    """One NVLink of a card: a lane of its own, with another card, a switch or a processor at its other end."""

    lane: int
    up: bool
    version: int | None = None  # 1 to 5
    speed_gbs: float | None = None  # in each direction
    remote: str | None = None  # "gpu", "switch", "cpu", "other" (a card that is not of this box); None: not told
    peer: int | None = None  # the index of the card at the other end, where it is one of this box
    bus: str | None = None  # PCI bus id of what is at the other end


@dataclass(frozen=True, slots=True)
class Gpu:
    """A card's lasting facts: they do not change while the driver is loaded, but for NVLinks that go up or down."""

    index: int  # NVML's index, which is PCI order; the number on every screen
    name: str
    memory_bytes: int
    compute_capability: ComputeCapability
    uuid: str | None = None
    pcie: Pcie = field(default_factory=Pcie)
    numa: str | None = None  # as nvidia-smi prints it: "0", "0-1"
    cpu_affinity: str | None = None  # "0-55,112-167"
    power_limit_w: float | None = None  # enforced when the box was opened; `Reading.power_limit_w` is it now
    memory_bandwidth_gbs: float | None = None
    memory_reserved_bytes: int | None = None  # kept by the driver: CUDA's total is memory_bytes without it
    unified_memory: bool = False  # it has none of its own: memory_bytes is the host's, and so is what is in use
    power_default_w: float | None = None
    power_min_w: float | None = None  # the range in which the limit can be set
    power_max_w: float | None = None
    sm_clock_max_mhz: int | None = None
    memory_clock_max_mhz: int | None = None
    slowdown_c: int | None = None  # core temperature from which the hardware slows the card down
    shutdown_c: int | None = None  # and switches it off
    memory_limit_c: int | None = None  # memory temperature from which it is slowed down
    nvlinks: tuple[NvLink, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """How two GPUs reach each other, in the terms of `nvidia-smi topo -m`: NV<n>, PIX, PXB, PHB, NODE, SYS."""

    a: int
    b: int
    kind: str


@dataclass(frozen=True, slots=True)
class PeerAccess:
    """Whether two GPUs reach each other's memory straight, in the terms of `nvidia-smi topo -p2p`.

    OK; CNS chipset, GNS GPU, TNS topology not supported; DR disabled by a registry key; NS not supported; U unknown.
    """

    a: int
    b: int
    read: str | None = None
    write: str | None = None
    nvlink: str | None = None
    atomics: str | None = None


@dataclass(frozen=True, slots=True)
class Accelerator:
    """A device on the PCI bus that computes and is no NVIDIA card."""

    address: str  # "0000:c1:00.0"
    vendor: str  # "AMD"
    name: str  # "Aqua Vanjaram [Instinct MI300X]", or "1002:74a1" where the machine knows no name

    @property
    def title(self) -> str:
        return f"{self.vendor} {self.name}"

    @property
    def says(self) -> str:
        """One sentence: what it is, and that gpudeck leaves it alone."""
        return f"{self.title} at {self.address} is out of scope: gpudeck reads and plans NVIDIA cards only."


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
    peer_access: tuple[PeerAccess, ...] = ()
    accelerators: tuple[Accelerator, ...] = ()  # of other makers
    topology_known: bool = True  # False: the driver does not tell how some cards are joined (WSL, some VMs)

    def gpu(self, index: int) -> Gpu | None:
        if 0 <= index < len(self.gpus) and self.gpus[index].index == index:
            return self.gpus[index]  # as NVML lists them
        return next((gpu for gpu in self.gpus if gpu.index == index), None)

    def link(self, a: int, b: int) -> str:
        """The kind of the link between two cards, "X" for a card and itself."""
        if a == b:
            return "X"
        for link in self.links:
            if {link.a, link.b} == {a, b}:
                return link.kind
        return "SYS"

    def access(self, a: int, b: int) -> PeerAccess | None:
        """What the driver tells of straight access between two cards; None where it tells nothing."""
        return next((pair for pair in self.peer_access if {pair.a, pair.b} == {a, b}), None)


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
    started_at: float | None = None  # seconds since the epoch
    mig: int | None = None  # the GPU instance that it runs in, on a card in MIG mode
    command: str | None = None  # its command line, without keys and passwords
    container: str | None = None  # "container gemma": the container that it runs in


@dataclass(frozen=True, slots=True)
class LaneReading:
    """One NVLink at one moment: traffic, and errors since the driver was loaded."""

    lane: int
    tx_bytes_s: float | None = None
    rx_bytes_s: float | None = None
    replays: int | None = None  # packets that were sent again
    recoveries: int | None = None  # times that the link was trained anew
    crc_errors: int | None = None


@dataclass(frozen=True, slots=True)
class Ecc:
    """Memory errors: volatile ones since the driver was loaded, aggregate ones over the card's life."""

    enabled: bool | None = None
    enabled_after_reset: bool | None = None
    volatile_corrected: int | None = None
    volatile_uncorrected: int | None = None
    aggregate_corrected: int | None = None
    aggregate_uncorrected: int | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """Memory that the card has put out of use: rows remapped (Ampere and later), pages retired (before)."""

    remapped_corrected: int | None = None  # because of errors that were corrected
    remapped_uncorrected: int | None = None
    remapping_pending: bool | None = None  # done at the next reset
    remapping_failed: bool | None = None  # a bank has no spare row left: the card is to be replaced
    retired_single_bit: int | None = None
    retired_double_bit: int | None = None
    retirement_pending: bool | None = None


@dataclass(frozen=True, slots=True)
class Modes:
    """How a card is set up."""

    compute: str | None = None  # "default", "exclusive process", "exclusive thread", "prohibited"
    persistence: bool | None = None
    display_active: bool | None = None  # a desktop runs on it
    fabric: str | None = None  # NVSwitch fabric: "completed", "in progress", "not started"; CUDA needs "completed"


@dataclass(frozen=True, slots=True)
class MigInstance:
    """One MIG device of a card."""

    gpu_instance: int
    compute_instance: int | None = None
    name: str | None = None  # "MIG 3g.20gb"
    uuid: str | None = None
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    multiprocessors: int | None = None


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
    # When this card was read, in seconds since the epoch; None: at the snapshot's own time.  Older where the card is
    # slow or hangs.  Not compared: two readings are the same when they say the same.
    at: float | None = field(default=None, compare=False)
    clock_idle: bool | None = None  # the clock is low because nothing runs; None: the card tells no clock reasons
    processes_hidden: bool = False  # the driver does not tell who is on the card (WSL)
    mig_enabled: bool | None = None
    mig: tuple[MigInstance, ...] = ()
    # Asked for with Demand.DETAILS.
    encoder_percent: int | None = None
    decoder_percent: int | None = None
    memory_temperature_c: int | None = None
    power_limit_w: float | None = None  # enforced now
    memory_clock_mhz: int | None = None
    performance_state: int | None = None  # 0 (P0, fastest) to 15
    # With Demand.TRAFFIC.
    pcie_tx_bytes_s: float | None = None  # out of the card
    pcie_rx_bytes_s: float | None = None
    nvlink_tx_bytes_s: float | None = None  # over all its lanes
    nvlink_rx_bytes_s: float | None = None
    lanes: tuple[LaneReading, ...] = ()
    # With Demand.HEALTH.
    ecc: Ecc | None = None
    rows: Rows | None = None
    modes: Modes | None = None
    pcie_replays: int | None = None
    energy_j: float | None = None  # since the driver was loaded


class Severity(str, Enum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class BoxEvent:
    """Something that happened to the box while it was watched."""

    at: float  # seconds since the epoch
    severity: Severity
    text: str  # what happened, what it means and the way out, in one or two sentences
    gpu: int | None = None
    xid: int | None = None  # NVIDIA's number of a driver error


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every reading of a box at one moment; `readings` stand in the order of `box.gpus`."""

    box: Box
    at: float  # seconds since the epoch
    readings: tuple[Reading, ...]
    events: tuple[BoxEvent, ...] = ()  # the last ones since the box was opened, oldest first

    def reading(self, index: int) -> Reading | None:
        return next((reading for reading in self.readings if reading.gpu == index), None)

    def age_of(self, reading: Reading, now: float) -> float:
        """How many seconds before `now` a reading of this snapshot was taken."""
        return max(now - (self.at if reading.at is None else reading.at), 0.0)


class Demand(Flag):
    """What somebody looks at beside utilisation, memory, temperature, power, clock, throttling and processes.

    What nobody looks at is not read.
    """

    NOTHING = 0
    DETAILS = auto()  # encoder, decoder, memory temperature and clock, performance state, PCIe connection, limit, fan
    TRAFFIC = auto()  # PCIe and NVLink throughput
    HEALTH = auto()  # ECC, remapped rows, link errors, modes, energy
    ALL = DETAILS | TRAFFIC | HEALTH


class BoxSource(Protocol):
    """Where snapshots come from: NVML, or a box file that is replayed.  Used by one thread at a time."""

    def open(self) -> Box:
        """Begin, and return the box.  Raises OperatorError where there is none to be read."""
        ...

    def read(self, demand: Demand = Demand.ALL) -> Snapshot:
        """Read every card once.  A card that fails carries its fault; only the loss of all raises OperatorError."""
        ...

    def close(self) -> None: ...
