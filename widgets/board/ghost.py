"""The lifted card beside the pointer, above everything else."""

from textual.geometry import Offset

from gpudeck.services.plan.dragging import Drag
from gpudeck.widgets.board.scene import Scene
from gpudeck.widgets.board.sheet import Sheet
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.lines import LineView

WIDTH, HEIGHT = 26, 4
# Never under the pointer: there is something to be seen there.
BESIDE_POINTER = Offset(2, 1)


class DragGhost(LineView, can_focus=False):
    """Follows the pointer while a card is dragged, and says what a drop would make where the pointer is."""

    DEFAULT_CSS = f"""
    DragGhost {{
        overlay: screen;
        layer: ghost;
        position: absolute;
        constrain: inside inside;
        width: {WIDTH};
        height: {HEIGHT};
        overflow: hidden;
        background: $panel;
        display: none;
    }}
    """

    def follow(self, pointer: Offset) -> None:
        """Move beside a point of the screen."""
        self.display = True
        place = pointer + BESIDE_POINTER
        if place != self.absolute_offset:
            self.absolute_offset = place
            self.refresh(layout=True)

    def vanish(self) -> None:
        self.display = False

    def show(self, drag: Drag, scene: Scene) -> None:
        self.show_lines(ghost_lines(drag, scene, scene.glyphs).lines())


def ghost_lines(drag: Drag, scene: Scene, glyphs: Glyphs) -> Sheet:
    sheet = Sheet(WIDTH, HEIGHT)
    sheet.frame(0, 0, WIDTH, HEIGHT, glyphs.solid, "primary")
    sheet.put(2, 1, glyphs.cut(f"{drag.gpu} {scene.name(drag.gpu)}", WIDTH - 4), "strong")
    if drag.target is None:
        sheet.put(2, 2, "stays where it is", "muted")
    else:
        sheet.put_line(2, 2, scene.foretold(drag.target, in_full=True))
    return sheet
