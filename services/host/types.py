"""What is read of the machine itself.  All of it is frozen; bytes, seconds, and shares from 0 to 1."""

from dataclasses import dataclass
from enum import Enum

from gpudeck.services.box.types import Accelerator

SHM = "/dev/shm"  # noqa: S108 (looked at, never written to)


class Keeps(str, Enum):
    """What an engine keeps on a disk."""

    MODELS = "models"
    DOWNLOADS = "downloaded models"
    VLLM_CACHE = "vLLM's cache"


@dataclass(frozen=True, slots=True)
class Disk:
    """A file system on which models or vLLM's cache lie; None where it did not answer (a network mount that hangs)."""

    path: str  # the first folder that lies there
    keeps: Keeps
    total_bytes: int | None = None
    free_bytes: int | None = None  # for a user who is not root
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Shm:
    """The file system in memory through which processes share it, /dev/shm."""

    total_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class HostReading:
    """The machine at one moment.  What it does not tell is None."""

    at: float  # seconds since the epoch
    cores: int | None = None  # physical ones that this process may use
    threads: int = 1  # logical CPUs that this process may use
    cpu_share: float | None = None  # busy share of all CPUs since the reading before
    load: tuple[float, float, float] | None = None  # over 1, 5 and 15 minutes
    memory_total_bytes: int = 0
    memory_available_bytes: int = 0
    swap_total_bytes: int = 0
    swap_used_bytes: int = 0
    swap_rate: float | None = None  # bytes a second in and out since the reading before
    shm: Shm | None = None
    open_files: int | None = None  # the hard limit of this process, which vLLM raises its own to; None: no limit
    disks: tuple[Disk, ...] = ()
    accelerators: tuple[Accelerator, ...] = ()


@dataclass(frozen=True, slots=True)
class Concern:
    """A threshold that is passed: which, and one sentence with the way out."""

    part: str  # CPU, load, memory, swap, shared memory, open files, disk
    says: str
