"""The links as a map: which cards NVLink joins and how, what flows, what is down, at every width and in ASCII."""

from dataclasses import replace
from itertools import combinations

import pytest
from textual.app import App, ComposeResult

from gpudeck.services.box.simulated import SimulatedSource, simulated_boxes
from gpudeck.services.box.types import Box, Demand, Link, NvLink, Reading, Snapshot
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.lines import width_of
from gpudeck.widgets.links.islands import Island, Joint, Node, islands, nodes
from gpudeck.widgets.links.link_map import link_map
from gpudeck.widgets.links.link_view import LinkView
from gpudeck.widgets.messages import DemandChanged
from tests.widgets.board_boxes import MIXED, snapshot, uniform

# The halves of a DGX-1: a cube mesh, in which no card reaches every other straight.
CUBE = Box(
    uniform(8).gpus,
    tuple(
        Link(a, b, kind)
        for kind, pairs in {
            "NV1": ((0, 1), (0, 2), (1, 3), (2, 6), (3, 7), (4, 5), (4, 6), (5, 7)),
            "NV2": ((0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (4, 7), (5, 6), (6, 7)),
        }.items()
        for a, b in pairs
    ),
)


def text(shown: Snapshot, width: int = 80, glyphs: Glyphs | None = None) -> str:
    lines = link_map(shown, width, glyphs or Glyphs.unicode())
    return "\n".join("".join(words for words, _ in line) for line in lines)


def demo(name: str) -> Snapshot:
    source = SimulatedSource(name, clock=lambda: 0.0)
    source.open()
    return source.read(Demand.ALL)


def meshed(kind: str, count: int) -> Box:
    return Box(uniform(count).gpus, tuple(Link(a, b, kind) for a, b in combinations(range(count), 2)))


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        (MIXED, (Island((1, 2), Joint.PAIR, ("NV12",)),)),
        (meshed("NV6", 4), (Island((0, 1, 2, 3), Joint.MESH, ("NV6",)),)),
        (meshed("NV18", 8), (Island(tuple(range(8)), Joint.SWITCH, ("NV18",)),)),
        (CUBE, (Island(tuple(range(8)), Joint.PARTIAL, ("NV2", "NV1")),)),
        (meshed("SYS", 4), ()),
        (demo("bridges").box, (Island((0, 2), Joint.PAIR, ("NV4",)), Island((1, 3), Joint.PAIR, ("NV4",)))),
        (demo("sixteen").box, (Island(tuple(range(16)), Joint.SWITCH, ("NV12",)),)),
    ],
)
def test_islands(box: Box, expected: tuple[Island, ...]) -> None:
    assert islands(box) == expected


def test_who_is_at_the_other_end_tells_a_switch_from_a_mesh() -> None:
    box = meshed("NV6", 3)
    lanes = tuple(NvLink(lane, True, 3, 25.0, "switch") for lane in range(6))
    switched = replace(box, gpus=tuple(replace(gpu, nvlinks=lanes) for gpu in box.gpus))
    assert [island.joint for island in islands(switched)] == [Joint.SWITCH]
    straight = tuple(replace(lane, remote="gpu") for lane in lanes)
    meshes = replace(box, gpus=tuple(replace(gpu, nvlinks=straight) for gpu in box.gpus))
    assert [island.joint for island in islands(meshes)] == [Joint.MESH]


def test_numa_nodes_are_frames_of_their_own_with_what_lies_between() -> None:
    shown = demo("two-sockets")
    assert nodes(shown.box) == (Node("0", (0, 1, 2, 3)), Node("1", (4, 5, 6, 7)))
    told = text(shown)
    assert "NUMA 0 · PCIe · PIX, NODE" in told
    assert "SYS between NUMA nodes" in told
    assert "No two cards are joined by NVLink." in told


