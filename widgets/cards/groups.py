"""What is known of one card, in groups of labelled facts; pure."""

from dataclasses import dataclass

from gpudeck.services.box.types import Gpu, LaneReading, NvLink, Reading
from gpudeck.services.text import printable
from gpudeck.widgets.cards import facts
from gpudeck.widgets.cards.rows import CardView, meter
from gpudeck.widgets.glyphs import Glyphs, gib
from gpudeck.widgets.lines import Line

METER = 8  # cells

# Why a clock is held back, after the words of the readings: what that means to who looks at the card.
_BRAKES = {
    "application clocks": "application clocks: set so by nvidia-smi -ac",
    "power cap": "power cap: it draws what its limit allows",
    "hardware slowdown": "hardware slowdown: too hot, or short of power",
    "sync boost": "sync boost: tied to another card's clock",
    "thermal (software)": "thermal: the driver keeps it cool",
    "thermal (hardware)": "thermal: the hardware keeps it whole",
    "power brake": "power brake: the machine's supply asks for less",
    "display clocks": "display clocks: set for a screen",
    "board limit": "board limit: the board can carry no more",
    "reliability voltage": "reliability voltage: no higher voltage is safe",
}


@dataclass(frozen=True, slots=True)
class Group:
    """Facts that belong together, each a label and what stands beside it."""

    title: str
    facts: tuple[tuple[str, Line], ...]


def groups(card: CardView) -> tuple[Group, ...]:
    """All groups that are told as label and value, those that move first."""
    gpu, reading, glyphs = card.gpu, card.reading, card.glyphs
    told = (
        _load(reading, glyphs),
        _memory(gpu, reading, glyphs),
        _heat(gpu, reading, glyphs),
        _clocks(gpu, reading, glyphs),
        _pcie(gpu, reading, glyphs),
        _nvlink(gpu, reading, glyphs),
        _errors(reading),
        _setup(card),
    )
    return tuple(group for group in told if group.facts)


def said(text: str, style: str = "text") -> Line:
    return ((text, style),)


def told(value: object, unit: str = "") -> Line:
    """A figure with its unit; n/a where the card does not report it."""
    return said("n/a", "muted") if value is None else said(f"{value}{unit}")


def _share(value: int | None, glyphs: Glyphs) -> Line:
    if value is None:
        return told(None)
    return (*meter(value / 100, METER, "primary", glyphs), (f" {value:>3} %", "text"))


def _load(reading: Reading, glyphs: Glyphs) -> Group:
    state = reading.performance_state
    return Group(
        "Load",
        (
            ("SM", _share(reading.utilization_percent, glyphs)),
            ("memory bus", _share(reading.memory_utilization_percent, glyphs)),
            ("encoder", _share(reading.encoder_percent, glyphs)),
            ("decoder", _share(reading.decoder_percent, glyphs)),
            ("state", told(None if state is None else f"P{state}", " (P0 is fastest)")),
        ),
    )


def _memory(gpu: Gpu, reading: Reading, glyphs: Glyphs) -> Group:
    reserved = reading.memory_reserved_bytes
    reserved = gpu.memory_reserved_bytes if reserved is None else reserved
    used = facts.share(reading, gpu)
    bar = () if used is None else (*meter(used, METER, "soft", glyphs), (" ", ""))
    rows = [
        ("used", (*bar, *_bytes(reading.memory_used_bytes))),
        ("free", _bytes(reading.memory_free_bytes)),
        ("reserved", _bytes(reserved)),
        ("total", _bytes(gpu.memory_bytes)),
        ("bandwidth", told(gpu.memory_bandwidth_gbs and round(gpu.memory_bandwidth_gbs), " GB/s at most")),
    ]
    if gpu.unified_memory:
        rows.append(("", said("shared with the host", "muted")))
    return Group("Memory", tuple(rows))


def _bytes(size: int | None) -> Line:
    return told(None if size is None else gib(size), " GiB")


