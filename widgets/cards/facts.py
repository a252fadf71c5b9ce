"""A card's facts in the few words that a row has room for."""

from gpudeck.services.box.types import Box, BoxEvent, Gpu, GpuProcess, Reading, Severity, Snapshot
from gpudeck.services.text import printable
from gpudeck.widgets.glyphs import Glyphs, gib, joined

OVERDUE_S = 3.0  # a card's reading that is older says so: two beats were missed
_FRESH_S, _FRESH_INFO_S = 600.0, 60.0  # how long an event is in view: one that asks for something, and one that tells


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
    return f"{seconds // 10 * 10:.0f} s" if seconds < 60 else span(seconds)


def span(seconds: float) -> str:
    """A time in its largest unit."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return f"{seconds:.0f} s"


def overdue(reading: Reading, at: float) -> str:
    """How old a reading is where two beats were missed, `34 s`; "" where it is not."""
    late = 0.0 if reading.at is None else at - reading.at
    return span(late) if late >= OVERDUE_S else ""


def ailment(reading: Reading, at: float) -> str:
    """The card's fault, after the age of what is shown of it; "" for a card that is well."""
    late = overdue(reading, at)
    if reading.fault is None:
        return ""
    return f"{late} old: {printable(reading.fault)}" if late else printable(reading.fault)


def switch(state: bool | None) -> str:
    return {True: "on", False: "off", None: "n/a"}[state]


def reached(box: Box, gpu: Gpu) -> str:
    """Whose memory the card reaches straight: `all`, `1, 4-7`, `none`."""
    others = [other.index for other in box.gpus if other.index != gpu.index]
    pairs = [(other, box.access(gpu.index, other)) for other in others]
    if not others or all(access is None for _, access in pairs):
        return "n/a"
    near = [other for other, access in pairs if access is not None and access.read == "OK"]
    return "all" if near == others else _ranges(near) if near else "none"


def happened(event: BoxEvent, at: float) -> str:
    """An event and how long ago it was: to ten seconds, and to what is larger."""
    ago = max(at - event.at, 0.0)
    return f"{span(ago if ago >= 60 else ago // 10 * 10)} ago: {printable(event.text)}"


def recent(snapshot: Snapshot, gpu: int | None = None) -> BoxEvent | None:
    """The last event (of one card) that is fresh enough to be shown, and that no fault in view tells already."""
    faults = {*snapshot.box.faults, *(reading.fault for reading in snapshot.readings)}
    for event in reversed(snapshot.events):
        fresh = _FRESH_S if event.severity is not Severity.INFO else _FRESH_INFO_S
        if snapshot.at - event.at <= fresh and event.text not in faults and gpu in (None, event.gpu):
            return event
    return None


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


def rate(bytes_s: float | None) -> str:
    """Traffic in at most four characters: `312M`, `1.2G`, `41G` (powers of 1000) a second."""
    if bytes_s is None:
        return "n/a"
    if bytes_s < 999.5e6:
        return f"{bytes_s / 1e6:.0f}M"
    return f"{bytes_s / 1e9:.1f}G" if bytes_s < 9.95e9 else f"{bytes_s / 1e9:.0f}G"


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
