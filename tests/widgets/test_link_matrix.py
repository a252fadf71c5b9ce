"""The link matrix and which link a group waits for."""

import pytest
from textual.app import App, ComposeResult

from gpudeck.services.box.types import Box, Link
from gpudeck.widgets.links.kinds import slowest
from gpudeck.widgets.links.link_view import LinkView
from gpudeck.widgets.links.matrix import matrix
from tests.widgets.board_boxes import MIXED, snapshot, uniform


def cells(box: Box, width: int = 30) -> list[list[str]]:
    rows = ["".join(text for text, _ in line).split() for line in matrix(box, width)]
    return rows[: len(box.gpus) + 1]


def test_the_cells_are_those_of_nvidia_smi() -> None:
    assert cells(MIXED) == [
        ["GPU0", "GPU1", "GPU2"],
        ["GPU0", "X", "SYS", "SYS"],
        ["GPU1", "SYS", "X", "NV12"],
        ["GPU2", "SYS", "NV12", "X"],
    ]


def test_only_kinds_that_occur_are_explained() -> None:
    words = "\n".join("".join(text for text, _ in line) for line in matrix(MIXED, 80))
    assert "NV#" in words
    assert "PIX" not in words


def test_the_legend_stands_beside_the_matrix_where_it_fits() -> None:
    rows = ["".join(text for text, _ in line) for line in matrix(MIXED, 80)]
    assert len(rows) == 4
    assert "GPU0" in rows[1]
    assert "bonded NVLinks" in rows[1]
    assert all(len(row) <= 80 for row in rows)
    assert len(matrix(MIXED, 40)) > 4


async def test_a_matrix_wider_than_the_view_scrolls() -> None:
    class Links(App[None]):
        def compose(self) -> ComposeResult:
            yield LinkView()

    async with Links().run_test(size=(40, 20)) as pilot:
        view = pilot.app.query_one(LinkView)
        view.show(snapshot(uniform(16)))
        await pilot.pause()
        assert view.virtual_size.width > 40
        assert view.max_scroll_x > 0
        view.show(snapshot(MIXED))
        await pilot.pause()
        assert view.max_scroll_x == 0
        view.show(snapshot(Box(())))
        assert "no GPU" in view.plain


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [(("NV12", "NV4", "NV12"), "NV4"), (("NV4", "PIX", "NODE"), "NODE"), (("PHB", "PXB", "SYS"), "SYS")],
)
def test_the_slowest_link_of_a_group(kinds: tuple[str, str, str], expected: str) -> None:
    pairs = ((0, 1), (0, 2), (1, 2))
    box = Box(uniform(3).gpus, tuple(Link(a, b, kind) for (a, b), kind in zip(pairs, kinds, strict=True)))
    assert slowest(box, (0, 1, 2)) == expected
