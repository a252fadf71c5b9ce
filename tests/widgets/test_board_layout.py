"""Where things lie on the board: every point means one target, and what is drawn there is that target's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.box.types import GIB
from gpudeck.services.plan.dragging import Drag, NewStage, OnCard, Rank
from gpudeck.services.plan.findings import GpuMemory
from gpudeck.services.plan.types import Placement
from gpudeck.widgets.board.layout import FLAT, FRAMED, NARROW, WIDE, StagesLayout, density_for
from gpudeck.widgets.board.memory_bar import memory_bar, memory_figures
from gpudeck.widgets.board.paint_stages import paint_stages
from gpudeck.widgets.board.previews import Previews
from gpudeck.widgets.board.scene import Scene
from gpudeck.widgets.board.sheet import Sheet
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.lines import width_of
from tests.widgets.board_boxes import MIXED, judge, uniform

PAIRS = Placement(((0, 1), (2, 3)))


@given(st.integers(1, 4), st.integers(1, 8), st.integers(20, 200), st.integers(8, 60), st.data())
def test_the_cells_of_a_target_mean_that_target(
    stages: int, ranks: int, width: int, height: int, data: st.DataObject
) -> None:
    numbers = iter(range(64))
    placement = Placement(tuple(tuple(next(numbers) for _ in range(ranks)) for _ in range(stages)))
    layout = StagesLayout.of(placement, width, height)
    gpu = data.draw(st.sampled_from([*placement.gpus, 99]))
    for target in Drag(placement, gpu).targets():
        region = layout.region(target)
        if region is None:
            continue
        x = data.draw(st.integers(region.x, region.right - 1))
        y = data.draw(st.integers(region.y, region.bottom - 1))
        assert layout.target_at(x, y) == target


def test_every_point_is_a_target() -> None:
    layout = StagesLayout.of(PAIRS, 90, 20)
    x, y = layout.card(0, 0).offset
    assert layout.target_at(0, 0) == NewStage(0)
    assert layout.target_at(x + 3, y + 1) == OnCard(0)
    assert layout.target_at(x + 3, y - 1) == Rank(0, 0)
    assert layout.target_at(x + 3, layout.card(0, 1).y - 1) == Rank(0, 1)
    assert layout.target_at(x + 3, 500) == Rank(0, 2)
    assert layout.target_at(layout.card(0, 0).right, y) == NewStage(1)
    assert layout.target_at(500, y) == NewStage(2)
    assert layout.card_at(x, y) == 0
    assert layout.card_at(0, 0) is None


@pytest.mark.parametrize(
    ("placement", "size", "across", "down"),
    [
        (Placement(((0,), (1,))), (57, 18), NARROW, FRAMED),
        (Placement(((0, 1), (2, 3))), (100, 40), WIDE, FRAMED),
        (Placement(((0, 1), (2, 3))), (120, 40), (35, *WIDE[1:]), FRAMED),
        (Placement(((0, 1),)), (120, 40), (40, *WIDE[1:]), FRAMED),
        (Placement((tuple(range(8)), tuple(range(8, 16)))), (100, 40), WIDE, FLAT),
    ],
)
def test_the_roomiest_sizes_that_fit(
    placement: Placement, size: tuple[int, int], across: tuple[int, ...], down: tuple[int, ...]
) -> None:
    density = density_for(placement, *size)
    assert (density.card_width, density.lead, density.gap) == across
    assert (density.card_height, density.head, density.framed) == down
    layout = StagesLayout.of(placement, *size)
    assert layout.width <= size[0]
    assert layout.height <= size[1]


def page(placement: Placement, width: int = 100, height: int = 30, **scene: object) -> str:
    given_scene = Scene(MIXED, placement, Glyphs.unicode(), **scene)  # type: ignore[arg-type]
    lines = paint_stages(given_scene, StagesLayout.of(placement, width, height))
    return "\n".join("".join(text for text, _ in line) for line in lines)


def test_stages_show_ranks_layers_memory_and_links() -> None:
    shown = page(Placement(((1,), (2,))), judgement=judge(Placement(((1,), (2,)))))
    for words in ("stage 0", "16 layers", "rank 0", "1 A100-SXM4-40GB", "█ 8.0", "▓ 10.0", "░ 4.0", "─ NV12 ─"):
        assert words in shown
    assert "│ NV12" in page(Placement(((1, 2),)))
    assert "TP 3 · slowest SYS" in page(Placement(((0, 1, 2),)))


def test_copies_are_named_and_not_joined() -> None:
    shown = page(Placement(((1,), (2,)), 2))
    assert "copy 0" in shown
    assert "copy 1" in shown
    assert "stage" not in shown  # a copy of one stage needs no number for it
    assert "NV12" not in shown


def test_a_card_that_others_hold_is_marked_on_every_density() -> None:
    assert "▲ coder 13.9 GiB" in page(Placement(((1,),)), occupants={1: "coder 13.9 GiB"})
    assert "▲ r0" in page(Placement(((1,),)), height=8, occupants={1: "coder 13.9 GiB"})


def test_a_card_that_is_not_on_the_box_is_named_so() -> None:
    assert "7 not on this box" in page(Placement(((7,),)))


def test_while_a_card_is_lifted_each_target_says_what_a_drop_would_make() -> None:
    drag = Drag(Placement(((1,),)), 0).hover(Rank(0, 1))
    previews = Previews()
    previews.judge = judge
    previews.begin(drag)
    while previews.advance(4):
        pass
    shown = page(Placement(((1,),)), drag=drag, previews=previews.by_target)
    assert "+ rank 1" in shown
    assert "● ready · 22k tokens" in shown  # the targeted end of the stage
    assert "▲ caution · 22k tokens" in shown  # a new stage
    assert "⇄ ● 11k" in shown  # the swap
    assert set(previews.by_target) == set(drag.targets())


def test_a_judge_is_asked_once_for_a_placement_and_forgets_with_the_judge() -> None:
    asked: list[Placement] = []

    def counting(placement: Placement) -> object:
        asked.append(placement)
        return judge(placement)

    previews = Previews()
    assert previews.of(PAIRS) is None
    assert not previews.advance(3)
    previews.judge = counting  # type: ignore[assignment]
    assert previews.of(PAIRS) == previews.of(PAIRS)
    assert asked == [PAIRS]
    previews.judge = judge
    assert previews.of(PAIRS) == judge(PAIRS)


PARTS = st.integers(0, 40 * GIB)


@given(PARTS, PARTS, PARTS, PARTS, st.integers(-8 * GIB, 40 * GIB), st.integers(1, 60))
def test_a_memory_bar_fills_its_width_and_hides_no_part(
    weights: int, kv_cache: int, overhead: int, other: int, free: int, width: int
) -> None:
    memory = GpuMemory(0, weights, kv_cache, overhead, other, free)
    glyphs = Glyphs.unicode()
    bar = memory_bar(memory, width, glyphs)
    assert width_of(bar) == width
    drawn = {text[0] for text, _ in bar}
    if width >= 5:
        for name in ("weights", "kv_cache", "overhead", "other"):
            assert (getattr(glyphs, name) in drawn) == (getattr(memory, name) > 0)
    figures = memory_figures(memory, width, glyphs)
    assert width_of(figures) <= width
    assert free >= 0 or width < 20 or "too much" in figures[0][0]


def test_what_is_drawn_outside_of_a_sheet_is_lost_and_wide_characters_keep_their_cells() -> None:
    sheet = Sheet(6, 2)
    sheet.put(-1, 0, "ab")
    sheet.put(2, 0, "日本", "strong")
    sheet.put(0, 9, "x")
    sheet.put(5, 1, "日")
    first, second = sheet.lines()
    assert "".join(text for text, _ in first) == "b 日本"
    assert second == ()


@pytest.mark.parametrize("count", [1, 8, 16])
def test_the_page_is_as_wide_as_its_layout_says(count: int) -> None:
    box = uniform(count)
    for placement in (Placement(), Placement((tuple(range(count)),)), Placement(tuple((n,) for n in range(count)))):
        scene = Scene(box, placement, Glyphs.unicode(), judgement=judge(placement), drag=Drag(placement, 0))
        layout = StagesLayout.of(placement, 60, 18)
        lines = paint_stages(scene, layout)
        assert len(lines) == layout.height
        assert all(width_of(line) <= max(layout.width, 60) for line in lines)
