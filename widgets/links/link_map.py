"""The links as a map: NVLink islands and NUMA nodes as frames, each card a tile with its traffic; pure."""

from collections.abc import Callable, Sequence
from itertools import combinations

from gpudeck.services.box.types import Box, Gpu, Reading, Snapshot
from gpudeck.services.text import printable
from gpudeck.widgets.cards import facts
from gpudeck.widgets.glyphs import Glyphs, card_name, joined, wrap
from gpudeck.widgets.lines import Line, width_of
from gpudeck.widgets.links.frames import EDGES, Frame, laid_out, rows_of
from gpudeck.widgets.links.islands import Island, Joint, Node, islands, nodes
from gpudeck.widgets.links.kinds import kinds_between, link_style

_NARROW, _BROAD = 8, 14  # cells of a tile with its two rates below each other, and beside each other
_SENT_AND_RECEIVED = Callable[[Reading], tuple[float | None, float | None]]


def link_map(snapshot: Snapshot, width: int, glyphs: Glyphs) -> list[Line]:
    """What is amiss, the NVLink islands, the NUMA nodes, and what lies between those, in `width` cells."""
    box = snapshot.box
    lines: list[Line] = _amiss(box, width, glyphs)
    bonds = islands(box)
    lines += _fitted(lambda broad: [_island_frame(snapshot, one, width, glyphs, broad) for one in bonds], width, glyphs)
    alone = [str(gpu.index) for gpu in box.gpus if not any(gpu.index in island.cards for island in bonds)]
    if bonds and alone:
        lines += _said(f"Without NVLink: {', '.join(alone)}", "muted", width)
    elif not bonds and len(box.gpus) > 1:
        lines += _said("No two cards are joined by NVLink.", "muted", width)
    places = nodes(box)
    lines += _fitted(lambda broad: [_node_frame(snapshot, one, width, glyphs, broad) for one in places], width, glyphs)
    between = [kind for a, b in combinations(places, 2) for kind in _over_pcie(box, a.cards, b.cards)]
    if between and box.topology_known:
        kinds = ", ".join(dict.fromkeys(between))
        lines += _said(f"{kinds} between NUMA nodes", link_style(between[-1]), width)
    return [*lines, *_said(f"{glyphs.sent} out of a card, {glyphs.received} into it, bytes a second", "faint", width)]


def lanes_down(box: Box) -> str:
    """The NVLinks that are down, `GPU 3 lanes 4, 5; GPU 6 lane 0`; "" where none is."""
    told = []
    for gpu in box.gpus:
        down = [str(link.lane) for link in gpu.nvlinks if not link.up]
        if down:
            told.append(f"GPU {gpu.index} lane{'s' if len(down) > 1 else ''} {', '.join(down)}")
    return "; ".join(told)


def amiss(box: Box) -> list[tuple[str, str]]:
    """What a look at the links must not miss, each a sentence and its style."""
    told = []
    if down := lanes_down(box):
        told.append((f"NVLinks that are down: {down}.", "error"))
    if not box.topology_known:
        told.append(("The driver does not tell how some of these cards are joined: SYS is assumed there.", "warning"))
    return told


def _amiss(box: Box, width: int, glyphs: Glyphs) -> list[Line]:
    signs = {"error": glyphs.blocked, "warning": glyphs.caution}
    return [line for text, style in amiss(box) for line in _said(f"{signs[style]} {text}", style, width)]


def _said(text: str, style: str, width: int) -> list[Line]:
    return [((line, style),) for line in wrap(text, width)]


def _fitted(frames: Callable[[bool], list[Frame]], width: int, glyphs: Glyphs) -> list[Line]:
    """With broad tiles where that takes no more rows than with narrow ones."""
    broad, narrow = frames(True), frames(False)
    return laid_out(broad if _height(broad, width) <= _height(narrow, width) else narrow, width, glyphs)


def _height(frames: Sequence[Frame], width: int) -> int:
    return sum(max(len(frame.rows) + 2 for frame in row) for row in rows_of(frames, width))


def _island_frame(snapshot: Snapshot, island: Island, width: int, glyphs: Glyphs, broad: bool) -> Frame:
    box = snapshot.box
    each = "" if island.joint in (Joint.PAIR, Joint.PARTIAL) else " to each"
    readings = [snapshot.reading(card) or Reading(card) for card in island.cards]
    peers = [_peers(box, card, island) for card in island.cards]
    tile = max(_BROAD if broad else _NARROW, *(len(peer) + 1 for reached in peers for peer in reached), 0)
    across = _tiles_across(len(island.cards), tile, width)
    tiles = [
        _tile(box, reading, tile, glyphs, _over_nvlink, reached)
        for reading, reached in zip(readings, peers, strict=True)
    ]
    joiner = {Joint.PAIR: glyphs.heavy[4], Joint.MESH: glyphs.other}.get(island.joint, "")
    last_row = len(island.cards) - (len(island.cards) - 1) // across * across
    taps = tuple(2 + tile * place for place in range(last_row)) if island.joint is Joint.SWITCH else ()
    return Frame(
        joined(
            (island.joint.value, ", ".join(island.kinds) + each, _names(box, island.cards)),
            glyphs.dot,
        ),
        _totals(readings, glyphs),
        _in_rows(tiles, tile, across, glyphs, joiner),
        tile * across,
        glyphs.heavy,
        "success",
        taps,
    )