def _heat(gpu: Gpu, reading: Reading, glyphs: Glyphs) -> Group:
    limit = gpu.power_limit_w if reading.power_limit_w is None else reading.power_limit_w
    drawn = "n/a" if reading.power_w is None else f"{reading.power_w:.0f}"
    range_w = None
    if gpu.power_min_w is not None and gpu.power_max_w is not None:
        range_w = f"{gpu.power_min_w:.0f} to {gpu.power_max_w:.0f}"
    default = None if gpu.power_default_w is None else f"{gpu.power_default_w:.0f}"
    return Group(
        "Heat and power",
        (
            ("core", _warmth(reading.temperature_c, gpu.slowdown_c, glyphs)),
            ("memory", _warmth(reading.memory_temperature_c, gpu.memory_limit_c, glyphs)),
            ("switches off", told(gpu.shutdown_c, f" {glyphs.degree}")),
            ("power", told(drawn, " W") if limit is None else told(drawn, f" of {limit:.0f} W")),
            ("limit from", told(range_w, " W")),
            ("by default", told(default, " W")),
            ("fan", told(reading.fan_percent, " %")),
            ("energy", told(None if reading.energy_j is None else f"{reading.energy_j / 3.6e6:.2f}", " kWh")),
        ),
    )


def _warmth(celsius: int | None, slows: int | None, glyphs: Glyphs) -> Line:
    if celsius is None:
        return told(None)
    until = "" if slows is None else f", slowed at {slows}"
    hot = slows is not None and celsius >= slows
    return said(f"{celsius} {glyphs.degree}{until}", "warning" if hot else "text")


def _clocks(gpu: Gpu, reading: Reading, glyphs: Glyphs) -> Group:
    brakes = [
        ("held by" if place == 0 else "", said(f"{glyphs.caution} {_BRAKES.get(reason, printable(reason))}", "warning"))
        for place, reason in enumerate(reading.throttle_reasons)
    ]
    if not brakes:
        quiet = {True: "nothing runs", False: "nothing", None: "n/a"}[reading.clock_idle]
        brakes = [("held by", said(quiet, "muted" if reading.clock_idle is None else "text"))]
    return Group(
        "Clocks",
        (
            ("SM", _of(reading.sm_clock_mhz, gpu.sm_clock_max_mhz, "MHz")),
            ("memory", _of(reading.memory_clock_mhz, gpu.memory_clock_max_mhz, "MHz")),
            *brakes,
        ),
    )


def _of(value: int | None, most: int | None, unit: str) -> Line:
    if most is None:
        return told(value, f" {unit}")
    return told("n/a" if value is None else value, f" of {most} {unit}")


def _pcie(gpu: Gpu, reading: Reading, glyphs: Glyphs) -> Group:
    now, most = (reading.pcie_gen, reading.pcie_width), (gpu.pcie.gen, gpu.pcie.width)
    written = "n/a" if None in now else f"{now[0]}{glyphs.times}{now[1]}"
    narrow = now[1] is not None and most[1] is not None and now[1] < most[1]
    if None not in most:
        written += f" of {most[0]}{glyphs.times}{most[1]}"
    return Group(
        "PCIe",
        (
            ("gen and width", said(f"{glyphs.caution} {written}", "warning") if narrow else said(written)),
            ("out, in", traffic(reading.pcie_tx_bytes_s, reading.pcie_rx_bytes_s, glyphs)),
            ("replays", told(reading.pcie_replays)),
            ("bus", told(gpu.pcie.bus and printable(gpu.pcie.bus))),
        ),
    )


def traffic(sent: float | None, received: float | None, glyphs: Glyphs) -> Line:
    """`↑1.2G ↓312M`, bytes a second out of the card and into it."""
    if sent is None and received is None:
        return told(None)
    return said(f"{glyphs.sent}{facts.rate(sent):<4} {glyphs.received}{facts.rate(received):<4}", "primary")


def _nvlink(gpu: Gpu, reading: Reading, glyphs: Glyphs) -> Group:
    """The sum of the links, then each: where it leads, and its traffic or that it is down."""
    links = gpu.nvlinks
    if not links:
        return Group("NVLink", (("lanes", said("none", "muted")),))
    up = [link for link in links if link.up]
    versions = {link.version for link in up if link.version is not None}
    speeds = {link.speed_gbs for link in up if link.speed_gbs is not None}
    count = f"{len(up)} of {len(links)} up"
    lanes = {lane.lane: lane for lane in reading.lanes}
    return Group(
        "NVLink",
        (
            ("lanes", said(count) if len(up) == len(links) else said(f"{glyphs.blocked} {count}", "error")),
            ("version", told(", ".join(map(str, sorted(versions))) or None)),
            ("each way", told(", ".join(f"{speed:g}" for speed in sorted(speeds)) or None, " GB/s a lane")),
            ("out, in", traffic(reading.nvlink_tx_bytes_s, reading.nvlink_rx_bytes_s, glyphs)),
            *(row for link in links for row in _lane(link, lanes.get(link.lane), glyphs)),
        ),
    )


