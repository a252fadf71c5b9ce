"""A card's facts in the few words that a row has room for."""

from gpudeck.services.box.types import Box, Gpu, GpuProcess, Reading
from gpudeck.services.text import printable
from gpudeck.widgets.glyphs import Glyphs, gib, joined


def links_in_short(box: Box, gpu: Gpu, glyphs: Glyphs) -> str:
    """A card's NVLinks and where they lead, `NV12 → 2, 3`; without any, its place on the bus, `PCIe 4×16`."""
    peers: dict[str, list[int]] = {}
    for other in box.gpus:
        kind = box.link(gpu.index, other.index)
        if kind.startswith("NV"):
            peers.setdefault(kind, []).append(other.index)
    if peers:
        return "  ".join(f"{kind} {glyphs.arrow} {_ranges(numbers)}" for kind, numbers in sorted(peers.items()))
    if gpu.pcie.gen is None or gpu.pcie.width is None:
        return ""
    return f"PCIe {gpu.pcie.gen}{glyphs.times}{gpu.pcie.width}"


def process_in_short(process: GpuProcess, glyphs: Glyphs) -> str:
    """Who holds memory: `gemma · stage 0 · rank 1` for an engine, else `python3 · pid 4711 · ada`."""
    if process.engine is None:
        return joined((printable(process.name), f"pid {process.pid}", printable(process.user or "")), glyphs.dot)
    stage = "" if process.pp_rank is None else f"stage {process.pp_rank}"
    rank = "" if process.tp_rank is None else f"rank {process.tp_rank}"
    return joined((printable(process.engine), stage, rank), glyphs.dot)


def age(process: GpuProcess, now: float) -> str:
    """How long a process has run, in its largest unit: `40 s`, `12 min`, `3 h`, `9 d`; nothing where it is not told."""
    if process.started_at is None or not now:
        return ""
    seconds = max(now - process.started_at, 0)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return f"{seconds // 10 * 10:.0f} s"


def holders(reading: Reading) -> str:
    """The names of all who hold memory on a card, each once."""
    return ", ".join(dict.fromkeys(printable(process.engine or process.name) for process in reading.processes))


def percent(value: int | None) -> str:
    return "n/a" if value is None else f"{value} %"


def temperature(reading: Reading, glyphs: Glyphs) -> str:
    return "n/a" if reading.temperature_c is None else f"{reading.temperature_c} {glyphs.degree}"


def power(reading: Reading, gpu: Gpu) -> str:
    """Draw and limit, `312 of 425 W`."""
    drawn = "n/a" if reading.power_w is None else f"{reading.power_w:.0f}"
    return f"{drawn} W" if gpu.power_limit_w is None else f"{drawn} of {gpu.power_limit_w:.0f} W"


def memory(reading: Reading, gpu: Gpu) -> str:
    return f"{gib(reading.memory_used_bytes)} of {gib(gpu.memory_bytes)} GiB"


def share(reading: Reading, gpu: Gpu) -> float | None:
    """Used memory as a fraction of the card's."""
    if reading.memory_used_bytes is None or not gpu.memory_bytes:
        return None
    return reading.memory_used_bytes / gpu.memory_bytes


def _ranges(numbers: list[int]) -> str:
    """`1, 4–7`: on a box of sixteen a card has fifteen peers."""
    parts: list[str] = []
    start = previous = numbers[0]
    for number in [*numbers[1:], None]:
        if number == previous + 1:
            previous = number
            continue
        parts.append(str(start) if start == previous else f"{start}-{previous}")
        if number is not None:
            start = previous = number
    return ", ".join(parts)
