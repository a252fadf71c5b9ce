"""What is on the board at one moment, for the painters."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpudeck.services.box.types import Box
from gpudeck.services.plan.dragging import Drag, NewStage, OnCard, Rank, Target
from gpudeck.services.plan.findings import GpuMemory, Judgement, VerdictState
from gpudeck.services.plan.types import Placement
from gpudeck.services.text import printable
from gpudeck.widgets.glyphs import Glyphs, card_name, tokens_in_short
from gpudeck.widgets.lines import Line
from gpudeck.widgets.verdict import STATE_STYLES


@dataclass(frozen=True, slots=True)
class Scene:
    """Frozen, so that a painter's page is decided by its scene and its size alone."""

    box: Box
    placement: Placement
    glyphs: Glyphs
    judgement: Judgement | None = None  # on the placement
    drag: Drag | None = None
    previews: Mapping[Target, Judgement] = field(default_factory=dict)  # of the drops judged so far
    chosen: int | None = None  # the card under the cursor
    focused: bool = False
    occupants: Mapping[int, str] = field(default_factory=dict)  # who else holds a card, in a few words

    shared: frozenset[int] = frozenset()  # of those, the cards that are shared on purpose

    @property
    def aim(self) -> Judgement | None:
        """What the targeted drop would make, where that is known."""
        if self.drag is None or self.drag.target is None:
            return None
        return self.previews.get(self.drag.target)

    def number(self, gpu: int) -> str:
        """A card's index and a blank, as wide as the box's widest."""
        widest = max((card.index for card in self.box.gpus), default=0)
        return f"{gpu:<{len(str(widest))}} "

    def name(self, gpu: int) -> str:
        card = self.box.gpu(gpu)
        return "not on this box" if card is None else card_name(printable(card.name))

    def memory(self, gpu: int) -> GpuMemory | None:
        """A card's memory under the targeted drop, else under the placement."""
        judgement = self.aim or self.judgement
        return None if judgement is None or judgement.memory is None else judgement.memory.gpu(gpu)

    def layers(self, stage: int) -> int | None:
        layers = None if self.judgement is None else self.judgement.layers
        return layers[stage] if layers is not None and stage < len(layers) else None

    def held(self, gpu: int) -> tuple[str, str]:
        """Who else holds or plans on a card, behind its sign, and the style for it; empty where nobody does."""
        words = self.occupants.get(gpu)
        if not words:
            return "", ""
        if gpu in self.shared:
            return f"{self.glyphs.swap} shared with {words}", "accent"
        return f"{self.glyphs.caution} {words}", "warning"

    def is_lifted(self, gpu: int) -> bool:
        return self.drag is not None and self.drag.gpu == gpu

    def is_chosen(self, gpu: int) -> bool:
        return self.focused and self.drag is None and self.chosen == gpu

    def is_aimed(self, target: Target) -> bool:
        return self.drag is not None and self.drag.target == target

    def foretold(self, target: Target, *, in_full: bool = False) -> Line:
        """What a drop on a target would make: `● 41k`, in full `● ready · 41k tokens`; empty until it was judged."""
        judgement = self.previews.get(target)
        return () if judgement is None else foretold(judgement, self.glyphs, in_full=in_full)

    def tint(self, target: Target) -> str:
        """The style of a target's frame: the verdict's while it is aimed at."""
        if not self.is_aimed(target):
            return "muted"
        judgement = self.previews.get(target)
        return "primary" if judgement is None else STATE_STYLES[judgement.state]

    def ground(self, target: Target) -> str:
        """The background of the target that is aimed at, in its verdict's colour."""
        judgement = self.previews.get(target)
        return "aim" if judgement is None else f"aim-{STATE_STYLES[judgement.state]}"


def foretold(judgement: Judgement, glyphs: Glyphs, *, in_full: bool = False) -> Line:
    """A judgement in a few cells: its sign, in full its word too, and the KV cache's tokens unless it is blocked."""
    style = STATE_STYLES[judgement.state]
    sign = glyphs.state(judgement.state)
    head: Line = ((f"{sign} {judgement.state.value}" if in_full else sign, style),)
    if judgement.memory is None or judgement.state is VerdictState.BLOCKED:
        return head
    tokens = tokens_in_short(judgement.memory.kv_cache_tokens)
    return (*head, (f" {glyphs.dot} {tokens} tokens" if in_full else f" {tokens}", "text"))


def target_words(target: Target | None) -> str:
    """Where a drop goes, in words: `stage 0, rank 2`."""
    if target is None:
        return "where it was"
    if isinstance(target, Rank):
        return f"stage {target.stage}, rank {target.place}"
    if isinstance(target, NewStage):
        return f"a new stage {target.position}"
    if isinstance(target, OnCard):
        return f"in exchange with card {target.gpu}"
    return "the pool"
