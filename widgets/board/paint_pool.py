"""The pool's page: the cards that are not placed, a row each and a second one where somebody holds memory; pure."""

from gpudeck.services.plan.dragging import Pool
from gpudeck.services.plan.placing import unplaced
from gpudeck.widgets.board.scene import Scene
from gpudeck.widgets.glyphs import gib
from gpudeck.widgets.lines import Line, spread, under

HEAD = 2  # rows above the first card
ROOM_FOR_SIZES = 24  # cells; a narrower pool shows names only


def paint_pool(scene: Scene, width: int) -> tuple[list[Line], list[int | None]]:
    """The rows of the pool, and the card that each row belongs to."""
    pool = unplaced(scene.box, scene.placement)
    rows = [_title(scene, len(pool), width), _offer(scene, width)]
    cards: list[int | None] = [None] * HEAD
    for gpu in pool:
        block = _card(scene, gpu, width)
        rows += block
        cards += [gpu] * len(block)
    if not pool and scene.box.gpus:
        rows.append((("  all placed", "muted"),))
        cards.append(None)
    return rows, cards


def _title(scene: Scene, count: int, width: int) -> Line:
    line = spread(((" Pool", "strong"),), ((f"{count} ", "muted"),) if count else (), width)
    return under(line, "aim", width) if scene.is_aimed(Pool()) else line


def _offer(scene: Scene, width: int) -> Line:
    """While a placed card is lifted: what taking it out would make."""
    if scene.drag is None or scene.drag.gpu not in scene.placement.gpus:
        return ()
    aimed = scene.is_aimed(Pool())
    line: Line = ((f" {scene.glyphs.plus} back  ", scene.tint(Pool())), *scene.foretold(Pool()))
    return under(line, "aim", width) if aimed else line


def _card(scene: Scene, gpu: int, width: int) -> list[Line]:
    glyphs, chosen, lifted = scene.glyphs, scene.is_chosen(gpu), scene.is_lifted(gpu)
    card = scene.box.gpu(gpu)
    size = "" if card is None or width < ROOM_FOR_SIZES else f"{gib(card.memory_bytes, 0)} GiB "
    edge = glyphs.edge if chosen else " "
    number = scene.number(gpu)
    name = glyphs.cut(scene.name(gpu), width - len(edge) - len(number) - len(size) - 1)
    left: Line = (
        (edge, "primary"),
        (number, "muted" if lifted else "strong"),
        (name, "faint" if lifted else "text"),
    )
    rows = [spread(left, ((size, "faint" if lifted else "muted"),), width)]
    held, style = scene.held(gpu)
    if held:
        rows.append(((edge, "primary"), ("   ", ""), (glyphs.cut(held, width - 5), style)))
    return [under(row, "cursor", width) if chosen else row for row in rows]
