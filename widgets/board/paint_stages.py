"""The stages' page: cards in their slots, the links that matter, and while a card is lifted the targets; pure."""

from textual.geometry import Region

from gpudeck.services.plan.dragging import NewStage, OnCard, Rank, Target
from gpudeck.widgets.board.layout import StagesLayout
from gpudeck.widgets.board.memory_bar import memory_bar, memory_figures
from gpudeck.widgets.board.scene import Scene
from gpudeck.widgets.board.sheet import Sheet
from gpudeck.widgets.glyphs import gib
from gpudeck.widgets.lines import Line, width_of
from gpudeck.widgets.links.kinds import link_style, slowest

LEAST_OUTLINE = 14  # cells; a narrower target has its sign only
EMPTY_BOARD = ("No card is placed yet.", "Lift one from the pool and drop it here.")


def paint_stages(scene: Scene, layout: StagesLayout) -> list[Line]:
    sheet = Sheet(max(layout.width, layout.view_width), layout.height)
    placement = scene.placement
    for stage, cards in enumerate(placement.stages):
        _head(sheet, scene, layout, stage)
        for place, gpu in enumerate(cards):
            _card(sheet, scene, layout, stage, place, gpu)
            if place:
                _link_within(sheet, scene, layout, stage, place)
        if stage:
            _links_between(sheet, scene, layout, stage)
    if not placement.stages:
        _invitation(sheet, scene, layout)
    if scene.drag is not None:
        for target in scene.drag.targets():
            _target(sheet, scene, layout, target)
    return sheet.lines()


def _head(sheet: Sheet, scene: Scene, layout: StagesLayout, stage: int) -> None:
    """`stage 0 … 16 layers`, and under it the link that a TP group of three or more has to wait for."""
    placement, glyphs = scene.placement, scene.glyphs
    x, width = layout.stage_x(stage), layout.density.card_width
    pipeline = placement.pipeline_parallel_size
    whole_copies = placement.replicas > 1 and pipeline * placement.replicas == len(placement.stages)
    title = f"stage {stage}"
    if whole_copies:
        copy = f"copy {stage // pipeline}"
        title = f"{copy} {glyphs.dot} stage {stage % pipeline}" if pipeline > 1 else copy
    sheet.put(x, 0, title, "strong")
    layers = scene.layers(stage)
    if layers is not None:
        words = f"{layers} layer{'' if layers == 1 else 's'}"
        if len(title) + len(words) < width:
            sheet.put(x + width - len(words), 0, words, "muted")
    cards = placement.stages[stage]
    if len(cards) > 2 and scene.drag is None:
        kind = slowest(scene.box, cards)
        words = f"TP {len(cards)} {glyphs.dot} slowest "
        sheet.put_line(x, 1, ((words, "muted"), (kind, link_style(kind))))


def _card(sheet: Sheet, scene: Scene, layout: StagesLayout, stage: int, place: int, gpu: int) -> None:
    region = layout.card(stage, place)
    if layout.density.framed:
        _framed_card(sheet, scene, region, gpu, place)
    else:
        _flat_card(sheet, scene, region, gpu, place)


def _framed_card(sheet: Sheet, scene: Scene, region: Region, gpu: int, place: int) -> None:
    _frame(sheet, scene, region, gpu, place)
    card = scene.box.gpu(gpu)
    x, y, width = region.x + 2, region.y + 1, region.width - 4
    size = "" if card is None else f"{gib(card.memory_bytes, 0)} GiB"
    # A name says more than a size, which it often holds.
    fits = len(scene.number(gpu)) + len(scene.name(gpu)) + len(size) + 1 <= width
    _two_ends(sheet, scene, Region(x, y, width, 1), gpu, size if fits else "")
    memory = scene.memory(gpu)
    if memory is not None and not scene.is_lifted(gpu):
        sheet.put_line(x, y + 1, memory_bar(memory, width, scene.glyphs))
        sheet.put_line(x, y + 2, memory_figures(memory, width, scene.glyphs))


