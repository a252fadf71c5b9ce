"""The two rows under the board: the verdict, or what the lifted card would do; and the legend of the bars; pure."""

from gpudeck.services.plan.findings import Judgement
from gpudeck.services.text import printable
from gpudeck.widgets.board.memory_bar import legend
from gpudeck.widgets.board.scene import Scene, target_words
from gpudeck.widgets.lines import Line, width_of
from gpudeck.widgets.verdict import memory_words, verdict_words


def status_lines(scene: Scene, width: int) -> list[Line]:
    glyphs = scene.glyphs
    if scene.drag is None:
        return [_verdict(scene, scene.judgement, width), _legend(scene, width)]
    where = f" {scene.drag.gpu} {glyphs.arrow} {target_words(scene.drag.target)}  "
    judgement = scene.aim
    first: Line = ((where, "strong"),)
    second: Line = ()
    if judgement is not None:
        first = (*first, *_verdict(scene, judgement, width - len(where)))
        if judgement.findings:
            second = ((glyphs.cut(f" {printable(judgement.findings[0].message)}", width), "muted"),)
    return [first, second]


def _verdict(scene: Scene, judgement: Judgement | None, width: int) -> Line:
    glyphs = scene.glyphs
    if judgement is None or not (scene.placement.stages or scene.aim):
        return ()
    words, style = verdict_words(judgement, glyphs)
    memory = "" if judgement.memory is None else memory_words(judgement.memory, glyphs)
    rest = f" {glyphs.dot} {memory}" if memory else ""
    return ((f" {words}", style), (glyphs.cut(rest, width - len(words) - 1), "text"))


def _legend(scene: Scene, width: int) -> Line:
    line = legend(scene.glyphs)
    if scene.judgement is None or scene.judgement.memory is None or width_of(line) + 1 > width:
        return ()
    return ((" ", ""), *line)
