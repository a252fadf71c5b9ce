"""The row under the board: where the lifted card goes, who else holds the chosen one, else the legend; pure."""

from gpudeck.widgets.board.memory_bar import legend
from gpudeck.widgets.board.scene import Scene, target_words
from gpudeck.widgets.lines import Line, width_of


def status_line(scene: Scene, width: int) -> Line:
    glyphs = scene.glyphs
    if scene.drag is not None:
        words = f" {scene.drag.gpu} {glyphs.arrow} {target_words(scene.drag.target)}"
        return ((glyphs.cut(words, width), "strong"),)
    held, style = scene.held(scene.chosen) if scene.focused and scene.chosen is not None else ("", "")
    if held:
        return ((f" {scene.chosen} ", "strong"), (glyphs.cut(held, width - 4), style))
    line = legend(glyphs)
    if scene.judgement is None or scene.judgement.memory is None or width_of(line) + 1 > width:
        return ()
    return ((" ", ""), *line)
