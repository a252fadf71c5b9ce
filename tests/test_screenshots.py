"""The pictures, the command that makes them and the README that shows them name the same files."""

import re
from pathlib import Path

import pytest

from screenshots.drawing import CELL, MARGIN, png_of, svg_of_cells
from screenshots.kept import KEPT, cells_from, ground_of, picture_of
from screenshots.make import FOLDER, main, path_of
from screenshots.scenes import SCENES

README = Path(__file__).parents[1] / "README.md"


def test_every_picture_is_there_and_none_that_nobody_makes() -> None:
    assert sorted(FOLDER.glob("*.png")) == sorted(path_of(name) for name in (*SCENES, *KEPT))
    for name in (*SCENES, *KEPT):
        assert path_of(name).read_bytes().startswith(b"\x89PNG"), name


def test_the_readme_shows_every_picture_and_no_other() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(screenshots/([\w-]+)\.png\)", README.read_text(encoding="utf-8"))
    assert sorted(shown) == sorted((*SCENES, *KEPT))


def test_a_picture_is_of_the_size_of_its_terminal() -> None:
    for name, scene in SCENES.items():
        header = path_of(name).read_bytes()[16:24]
        size = int.from_bytes(header[:4], "big"), int.from_bytes(header[4:], "big")
        assert size == (scene.columns * CELL[0] + 2 * MARGIN, scene.rows * CELL[1] + 2 * MARGIN), name


def test_a_wrong_name_is_told_with_the_right_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonesuch"]) == 2
    assert "take some of panel-wide, " in capsys.readouterr().err


def test_a_kept_screen_is_drawn_in_its_own_colours() -> None:
    kept = [[["é", "brightbrown", "101418", "bold"], ["世", "5fd7ff", "101418", "reverse"], ["", "default", "red", ""]]]
    cells = cells_from(kept)
    assert [character for character, _ in cells[0]] == ["é", "世", ""]
    assert ground_of(cells) == "#101418"
    svg = svg_of_cells(cells, ground_of(cells))
    for seen in ("#101418", "#5fd7ff", 'font-weight="700"', "é"):
        assert seen in svg
    assert png_of(svg).startswith(b"\x89PNG")


def test_the_pictures_of_a_real_box_are_those_of_its_kept_screens() -> None:
    for name, kept in KEPT.items():
        assert path_of(name).read_bytes() == picture_of(kept), name
