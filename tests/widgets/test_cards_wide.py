"""Cards on a wide pane: a row each with all that is measured, and a row for each process."""

from dataclasses import replace

import pytest

from gpudeck.services.box.types import GIB, GpuProcess, Reading, Snapshot
from gpudeck.widgets.cards import density, facts
from gpudeck.widgets.cards.rows import CardView
from gpudeck.widgets.cards.trend import CELL_S, CELLS, Trend
from gpudeck.widgets.cards.wide import wide
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.lines import Line, width_of
from tests.widgets.board_boxes import snapshot, uniform

WORKER = GpuProcess(
    4711, "VLLM::Worker_TP1", 60 * GIB, "ada", "llama", 1, 0, started_at=1000.0, command="VLLM::Worker_TP1"
)


def views(read: Snapshot, chosen: int | None = None) -> list[CardView]:
    return [
        CardView(
            read.box,
            gpu,
            read.reading(gpu.index) or Reading(gpu.index),
            (0.5, 1.0),
            chosen=gpu.index == chosen,
            glyphs=Glyphs.unicode(),
            at=1000.0 + 7300,
            links="NV18 → 1-7",
        )
        for gpu in read.box.gpus
    ]


def plain(lines: list[Line]) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


def test_one_row_tells_all_that_is_measured_and_one_each_process() -> None:
    card = views(snapshot(uniform(8), processes=(WORKER, GpuProcess(12, "python3", None, None))))[0]
    row, worker, other = plain(wide(card, 190))
    for words in ("0  H200", "61 %", "▅█", "14.2 of", "71 °C", "312 W", "NV18 → 1-7"):
        assert words in row
    for words in ("60.0 GiB", "llama · stage 0 · rank 1", "4711", "ada", "2 h", "VLLM::Worker_TP1"):
        assert words in worker
    assert "n/a" in other
    assert "python3" in other


@pytest.mark.parametrize("width", [120, 133, 160, 196, 300])
def test_no_row_is_wider_than_the_pane(width: int) -> None:
    foreign = replace(WORKER, command="推論" * 200, name="\x1b[2J" * 40, engine=None)
    read = snapshot(uniform(8), processes=(foreign, WORKER), throttle_reasons=("thermal (hardware)", "power cap"))
    for line in wide(views(read)[0], width):
        assert width_of(line) <= width
        assert "\x1b" not in "".join(text for text, _ in line)


def test_a_brake_is_told_before_the_links() -> None:
    row = plain(wide(views(snapshot(uniform(8), throttle_reasons=("power cap",)))[0], 190))[0]
    assert "▲ power cap" in row
    assert "NV18" not in row


def test_a_fault_takes_the_row() -> None:
    (row,) = plain(wide(views(snapshot(uniform(8), fault="GPU 0 is off the bus.", processes=()))[0], 190))
    assert "✗ GPU 0 is off the bus." in row


def test_more_processes_than_there_is_room_for_are_counted() -> None:
    rows = plain(wide(views(snapshot(uniform(8), processes=(WORKER,) * 9))[0], 190))
    assert len(rows) == 5
    assert "6 more" in rows[-1]


def test_the_density_is_the_fullest_at_which_all_cards_fit() -> None:
    read = snapshot(uniform(8), processes=(WORKER,))
    heights = {}
    for height in (60, 46, 20, 9):
        told = density.blocks(views(read, chosen=0), 190, height)
        assert [gpu for gpu, _ in told] == list(range(8))
        heights[height] = [len(block) for _, block in told]
    assert heights[60] == [6] * 7 + [5]  # in full, a blank row between
    assert heights[46] == heights[20] == [2] * 8  # a row each, and one for the process
    assert heights[9] == [5] + [1] * 7  # a row each, the chosen one in full


def test_one_card_alone_is_always_told_in_full() -> None:
    ((_, block),) = density.blocks(views(snapshot(uniform(1))), 190, 2)
    assert len(block) > 2


def test_a_trend_holds_the_mean_of_each_cell_and_gaps_where_nothing_was_read() -> None:
    trend = Trend()
    for at, value in ((0.0, 0.25), (CELL_S / 2, 0.75), (CELL_S, 1.0), (4 * CELL_S, None), (5 * CELL_S, 0.5)):
        trend.add(at, value)
    assert trend.means == (0.5, 1.0, None, None, None, 0.5)


def test_a_trend_is_bounded_and_outlives_a_long_pause_and_a_clock_set_back() -> None:
    trend = Trend()
    for at in range(10 * CELLS):
        trend.add(at * CELL_S, 0.5)
    assert len(trend.means) == CELLS
    trend.add(1e9, 0.7)
    assert trend.means == (*[None] * (CELLS - 1), 0.7)
    trend.add(5.0, 0.9)
    assert trend.means[-1] == 0.9


@pytest.mark.parametrize(
    ("seconds", "words"), [(4, "0 s"), (47, "40 s"), (60, "1 min"), (3599, "59 min"), (7300, "2 h"), (90_000, "1 d")]
)
def test_ages_are_told_in_their_largest_unit(seconds: float, words: str) -> None:
    assert facts.age(WORKER, 1000.0 + seconds) == words
    assert facts.age(replace(WORKER, started_at=None), 1000.0 + seconds) == ""