def _flat_card(sheet: Sheet, scene: Scene, region: Region, gpu: int, place: int) -> None:
    """A card on two rows without a frame: a ground of its own holds it together."""
    glyphs, chosen, aimed = scene.glyphs, scene.is_chosen(gpu), scene.is_aimed(OnCard(gpu))
    x, y, width = region.x + 1, region.y, region.width - 2
    held, _style = scene.held(gpu)
    mark = f"{held.split()[0]} " if held else ""
    _two_ends(sheet, scene, Region(x, y, width, 1), gpu, f"{mark}r{place}")
    memory = scene.memory(gpu)
    if memory is not None and not scene.is_lifted(gpu):
        fits = memory.free >= 0
        left_over = gib(memory.free) if fits else f"{glyphs.blocked}{gib(-memory.free)}"
        # While a card is lifted the right end offers the swap.
        room = 6 if scene.drag is None else 10
        sheet.put_line(x, y + 1, memory_bar(memory, width - room, glyphs))
        if scene.drag is None:
            sheet.put(x + width - len(left_over), y + 1, left_over, "muted" if fits else "error")
    if chosen or aimed:
        for row in range(y, region.bottom):
            sheet.put(region.x, row, glyphs.edge, "primary" if chosen else scene.tint(OnCard(gpu)))
    sheet.wash(*region, "cursor" if chosen else "card")


def _two_ends(sheet: Sheet, scene: Scene, region: Region, gpu: int, right: str) -> None:
    """A card's number and name on the left, a short fact on the right; a lifted card is greyed."""
    x, y, width, _ = region
    lifted = scene.is_lifted(gpu)
    number = scene.number(gpu)
    name = scene.glyphs.cut(scene.name(gpu), width - len(number) - (len(right) + 1 if right else 0))
    sheet.put(x, y, number, "muted" if lifted else "strong")
    sheet.put(x + len(number), y, name, "muted" if lifted else "text")
    sheet.put(x + width - len(right), y, right, "faint" if lifted else "muted")


def _frame(sheet: Sheet, scene: Scene, region: Region, gpu: int, place: int) -> None:
    x, y, width, height = region
    glyphs = scene.glyphs
    if scene.is_lifted(gpu):
        style, characters = "faint", glyphs.dashed
    elif scene.is_aimed(OnCard(gpu)):
        style, characters = f"{scene.tint(OnCard(gpu))} strong", glyphs.solid
    elif scene.is_chosen(gpu):
        style, characters = "primary", glyphs.heavy
    else:
        style, characters = "faint", glyphs.solid
    sheet.frame(x, y, width, height, characters, style)
    sheet.put(x + 2, y, f" rank {place} ", "primary strong" if scene.is_chosen(gpu) else "muted")
    held, style = scene.held(gpu)
    if held:
        sheet.put(x + 2, y + height - 1, glyphs.cut(f" {held}", width - 5) + " ", style)


def _link_within(sheet: Sheet, scene: Scene, layout: StagesLayout, stage: int, place: int) -> None:
    """The link between a card and the one above it in its TP group."""
    cards = scene.placement.stages[stage]
    kind = scene.box.link(cards[place - 1], cards[place])
    x, y = layout.stage_x(stage) + 3, layout.slot_y(place) - 1
    sheet.put_line(x, y, ((f"{scene.glyphs.solid[5]} ", "faint"), (kind, link_style(kind))))