def _node_frame(snapshot: Snapshot, node: Node, width: int, glyphs: Glyphs, broad: bool) -> Frame:
    box = snapshot.box
    tile = _BROAD if broad else _NARROW
    across = _tiles_across(len(node.cards), tile, width)
    readings = [snapshot.reading(card) or Reading(card) for card in node.cards]
    tiles = [_tile(box, reading, tile, glyphs, _over_pcie_link, ()) for reading in readings]
    kinds = ", ".join(_over_pcie(box, node.cards, node.cards)) if box.topology_known else ""
    return Frame(
        joined((f"NUMA {printable(node.numa or 'n/a')}", "PCIe", kinds), glyphs.dot),
        "",
        _in_rows(tiles, tile, across, glyphs, ""),
        tile * across,
        glyphs.solid,
        "muted",
    )


def _over_nvlink(reading: Reading) -> tuple[float | None, float | None]:
    return reading.nvlink_tx_bytes_s, reading.nvlink_rx_bytes_s


def _over_pcie_link(reading: Reading) -> tuple[float | None, float | None]:
    return reading.pcie_tx_bytes_s, reading.pcie_rx_bytes_s


def _over_pcie(box: Box, some: Sequence[int], others: Sequence[int]) -> list[str]:
    return [kind for kind in kinds_between(box, some, others) if not kind.startswith("NV")]


def _tiles_across(count: int, tile: int, width: int) -> int:
    """As many tiles beside each other as fit, with rows of about one length."""
    most = max((width - EDGES) // tile, 1)
    return -(-count // -(-count // most))


def _tile(
    box: Box, reading: Reading, width: int, glyphs: Glyphs, rates: _SENT_AND_RECEIVED, peers: Sequence[str]
) -> list[Line]:
    """The card's number with what is amiss, its traffic out and in, and whom it reaches."""
    head: Line = ((str(reading.gpu), "strong"), *_marks(box.gpu(reading.gpu), reading, rates, glyphs))
    sent, received = rates(reading)
    traffic: list[Line] = [_rate(glyphs.sent, sent), _rate(glyphs.received, received)]
    if width >= _BROAD:
        traffic = [(*traffic[0], (" ", ""), *traffic[1])]
    return [head, *traffic, *(((glyphs.cut(peer, width - 1), "muted"),) for peer in peers)]


def _marks(gpu: Gpu | None, reading: Reading, rates: _SENT_AND_RECEIVED, glyphs: Glyphs) -> Line:
    if reading.fault is not None:
        return ((f" {glyphs.blocked}", "error"),)
    down = sum(not link.up for link in gpu.nvlinks) if gpu and rates is _over_nvlink else 0
    return ((f" {glyphs.blocked}{down} down", "error"),) if down else ()


def _rate(sign: str, bytes_s: float | None) -> Line:
    return ((f"{sign}{facts.rate(bytes_s):<4}", "primary" if bytes_s else "faint"),)


def _peers(box: Box, card: int, island: Island) -> tuple[str, ...]:
    """Where not every pair is joined, whom the card reaches: `NV2 3, 4`."""
    if island.joint is not Joint.PARTIAL:
        return ()
    reached = {
        kind: [str(other) for other in island.cards if other != card and box.link(card, other) == kind]
        for kind in island.kinds
    }
    return tuple(f"{kind} {','.join(others)}" for kind, others in reached.items() if others)


def _in_rows(tiles: Sequence[list[Line]], width: int, across: int, glyphs: Glyphs, joiner: str) -> tuple[Line, ...]:
    """The tiles in rows of `across`; between two that are joined straight a line, with the joiner on it."""
    rows: list[Line] = []
    for start in range(0, len(tiles), across):
        row = tiles[start : start + across]
        for y in range(max(map(len, row))):
            line: Line = ()
            for place, tile in enumerate(row):
                spans = tile[y] if y < len(tile) else ()
                joins = y == 0 and joiner and place < len(row) - 1
                gap = width - width_of(spans)
                filler = f" {(glyphs.heavy[4] * (gap - 2))[: gap // 2 - 1]}{joiner}" if joins else ""
                filler += glyphs.heavy[4] * (gap - len(filler) - 1) + " " if joins else " " * gap
                line = (*line, *spans, (filler, "success"))
            rows.append(line)
    return tuple(rows)


def _names(box: Box, cards: Sequence[int]) -> str:
    names = {card_name(printable(gpu.name)) for gpu in box.gpus if gpu.index in cards}
    return names.pop() if len(names) == 1 else ""


def _totals(readings: Sequence[Reading], glyphs: Glyphs) -> str:
    """What all of them send; into them goes as much."""
    sent = [reading.nvlink_tx_bytes_s for reading in readings if reading.nvlink_tx_bytes_s is not None]
    return f"{glyphs.sent}{facts.rate(sum(sent))} in all" if len(sent) == len(readings) else ""
