"""All of one card: every figure that is told, n/a for what is not, and what is amiss in words."""

from dataclasses import replace

import pytest
from textual.app import App, ComposeResult

from gpudeck.services.box.simulated import SimulatedSource, simulated_boxes
from gpudeck.services.box.types import (
    GIB,
    BoxEvent,
    Demand,
    Ecc,
    Gpu,
    GpuProcess,
    LaneReading,
    MigInstance,
    Modes,
    NvLink,
    Pcie,
    PeerAccess,
    Reading,
    Rows,
    Severity,
    Snapshot,
)
from gpudeck.widgets.card_detail import CardDetail, detail
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.lines import width_of
from gpudeck.widgets.messages import DemandChanged
from tests.widgets.board_boxes import MIXED, snapshot

AT = 10_000.0
CARD = replace(
    MIXED.gpus[1],
    uuid="GPU-1234",
    pcie=Pcie("00000000:3B:00.0", 4, 16),
    numa="1",
    cpu_affinity="32-63",
    memory_bandwidth_gbs=1555.0,
    power_default_w=400.0,
    power_min_w=100.0,
    power_max_w=450.0,
    sm_clock_max_mhz=1410,
    memory_clock_max_mhz=1215,
    slowdown_c=90,
    shutdown_c=95,
    memory_limit_c=93,
    nvlinks=(NvLink(0, True, 3, 25.0, "gpu", 2), NvLink(1, False, None, None, "gpu", 2), NvLink(2, True, 3, 25.0)),
)
READING = Reading(
    1,
    utilization_percent=87,
    memory_utilization_percent=55,
    memory_used_bytes=30 * GIB,
    memory_free_bytes=9 * GIB,
    memory_reserved_bytes=GIB,
    temperature_c=91,
    power_w=312.4,
    sm_clock_mhz=1200,
    fan_percent=40,
    pcie_gen=4,
    pcie_width=8,
    throttle_reasons=("thermal (software)", "0x800"),
    processes=(
        GpuProcess(4711, "python3", 29 * GIB, "ada", "chat", 1, 0, None, AT - 7200, command="vllm serve big"),
        GpuProcess(4712, "Xorg", None),
    ),
    mig_enabled=True,
    mig=(MigInstance(2, 0, "MIG 3g.20gb", "MIG-77", 20 * GIB, 5 * GIB, 42),),
    encoder_percent=3,
    decoder_percent=4,
    memory_temperature_c=80,
    power_limit_w=390.0,
    memory_clock_mhz=1215,
    performance_state=2,
    pcie_tx_bytes_s=1.2e9,
    pcie_rx_bytes_s=312e6,
    nvlink_tx_bytes_s=41e9,
    nvlink_rx_bytes_s=40e9,
    lanes=(LaneReading(0, 21e9, 20e9, 7, 0, 0), LaneReading(2, 20e9, 20e9, 0, 0, 0)),
    ecc=Ecc(True, False, 5, 1, 60, 2),
    rows=Rows(3, 1, True, False),
    modes=Modes("exclusive process", True, False, "in progress"),
    pcie_replays=17,
    energy_j=7.2e6,
)


def told(gpu: Gpu, reading: Reading, width: int = 116, **of_snapshot: object) -> str:
    box = replace(MIXED, gpus=(MIXED.gpus[0], gpu, MIXED.gpus[2]), peer_access=(PeerAccess(1, 2, "OK"),))
    shown = replace(Snapshot(box, AT, (Reading(0), reading, Reading(2))), **of_snapshot)  # type: ignore[arg-type]
    return "\n".join("".join(words for words, _ in line) for line in detail(shown, 1, width, Glyphs.unicode()))