def _links_between(sheet: Sheet, scene: Scene, layout: StagesLayout, stage: int) -> None:
    """The links over which a stage hands its activations to the next: rank by rank, within one copy."""
    placement = scene.placement
    gap = layout.gap(stage)
    if placement.pipeline_parallel_size and stage % placement.pipeline_parallel_size == 0:
        _between_copies(sheet, scene, gap)
        return
    for place, (a, b) in enumerate(zip(placement.stages[stage - 1], placement.stages[stage], strict=False)):
        kind = scene.box.link(a, b)
        y = layout.slot_y(place) + layout.density.card_height // 2
        sheet.put(gap.x, y, scene.glyphs.rule * gap.width, "faint")
        words = f" {kind} " if gap.width > len(kind) + 2 else kind
        sheet.put(gap.x + (gap.width - len(words)) // 2, y, words, link_style(kind))


def _between_copies(sheet: Sheet, scene: Scene, gap: Region) -> None:
    """Copies hand each other nothing: a line parts them."""
    for row in range(gap.height):
        sheet.put(gap.x + gap.width // 2, row, scene.glyphs.heavy[5], "soft")


def _invitation(sheet: Sheet, scene: Scene, layout: StagesLayout) -> None:
    region = layout.new_stage(0)
    if scene.drag is None:
        sheet.frame(*region, scene.glyphs.dashed, "faint")
        sheet.put(region.x + 2, region.y + region.height // 2, "stage 0", "muted")
    for row, sentence in enumerate(EMPTY_BOARD):
        sheet.put(region.x, region.bottom + 1 + row, sentence, "muted")


def _target(sheet: Sheet, scene: Scene, layout: StagesLayout, target: Target) -> None:
    region = layout.region(target)
    if region is None:
        return
    if isinstance(target, OnCard):
        _swap_sign(sheet, scene, layout, target, region)
    elif isinstance(target, Rank) and target.place < len(scene.placement.stages[target.stage]):
        _insertion(sheet, scene, target, region)
    elif isinstance(target, NewStage) and region.width < LEAST_OUTLINE:
        _strip(sheet, scene, target, region)
    else:
        _outline(sheet, scene, layout, target, region)


def _outline(sheet: Sheet, scene: Scene, layout: StagesLayout, target: Target, region: Region) -> None:
    """A dashed place for a card: the end of a stage, or a new stage at the end."""
    words = f"rank {target.place}" if isinstance(target, Rank) else "new stage"
    tint, aimed = scene.tint(target), scene.is_aimed(target)
    foretold = scene.foretold(target, in_full=True)
    if not layout.density.framed and isinstance(target, Rank):
        foretold = scene.foretold(target)
        sheet.put_line(region.x, region.y, ((f" {scene.glyphs.plus} {words}  ", tint), *foretold))
    else:
        sheet.frame(*region, scene.glyphs.solid if aimed else scene.glyphs.dashed, tint if aimed else "faint")
        sheet.put(region.x + 2, region.y, f" {scene.glyphs.plus} {words} ", f"{tint} strong" if aimed else tint)
        if width_of(foretold) > region.width - 4:
            foretold = scene.foretold(target)
        sheet.put_line(region.x + 2, region.y + region.height // 2, foretold)
    if aimed:
        sheet.wash(*region, scene.ground(target))


def _insertion(sheet: Sheet, scene: Scene, target: Rank, region: Region) -> None:
    """The row above a card: before it."""
    tint, aimed = scene.tint(target), scene.is_aimed(target)
    line: Line = ((f"{scene.glyphs.plus} ", tint), *scene.foretold(target))
    x = region.right - width_of(line) - 2
    if aimed:
        words = f" {scene.glyphs.plus} rank {target.place}  "
        sheet.put(region.x, region.y, " " * region.width)
        sheet.put_line(region.x, region.y, ((words, f"{tint} strong"), *scene.foretold(target, in_full=True)))
        sheet.wash(*region, scene.ground(target))
    else:
        sheet.put_line(x, region.y, line)


def _swap_sign(sheet: Sheet, scene: Scene, layout: StagesLayout, target: OnCard, region: Region) -> None:
    ground = "" if layout.density.framed else " card"
    line: Line = ((f" {scene.glyphs.swap} ", scene.tint(target)), *scene.foretold(target), (" ", ""))
    line = tuple((text, f"{style}{ground}") for text, style in line)
    y = region.y if layout.density.framed else region.bottom - 1
    sheet.put_line(region.right - width_of(line) - 1, y, line)
    if scene.is_aimed(target):
        sheet.wash(*region, scene.ground(target))


def _strip(sheet: Sheet, scene: Scene, target: NewStage, region: Region) -> None:
    """A new stage between two others, in the width of the gap."""
    tint, aimed = scene.tint(target), scene.is_aimed(target)
    width = region.width
    for row in range(region.y, region.bottom):
        sheet.put(region.x, row, " " * width)
    top = region.y + region.height // 2 - 1
    sheet.put(region.x + width // 2, top, scene.glyphs.plus, f"{tint} strong" if aimed else tint)
    foretold = scene.foretold(target)
    if foretold and width_of(foretold) > width:
        foretold = foretold[:1]
    sheet.put_line(region.x + (width - width_of(foretold) + 1) // 2, top + 1, foretold)
    if aimed:
        sheet.wash(*region, scene.ground(target))