def _lane(link: NvLink, lane: LaneReading | None, glyphs: Glyphs) -> list[tuple[str, Line]]:
    """Where one NVLink leads; its traffic, or that it is down; its errors where it has some."""
    where = {"gpu": "a GPU", None: "n/a"}.get(link.remote, str(link.remote)) if link.peer is None else str(link.peer)
    label = f"{link.lane:>2} {glyphs.arrow} {where}"
    value = traffic(lane.tx_bytes_s, lane.rx_bytes_s, glyphs) if lane else told(None)
    counts = [(lane.replays, "replays"), (lane.recoveries, "recoveries"), (lane.crc_errors, "CRC")] if lane else []
    errors = ", ".join(f"{count} {word}" for count, word in counts if count)
    value = value if link.up else said(f"{glyphs.blocked} down", "error")
    return [(label, value), *([("", said(f"{glyphs.caution} {errors}", "warning"))] if errors else [])]


def _errors(reading: Reading) -> Group:
    """ECC counts as volatile and aggregate ones, and what memory was put out of use."""
    ecc, rows = reading.ecc, reading.rows
    if ecc is None and rows is None:
        return Group("Memory errors", (("ECC", told(None)),))
    lines: list[tuple[str, Line]] = []
    if ecc is not None:
        mode = facts.switch(ecc.enabled)
        if ecc.enabled_after_reset not in (None, ecc.enabled):
            mode += f", {facts.switch(ecc.enabled_after_reset)} after a reset"
        lines += [
            ("ECC", told(mode)),
            ("corrected", _since(ecc.volatile_corrected, ecc.aggregate_corrected, "text")),
            ("uncorrected", _since(ecc.volatile_uncorrected, ecc.aggregate_uncorrected, "error")),
        ]
    if rows is not None:
        remapped = (rows.remapped_corrected, rows.remapped_uncorrected)
        retired = (rows.retired_single_bit, rows.retired_double_bit)
        if remapped != (None, None):
            lines.append(("rows remapped", told(f"{_count(remapped[0])} and {_count(remapped[1])} uncorrected")))
        if retired != (None, None):
            lines.append(("pages retired", told(f"{_count(retired[0])} and {_count(retired[1])} double-bit")))
        if rows.remapping_failed:
            lines.append(("", said("no spare row left: replace the card", "error")))
        if rows.remapping_pending or rows.retirement_pending:
            lines.append(("", said("more at the next reset", "warning")))
    return Group("Memory errors", tuple(lines))


def _count(value: int | None) -> str:
    return "n/a" if value is None else str(value)


def _since(volatile: int | None, aggregate: int | None, bad: str) -> Line:
    return said(f"{_count(volatile)} since load, {_count(aggregate)} ever", bad if volatile else "text")


def _setup(card: CardView) -> Group:
    box, gpu, reading = card.box, card.gpu, card.reading
    modes = reading.modes
    rows = [
        ("compute mode", told(modes.compute and printable(modes.compute) if modes else None)),
        ("persistence", told(facts.switch(modes.persistence if modes else None))),
        ("MIG", told(facts.switch(reading.mig_enabled))),
        ("display", told({True: "in use", False: "none", None: "n/a"}[modes.display_active if modes else None])),
        ("P2P", said(facts.reached(box, gpu))),
        ("NUMA node", told(gpu.numa and printable(gpu.numa))),
        ("CPUs", told(gpu.cpu_affinity and printable(gpu.cpu_affinity))),
    ]
    if modes is not None and modes.fabric is not None:
        rows.append(("fabric", said(printable(modes.fabric), "text" if modes.fabric == "completed" else "warning")))
    if not box.topology_known:
        rows.append(("links", said("not told by the driver", "warning")))
    return Group("Set-up", tuple(rows))
