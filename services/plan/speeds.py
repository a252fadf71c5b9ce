"""How fast cards and links are: what an estimate of speed rests on."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from gpudeck.services.box.types import Box, ComputeCapability, Gpu

# Where a card's bandwidth is not told: (GB/s, dense 16-bit TFLOPS) of common cards of that capability, by NVIDIA's data
# sheets.  The capability decides, never the name.
_BY_CAPABILITY = (
    (ComputeCapability(12, 0), (1344.0, 230.0)),
    (ComputeCapability(10, 0), (8000.0, 2250.0)),
    (ComputeCapability(9, 0), (3350.0, 990.0)),
    (ComputeCapability(8, 9), (864.0, 180.0)),
    (ComputeCapability(8, 6), (768.0, 75.0)),
    (ComputeCapability(8, 0), (1555.0, 312.0)),
    (ComputeCapability(7, 5), (616.0, 65.0)),
    (ComputeCapability(7, 0), (900.0, 112.0)),
    (ComputeCapability(0, 0), (350.0, 12.0)),
)
_REACHED = 0.8  # of the peak bandwidth, which decoding kernels reach at best
_COMPUTE_REACHED = 0.5

# One hop of a small message in seconds, and bytes a second in each direction, on a PCIe 4.0 × 16 connection.  Hops over
# PCIe are those of NCCL with its staging buffers; the ladder follows nvidia-smi's levels, the amounts are rough.
_PCIE = {
    "PIX": (7e-6, 20e9), "PXB": (8e-6, 18e9), "PHB": (9e-6, 15e9), "NODE": (10e-6, 12e9), "SYS": (12e-6, 9e9),
}  # fmt: skip
_LANE = 21e9  # one NVLink lane in each direction, by the usable part of 25 GB/s
_NVLINK_HOP = 3e-6
_ONE_SHOT = (6e-6, 1e-6)  # vLLM's own all-reduce over NVLink: a base, and a share for each rank
_ONE_SHOT_SIZES = (2, 4, 6, 8, 16)


@dataclass(frozen=True, slots=True)
class CardSpeed:
    """What a card reaches: bytes read a second, operations a second; `assumed` where the box does not tell."""

    bandwidth: float
    compute: float
    assumed: bool


def card_speed(gpu: Gpu) -> CardSpeed:
    bandwidth, compute = _assumed(gpu.compute_capability)
    told = gpu.memory_bandwidth_gbs
    return CardSpeed((told or bandwidth) * 1e9 * _REACHED, compute * 1e12 * _COMPUTE_REACHED, assumed=not told)


@lru_cache(maxsize=64)
def _assumed(capability: ComputeCapability) -> tuple[float, float]:
    return next(speed for least, speed in _BY_CAPABILITY if capability >= least)


def slot(gpu: Gpu) -> float:
    """The card's PCIe connection as a part of a PCIe 4.0 × 16 one, at most 1: a wider one is not counted."""
    width, gen = gpu.pcie.width or 16, gpu.pcie.gen or 4
    return min(1.0, width / 16 * 2.0 ** (gen - 4))


def link_speed(kind: str, narrowest: float = 1.0) -> tuple[float, float]:
    """Seconds of a hop, and bytes a second; `narrowest` is the least `slot` of the cards, which PCIe goes through.

    A kind that is not known counts as SYS.
    """
    if is_nvlink(kind):
        return _NVLINK_HOP, max(int(kind[2:]), 1) * _LANE
    hop, bandwidth = _PCIE.get(kind, _PCIE["SYS"])
    return hop, bandwidth * narrowest


def is_nvlink(kind: str) -> bool:
    return kind.startswith("NV") and kind[2:].isdecimal()


def all_reduce_seconds(ranks: int, kind: str, size: float, narrowest: float = 1.0) -> float:
    """One all-reduce of `size` bytes over `ranks` cards that `kind` joins at its weakest.

    Over NVLink vLLM's own one-shot kernel where it serves that many ranks, else NCCL's ring, whose hops add up.
    """
    if ranks < 2:
        return 0.0
    hop, bandwidth = link_speed(kind, narrowest)
    start = 2 * (ranks - 1) * hop
    if is_nvlink(kind) and ranks in _ONE_SHOT_SIZES:
        start = min(start, _ONE_SHOT[0] + _ONE_SHOT[1] * ranks)
    return start + 2 * (ranks - 1) / ranks * size / bandwidth


def assumed_cards(box: Box, cards: Collection[int]) -> tuple[Gpu, ...]:
    """Those of `cards` whose bandwidth is taken from the table."""
    return tuple(gpu for gpu in box.gpus if gpu.index in cards and not gpu.memory_bandwidth_gbs)
