"""A box told to people: the text of `gpudeck box` and `gpudeck topo`."""

import time

from gpudeck.services.box.report import nvlink_peers
from gpudeck.services.box.types import GIB, Box, BoxEvent, Gpu, GpuProcess, Reading, Snapshot
from gpudeck.services.text import printable

NOT_KNOWN = "n/a"

# What the link kinds mean, in the order of nvidia-smi's own legend.
LEGEND = (
    ("X", "the card itself"),
    ("SYS", "across the interconnect between NUMA nodes (two sockets)"),
    ("NODE", "across PCIe host bridges within one NUMA node"),
    ("PHB", "through one PCIe host bridge (typically the CPU)"),
    ("PXB", "through several PCIe switches, not through a host bridge"),
    ("PIX", "through one PCIe switch at most"),
    ("NV#", "a bond of # NVLinks"),
)
_OLD_S = 2.0  # from this age on a reading says how old it is
_EVENTS = 10  # as many of the last events are shown


def topo_text(box: Box) -> str:
    """The matrix as `nvidia-smi topo -m` prints it, without network cards: columns parted by tabs, then the legend."""
    indices = [gpu.index for gpu in box.gpus]
    table = [["", *(f"GPU{index}" for index in indices), "CPU Affinity", "NUMA Affinity"]]
    for gpu in box.gpus:
        cells = [" X " if gpu.index == other else box.link(gpu.index, other) for other in indices]
        table.append([f"GPU{gpu.index}", *cells, _affinity(gpu.cpu_affinity), _affinity(gpu.numa)])
    lines = [*_tabbed(table), "", "Legend:", "", *(f"  {kind:<4} = {meaning}" for kind, meaning in LEGEND)]
    if not box.topology_known:
        lines += ["", "The driver does not tell how some of these cards are joined: SYS is assumed there."]
    down = [(gpu.index, link.lane) for gpu in box.gpus for link in gpu.nvlinks if not link.up]
    if down:
        lines += ["", "NVLinks that are down: " + ", ".join(f"GPU {gpu} link {lane}" for gpu, lane in down) + "."]
    return "\n".join(lines) + "\n"


def box_text(snapshot: Snapshot) -> str:
    """The box as `gpudeck box` prints it: load, connections and health of each card, who is on them, what happened."""
    box = snapshot.box
    head = [box.name or "box", _count(len(box.gpus), "GPU")]
    head += [f"driver {box.driver}"] if box.driver else []
    head += [f"CUDA {box.cuda}"] if box.cuda else []
    cards = [(gpu, snapshot.reading(gpu.index) or Reading(gpu.index)) for gpu in box.gpus]
    lines = [" · ".join(printable(word) for word in head), ""]
    lines += _aligned([_LOAD, *(_load(gpu, reading, snapshot) for gpu, reading in cards)])
    lines += ["", *_aligned([_WAYS, *(_ways(box, gpu, reading) for gpu, reading in cards)])]
    if any(reading.ecc or reading.rows or reading.modes for _, reading in cards):
        lines += ["", *_aligned([_STATE, *(_state(reading) for _, reading in cards)])]
    slices = [_slice(reading, place) for _, reading in cards for place in range(len(reading.mig))]
    lines += ["", *_aligned([_SLICES, *slices])] if slices else []
    lines += ["", *_people(cards)]
    lines += ["", *(_event(event) for event in snapshot.events[-_EVENTS:])] if snapshot.events else []
    faults = [*box.faults, *(reading.fault for _, reading in cards if reading.fault)]
    lines += ["", *(printable(fault) for fault in faults)] if faults else []
    lines += ["", *(printable(other.says) for other in box.accelerators)] if box.accelerators else []
    return "\n".join(lines) + "\n"


_LOAD = [
    "GPU",
    "name",
    "arch",
    "util",
    "mem",
    "memory GiB",
    "temp",
    "power W",
    "SM MHz",
    "mem MHz",
    "P",
    "fan",
    "held by",
]
_WAYS = ["GPU", "PCIe now", "of", "out MB/s", "in MB/s", "NVLink", "up", "out MB/s", "in MB/s", "P2P", "NUMA"]
_STATE = [
    "GPU",
    "ECC",
    "corrected",
    "uncorrected",
    "rows",
    "PCIe replays",
    "mem temp",
    "compute mode",
    "persistence",
    "MIG",
]
_SLICES = ["GPU", "MIG", "profile", "memory GiB", "uuid"]


def _load(gpu: Gpu, reading: Reading, snapshot: Snapshot) -> list[str]:
    return [
        str(gpu.index),
        printable(gpu.name),
        str(gpu.compute_capability),
        _told(reading.utilization_percent, "{}%"),
        _told(reading.memory_utilization_percent, "{}%"),
        f"{_gib(reading.memory_used_bytes)} of {_gib(gpu.memory_bytes)}",
        f"{_told(reading.temperature_c)}°C" if gpu.slowdown_c is None else _of(reading.temperature_c, gpu.slowdown_c),
        _of(reading.power_w, reading.power_limit_w or gpu.power_limit_w),
        _of(reading.sm_clock_mhz, gpu.sm_clock_max_mhz),
        _of(reading.memory_clock_mhz, gpu.memory_clock_max_mhz),
        _told(reading.performance_state, "P{}"),
        _told(reading.fan_percent, "{}%"),
        _held_by(reading, snapshot),
    ]


def _held_by(reading: Reading, snapshot: Snapshot) -> str:
    """Why the clock is low; or that the card is ill, which explains the rest."""
    age = snapshot.age_of(reading, snapshot.at)
    if reading.fault:
        return "fault, see below"
    if age >= _OLD_S:
        return f"slow: read {age:.0f} s ago"
    if reading.throttle_reasons:
        return ", ".join(printable(reason) for reason in reading.throttle_reasons)
    return {True: "idle", False: "", None: NOT_KNOWN}[reading.clock_idle]


