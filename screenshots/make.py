"""`.venv/bin/python -m screenshots.make [NAME…]`: take the pictures of the README again, all or some of them.

Each is the screen of the real panel over a simulated box with a simulated engine, driven as a person drives it; those
of a real box are drawn from its screens as they were kept.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from screenshots.drawing import png_of, svg_of
from screenshots.kept import KEPT, picture_of
from screenshots.scenes import SCENES
from screenshots.stage import on_stage

FOLDER = Path(__file__).parent


def path_of(name: str) -> Path:
    """Where the picture of that name stands."""
    return FOLDER / f"{name}.png"


async def take(name: str) -> None:
    scene = SCENES[name]
    async with on_stage(scene.columns, scene.rows, scene.box) as stage:
        await scene.play(stage)
        picture = png_of(svg_of(stage.panel))
        await stage.hear_out()
    path_of(name).write_bytes(picture)
    print(path_of(name), flush=True)


def main(names: Sequence[str]) -> int:
    every = [*SCENES, *KEPT]
    unknown = [name for name in names if name not in every]
    if unknown:
        print(f"There is no picture {', '.join(unknown)}: take some of {', '.join(every)}.", file=sys.stderr)
        return 2
    for name in names or every:
        if name in KEPT:
            path_of(name).write_bytes(picture_of(KEPT[name]))
        else:
            asyncio.run(take(name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