@pytest.mark.parametrize(
    "words",
    [
        *("GPU 1 NVIDIA A100-SXM4-40GB · 8.0 · GPU-1234", " 87 %", " 55 %", "  3 %", "  4 %", "P2"),
        *("30.0 GiB", "9.0 GiB", "1.0 GiB", "1555 GB/s"),
        *("91 °C, slowed at 90", "80 °C, slowed at 93", "95 °C", "312 of 390 W", "100 to 450 W", "400 W", "40 %"),
        *("2.00 kWh", "1200 of 1410 MHz", "1215 of 1215 MHz", "▲ thermal: the driver", "▲ 0x800"),
        *("▲ 4×8 of 4×16", "↑1.2G ↓312M", "17", "00000000:3B:00.0"),
        *("✗ 2 of 3 up", "25 GB/s a lane", "↑41G  ↓40G", "0 → 2", "↑21G  ↓20G", "7 replays", "✗ down", "2 → n/a"),
        *("on, off after a reset", "5 since load, 60 ever", "1 since load, 2 ever", "3 and 1 uncorrected"),
        *("more at the next reset", "exclusive process", "in progress", "32-63", "P2P           2"),
        *("4711  ada", "chat · stage 0 · rank 1", "29.0 GiB", "2 h", "vllm serve big", "4712  n/a", "Xorg"),
        *("2/0", "MIG 3g.20gb", "5.0 of 20.0 GiB", "42 multiprocessors", "MIG-77"),
    ],
)
def test_everything_that_is_read_is_told(words: str) -> None:
    assert words in told(CARD, READING)


def test_what_a_card_does_not_report_is_no_zero() -> None:
    bare = told(Gpu(1, "NVIDIA A100", 40 * GIB, CARD.compute_capability), Reading(1))
    for label in ("SM", "memory bus", "encoder", "used", "free", "core", "power", "fan", "energy", "replays", "ECC"):
        rows = [row for row in bare.splitlines() if f"{label:<14}n/a" in row]
        assert rows, label
    assert not {word for word in bare.split() if word in ("0", "0.0", "P0")}
    assert "held by       n/a" in bare


def test_a_hung_card_says_since_when_and_a_slow_one_too() -> None:
    hung = replace(READING, at=AT - 34, fault="GPU 1 does not answer.")
    assert "✗ 34 s old: GPU 1 does not answer." in told(CARD, hung)
    assert "it was read 4 s ago" in told(CARD, replace(READING, at=AT - 4))
    assert "ago" not in told(CARD, replace(READING, at=AT - 1))


def test_its_events_are_told_newest_first_and_no_other_cards() -> None:
    events = (
        BoxEvent(AT - 400, Severity.ERROR, "GPU 1: Xid 31.", 1, 31),
        BoxEvent(AT - 300, Severity.INFO, "GPU 1: its MIG devices were set up anew.", 1),
        BoxEvent(AT - 200, Severity.ERROR, "GPU 2: Xid 79.", 2, 79),
    )
    shown = told(CARD, READING, events=events)
    assert "Xid 79" not in shown
    assert shown.index("· 5 min ago: GPU 1: its MIG") < shown.index("✗ 6 min ago: GPU 1: Xid 31.")


def test_hidden_processes_are_no_empty_list() -> None:
    assert "does not tell who is on the card" in told(CARD, replace(READING, processes=(), processes_hidden=True))
    assert "none" in told(CARD, replace(READING, processes=())).split("Processes")[1]


@pytest.mark.parametrize("width", [30, 43, 75, 116, 195])
def test_nothing_is_wider_than_the_view(width: int) -> None:
    for name in simulated_boxes():
        source = SimulatedSource(name, clock=lambda: 0.0)
        source.open()
        shown = source.read()
        for gpu in shown.box.gpus:
            lines = detail(shown, gpu.index, width, Glyphs.unicode())
            assert all(width_of(line) <= width for line in lines if width > 35)
            assert len({words for line in lines for words, style in line if style == "primary"}) >= 9
    ascii_rows = detail(shown, 0, width, Glyphs.ascii())
    assert all(words.isascii() for line in ascii_rows for words, _ in line)


async def test_all_is_asked_for_only_while_it_is_seen() -> None:
    class Alone(App[None]):
        def __init__(self) -> None:
            super().__init__()
            self.view = CardDetail()
            self.told: list[Demand] = []

        def compose(self) -> ComposeResult:
            yield self.view

        def on_demand_changed(self, message: DemandChanged) -> None:
            self.told.append(message.demand)

    app = Alone()
    async with app.run_test(size=(80, 30)) as pilot:
        app.view.show(snapshot(MIXED), 1)
        await pilot.pause()
        assert app.told == [Demand.ALL]
        assert "GPU 1 NVIDIA A100" in app.view.plain
        app.view.display = False
        await pilot.pause()
        assert app.told == [Demand.ALL, Demand.NOTHING]
        app.view.show(snapshot(MIXED, at=2.0), 2)
        assert "GPU 1 " in app.view.plain  # what nobody sees is not painted