def _ways(box: Box, gpu: Gpu, reading: Reading) -> list[str]:
    up = sum(link.up for link in gpu.nvlinks)
    return [
        str(gpu.index),
        f"{_told(reading.pcie_gen)}×{_told(reading.pcie_width)}",
        f"{_told(gpu.pcie.gen)}×{_told(gpu.pcie.width)}",
        _megabytes(reading.pcie_tx_bytes_s),
        _megabytes(reading.pcie_rx_bytes_s),
        nvlink_peers(box, gpu) or "none",
        f"{up} of {len(gpu.nvlinks)}" if gpu.nvlinks else "",
        _megabytes(reading.nvlink_tx_bytes_s) if gpu.nvlinks else "",
        _megabytes(reading.nvlink_rx_bytes_s) if gpu.nvlinks else "",
        _reached(box, gpu),
        _affinity(gpu.numa),
    ]


def _reached(box: Box, gpu: Gpu) -> str:
    """Whose memory the card reaches straight, which custom all-reduce needs: "1,2", "all", "none"."""
    others = [other.index for other in box.gpus if other is not gpu]
    told = [(other, access) for other in others if (access := box.access(gpu.index, other)) is not None]
    if not told:
        return NOT_KNOWN if others else ""
    reached = [other for other, access in told if access.read == "OK"]
    return "all" if reached == others else ",".join(map(str, reached)) or "none"


def _state(reading: Reading) -> list[str]:
    ecc, modes = reading.ecc, reading.modes
    return [
        str(reading.gpu),
        _switch(ecc.enabled if ecc else None),
        f"{_told(ecc.volatile_corrected)}, {_told(ecc.aggregate_corrected)} ever" if ecc else NOT_KNOWN,
        f"{_told(ecc.volatile_uncorrected)}, {_told(ecc.aggregate_uncorrected)} ever" if ecc else NOT_KNOWN,
        _rows(reading),
        _told(reading.pcie_replays),
        _told(reading.memory_temperature_c, "{}°C"),
        printable(modes.compute or NOT_KNOWN) if modes else NOT_KNOWN,
        _switch(modes.persistence if modes else None),
        _switch(reading.mig_enabled),
    ]


def _rows(reading: Reading) -> str:
    """How many rows were remapped or pages retired, and what is left to do."""
    rows = reading.rows
    if rows is None:
        return NOT_KNOWN
    counts = (rows.remapped_corrected, rows.remapped_uncorrected, rows.retired_single_bit, rows.retired_double_bit)
    known = [count for count in counts if count is not None]
    words = [str(sum(known)) if known else NOT_KNOWN]
    words += ["failed"] if rows.remapping_failed else []
    words += ["reset wanted"] if rows.remapping_pending or rows.retirement_pending else []
    return ", ".join(words)


def _slice(reading: Reading, place: int) -> list[str]:
    one = reading.mig[place]
    part = "" if one.compute_instance is None else f"/{one.compute_instance}"
    return [
        str(reading.gpu),
        f"{one.gpu_instance}{part}",
        printable(one.name or NOT_KNOWN),
        f"{_gib(one.memory_used_bytes)} of {_gib(one.memory_bytes)}",
        printable(one.uuid or NOT_KNOWN),
    ]


def _people(cards: list[tuple[Gpu, Reading]]) -> list[str]:
    rows = [["GPU", "pid", "user", "memory GiB", "process"]]
    rows += [_process_row(gpu, process) for gpu, reading in cards for process in reading.processes]
    hidden = [str(gpu.index) for gpu, reading in cards if reading.processes_hidden]
    lines = _aligned(rows) if len(rows) > 1 else []
    if hidden:
        lines.append(f"The driver does not tell who is on GPU {', '.join(hidden)}.")
    return lines or ["No process is on the cards."]


def _process_row(gpu: Gpu, process: GpuProcess) -> list[str]:
    owner = [process.engine] if process.engine else []
    name = " · ".join(printable(word) for word in [*owner, process.name or NOT_KNOWN])
    place = str(gpu.index) if process.mig is None else f"{gpu.index} MIG {process.mig}"
    return [place, str(process.pid), printable(process.user or NOT_KNOWN), _gib(process.memory_bytes), name]


def _event(event: BoxEvent) -> str:
    return f"{time.strftime('%H:%M:%S', time.localtime(event.at))}  {printable(event.text)}"


def _affinity(text: str | None) -> str:
    return "N/A" if text is None else text


def _told(value: float | None, pattern: str = "{}") -> str:
    return NOT_KNOWN if value is None else pattern.format(value)


def _of(value: float | None, most: float | None) -> str:
    return _told(value, "{:.0f}") + ("" if most is None else f" of {most:.0f}")


def _switch(value: bool | None) -> str:
    return {True: "on", False: "off", None: NOT_KNOWN}[value]


def _gib(count: int | None) -> str:
    return NOT_KNOWN if count is None else f"{count / GIB:.1f}"


def _megabytes(bytes_s: float | None) -> str:
    return NOT_KNOWN if bytes_s is None else f"{bytes_s / 1e6:.0f}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _aligned(rows: list[list[str]]) -> list[str]:
    """Columns wide enough for their longest cell; the first row are titles."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _tabbed(rows: list[list[str]]) -> list[str]:
    """Columns aligned by tabs, as nvidia-smi's are."""
    stops = [max(len(row[column]) // 8 + 1 for row in rows) for column in range(len(rows[0]))]
    return [
        "".join(cell + "\t" * (stop - len(cell) // 8) for cell, stop in zip(row, stops, strict=True)).rstrip("\t")
        for row in rows
    ]
