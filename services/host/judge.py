"""When the machine makes an engine suffer; pure.  Each threshold has its reason beside it."""

from gpudeck.services.box.types import GIB, MIB
from gpudeck.services.host.types import SHM, Concern, Disk, HostReading, Keeps

# An API server and an EngineCore, both busy loops, and a worker for each card: 2 + N physical cores at the least (vLLM,
# docs/configuration/optimization.md, "CPU Resources for GPU Deployments").
CORES_BESIDE_CARDS = 2

# Above this the EngineCore's loop, which launches each step, waits for a CPU between steps.
CPU_SHARE = 0.9

# Tasks that run, want to, or wait for a disk, for each logical CPU over five minutes (proc_loadavg(5)): above one,
# somebody waits at any moment.
LOAD_EACH = 1.0

# Below a tenth earlyoom begins to end processes (its -m default), and a worker that loads takes 3 to 5 GiB before its
# weights are on the card; on large machines the second counts.  The kernel's own killer shows as exit code -9.
MEMORY_SHARE = 0.1
MEMORY_BYTES = 8 * GIB

# Pages that go to and from swap stall the processes that feed the cards; below this it is housekeeping.
SWAP_RATE = 1 * MIB
# So full, swap has been needed, and the next shortage ends a process (earlyoom's -s: 10 % left).
SWAP_USED_SHARE = 0.9

# NCCL and vLLM's message queue (10 chunks of 16 MiB for each group of workers) talk through /dev/shm.  NCCL's guide
# asks for 1 GiB in containers (--shm-size=1g); Docker gives 64 MiB.  Too small shows as exit code -7, a bus error.
SHM_BYTES = 1 * GIB

# What vLLM raises its own limit to, with a warning where it can not (vllm.utils.set_ulimit).
OPEN_FILES = 65535

# A model of 8 billion parameters in 16 bits is 16 GB, and a download needs its room before it is whole.
MODELS_BYTES = 20 * GIB
# Compiled graphs and kernels of a few models.  A full disk here ends the start of an engine.
CACHE_BYTES = 2 * GIB


def concerns(host: HostReading, cards: int = 0) -> tuple[Concern, ...]:
    """What an engine on `cards` cards suffers from now, the gravest first."""
    found = (
        _memory(host),
        _swap(host),
        _shm(host),
        *(_disk(disk) for disk in host.disks),
        _open_files(host),
        _cores(host, cards),
        _cpu(host),
        _load(host),
    )
    return tuple(concern for concern in found if concern is not None)


def _memory(host: HostReading) -> Concern | None:
    least = min(MEMORY_SHARE * host.memory_total_bytes, MEMORY_BYTES)
    if host.memory_available_bytes >= least:
        return None
    return Concern(
        "memory",
        f"Only {size(host.memory_available_bytes)} of {size(host.memory_total_bytes)} memory are free, and loading "
        "a model takes several: end what else runs here before the kernel ends a worker.",
    )


def _swap(host: HostReading) -> Concern | None:
    if host.swap_rate is not None and host.swap_rate >= SWAP_RATE:
        return Concern(
            "swap",
            f"The machine swaps {size(host.swap_rate)} a second, which stalls engines: end what else needs memory.",
        )
    if host.swap_total_bytes and host.swap_used_bytes >= SWAP_USED_SHARE * host.swap_total_bytes:
        return Concern(
            "swap",
            f"{size(host.swap_used_bytes)} of {size(host.swap_total_bytes)} swap are used up, and the next shortage of "
            "memory ends a process: end what else runs here, or restart what grew.",
        )
    return None


def _shm(host: HostReading) -> Concern | None:
    if host.shm is None or host.shm.free_bytes >= SHM_BYTES:
        return None
    if host.shm.total_bytes < SHM_BYTES:
        way_out = "give the container --shm-size=1g or --ipc=host, or mount it anew with size=50%"
    else:
        way_out = "delete what ended engines left in it"
    return Concern(
        "shared memory",
        f"Of {SHM} {size(host.shm.free_bytes)} are free, and an engine on several cards needs {size(SHM_BYTES)}: "
        f"{way_out}.",
    )


def _disk(disk: Disk) -> Concern | None:
    if disk.read_only:
        return None
    if disk.free_bytes is None:
        return Concern(
            "disk", f"The disk under {disk.path} does not answer: see to its mount, engines that read there hang."
        )
    least = CACHE_BYTES if disk.keeps is Keeps.VLLM_CACHE else MODELS_BYTES
    if disk.free_bytes >= least:
        return None
    return Concern(
        "disk",
        f"{size(disk.free_bytes)} are free under {disk.path} ({disk.keeps.value}): make room for {size(least)}.",
    )


def _open_files(host: HostReading) -> Concern | None:
    if host.open_files is None or host.open_files >= OPEN_FILES:
        return None
    return Concern(
        "open files",
        f"At most {host.open_files} files may be open here, and vLLM wants {OPEN_FILES}: raise it in "
        "/etc/security/limits.conf (gpudeck's units have a limit of their own).",
    )


def _cores(host: HostReading, cards: int) -> Concern | None:
    wanted = CORES_BESIDE_CARDS + cards
    if not cards or host.cores is None or host.cores >= wanted:
        return None
    return Concern(
        "CPU",
        f"{count(host.cores, 'core')} for {count(cards, 'card')} are few, an engine on all keeps {wanted} busy: "
        "plan fewer cards, or give this machine more cores.",
    )


def _cpu(host: HostReading) -> Concern | None:
    if host.cpu_share is None or host.cpu_share < CPU_SHARE:
        return None
    return Concern(
        "CPU",
        f"The CPUs are {host.cpu_share:.0%} busy, so the cards wait for them: see with top what else runs here.",
    )


def _load(host: HostReading) -> Concern | None:
    if host.load is None or host.load[1] <= LOAD_EACH * host.threads:
        return None
    return Concern(
        "load",
        f"{host.load[1]:.1f} tasks wanted one of {count(host.threads, 'CPU')} over five minutes, so engines wait their "
        "turn: see with top what else runs here.",
    )


def size(count_of_bytes: float) -> str:
    """`512 MiB`, `1.5 GiB`, `96 GiB`, `2.0 TiB`."""
    if count_of_bytes < GIB:
        return f"{count_of_bytes / MIB:.0f} MiB"
    gib = count_of_bytes / GIB
    if gib >= 1000:
        return f"{gib / 1024:.1f} TiB"
    return f"{gib:.1f} GiB" if gib < 10 and gib != int(gib) else f"{gib:.0f} GiB"


def count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