def test_each_joint_has_its_own_words_and_signs() -> None:
    pair, mesh, switch, cube = (text(snapshot(box)) for box in (MIXED, meshed("NV6", 4), meshed("NV18", 8), CUBE))
    assert "pair · NV12" in pair
    assert "1 ━━━" in pair
    assert "Without NVLink: 0" in pair
    assert "full mesh · NV6 to each" in mesh
    assert mesh.count("╳") == 3
    assert "NVSwitch · NV18 to each" in switch
    assert switch.count("┻") == 8
    assert "partial mesh · NV2, NV1" in cube
    assert "NV2 3,4" in cube  # of card 0


def test_traffic_is_told_and_what_is_not_read_is_no_zero() -> None:
    quiet = snapshot(MIXED)
    assert "↑n/a" in text(quiet)
    assert "↑0" not in text(quiet)
    busy = replace(
        quiet,
        readings=tuple(
            Reading(gpu, nvlink_tx_bytes_s=41e9, nvlink_rx_bytes_s=3.12e9, pcie_tx_bytes_s=2e6, pcie_rx_bytes_s=312e6)
            for gpu in range(3)
        ),
    )
    told = text(busy)
    for words in ("↑41G", "↓3.1G", "↑82G in all", "↑2M", "↓312M"):
        assert words in told


def test_what_is_amiss_stands_first() -> None:
    down = (NvLink(0, True), NvLink(1, False), NvLink(2, False))
    box = replace(MIXED, gpus=(*MIXED.gpus[:2], replace(MIXED.gpus[2], nvlinks=down)), topology_known=False)
    rows = text(snapshot(box)).splitlines()
    assert rows[0] == "✗ NVLinks that are down: GPU 2 lanes 1, 2."
    assert "does not tell how some of these cards are joined" in " ".join(rows[1:3])
    assert any("2 ✗2 down" in row for row in rows)
    lost = snapshot(MIXED, fault="GPU 0 is off the bus.")
    assert any("0 ✗" in row for row in text(lost).splitlines())


@pytest.mark.parametrize("name", simulated_boxes())
@pytest.mark.parametrize("width", [38, 43, 75, 116, 195])
def test_every_card_is_on_the_map_and_nothing_is_wider_than_the_view(name: str, width: int) -> None:
    shown = demo(name)
    lines = link_map(shown, width, Glyphs.unicode())
    assert all(width_of(line) <= width for line in lines)
    words = text(shown, width).split()
    assert {str(gpu.index) for gpu in shown.box.gpus} <= set(words)
    assert text(shown, width, Glyphs.ascii()).isascii()
    # Of one piece: each row of a frame is as wide as its edges.
    framed = [row for row in text(shown, width).splitlines() if row[:1] in "┏┃┗╭│╰"]
    assert all(row.rstrip()[-1] in "┓┃┛╮│╯" for row in framed)


class Links(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.view = LinkView()
        self.told: list[Demand] = []

    def compose(self) -> ComposeResult:
        yield self.view

    def on_demand_changed(self, message: DemandChanged) -> None:
        self.told.append(message.demand)


async def test_traffic_is_asked_for_only_while_the_map_is_seen() -> None:
    app = Links()
    async with app.run_test(size=(80, 30)) as pilot:
        app.view.show(snapshot(MIXED))
        await pilot.pause()
        assert app.told == [Demand.NOTHING]
        assert "bonded NVLinks" in app.view.plain
        app.view.show_as(as_map=True)
        await pilot.pause()
        assert app.told == [Demand.NOTHING, Demand.TRAFFIC]
        assert "pair · NV12" in app.view.plain
        app.view.display = False
        await pilot.pause()
        assert app.told == [Demand.NOTHING, Demand.TRAFFIC, Demand.NOTHING]


async def test_down_lanes_are_told_below_the_matrix_too() -> None:
    app = Links()
    box = replace(MIXED, gpus=(replace(MIXED.gpus[0], nvlinks=(NvLink(3, False),)), *MIXED.gpus[1:]))
    async with app.run_test(size=(80, 30)):
        app.view.show(snapshot(box))
        assert "✗ NVLinks that are down: GPU 0 lane 3." in app.view.plain
