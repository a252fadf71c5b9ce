"""The plans on the board: engines that may not exist yet, one of them in hand."""

from dataclasses import dataclass, field, replace

from gpudeck.app.programs import EngineProgram
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.placing import put_in_pool
from gpudeck.services.plan.secrets import Secrets
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement


@dataclass(frozen=True, slots=True)
class Draft:
    """One plan: an engine that may not exist yet."""

    name: str = ""
    model: ModelFacts | None = None
    placement: Placement = field(default_factory=Placement)
    options: EngineOptions = field(default_factory=EngineOptions)
    layer_partition: tuple[int, ...] | None = None
    environment: tuple[tuple[str, str], ...] = ()  # variables of this engine alone, beside its program's
    shared_gpus: frozenset[int] = frozenset()  # cards that the operator shares with other engines on purpose
    user: str | None = None  # the account that its unit is to run as
    secrets: Secrets = field(default_factory=Secrets, repr=False)  # keys that its next installation writes
    cautious: bool = True  # its options are, or will be, those of a first start (services/plan/preset.py)
    key: int = 0  # tells plans apart while names, models and cards change

    @property
    def empty(self) -> bool:
        return self.model is None and not self.placement.gpus

    def spec(self, program: EngineProgram) -> EngineSpec:
        """The spec that starting this draft would install."""
        return EngineSpec(
            name=self.name,
            model=self.model.path if self.model else "",
            placement=self.placement,
            options=self.options,
            layer_partition=self.layer_partition,
            program=program.words,
            environment=(*program.environment, *self.environment),
            shared_gpus=tuple(sorted(self.shared_gpus & frozenset(self.placement.gpus))),
            user=self.user,
            quiet=program.quiet,
        )


@dataclass(frozen=True, slots=True)
class Drafts:
    """All plans in their order; `present` is the one on the board.  There is always one."""

    present: Draft = field(default_factory=Draft)
    before: tuple[Draft, ...] = ()
    after: tuple[Draft, ...] = ()

    @property
    def all(self) -> tuple[Draft, ...]:
        return (*self.before, self.present, *self.after)

    @property
    def others(self) -> tuple[Draft, ...]:
        return (*self.before, *self.after)

    @property
    def place(self) -> int:
        """Where the present one stands among all, from 0."""
        return len(self.before)

    def changed(self, draft: Draft) -> "Drafts":
        return replace(self, present=draft)

    def turned(self, place: int) -> "Drafts":
        """Another one is the present; places are counted round."""
        drafts = self.all
        return _at(drafts, place % len(drafts))

    def added(self, draft: Draft) -> "Drafts":
        """A new plan at the end becomes the present one, under a key of its own."""
        drafts = (*self.all, replace(draft, key=1 + max(other.key for other in self.all)))
        return _at(drafts, len(drafts) - 1)

    def without_present(self) -> "Drafts":
        """The present plan is gone; after the last one an empty plan stands there."""
        others = self.others
        if not others:
            return Drafts(Draft(key=self.present.key + 1))
        return _at(others, min(self.place, len(others) - 1))

    def only_on(self, cards: frozenset[int]) -> "Drafts":
        """The plans without cards other than these."""

        def kept(draft: Draft) -> Draft:
            placement = draft.placement
            for gpu in placement.gpus:
                if gpu not in cards:
                    placement = put_in_pool(placement, gpu)
            if placement == draft.placement:
                return draft
            return replace(draft, placement=placement, layer_partition=None)

        return Drafts(kept(self.present), tuple(map(kept, self.before)), tuple(map(kept, self.after)))

    def names(self) -> frozenset[str]:
        """What the others are called."""
        return frozenset(draft.name for draft in self.others if draft.name)


def _at(drafts: tuple[Draft, ...], place: int) -> Drafts:
    return Drafts(drafts[place], drafts[:place], drafts[place + 1 :])
