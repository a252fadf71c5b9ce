"""What each drop of a lifted card would make, judged ahead of the pointer and a little at a time."""

from collections.abc import Callable, Iterator

from gpudeck.services.plan.dragging import Drag, Target, land
from gpudeck.services.plan.findings import Judgement
from gpudeck.services.plan.types import Placement

Judge = Callable[[Placement], Judgement]

REMEMBERED = 2048  # judgements; a drag over sixteen cards asks for fifty at most


class Previews:
    """Judgements by placement, remembered as long as the same judge holds.

    A judge is a pure function that takes up to some milliseconds, so a lift can not wait for all of its targets: the
    one aimed at is judged at once, the others by `advance`, a few at a time.
    """

    def __init__(self) -> None:
        self._judge: Judge | None = None
        self._known: dict[Placement, Judgement] = {}
        self._todo: Iterator[tuple[Target, Placement]] = iter(())
        self.by_target: dict[Target, Judgement] = {}

    @property
    def judge(self) -> Judge | None:
        return self._judge

    @judge.setter
    def judge(self, judge: Judge | None) -> None:
        """Another judge (another model, other options, other readings) knows nothing yet."""
        self._judge = judge
        self._known.clear()

    def of(self, placement: Placement) -> Judgement | None:
        """The judgement on a placement; None without a judge."""
        if self._judge is None:
            return None
        known = self._known.get(placement)
        if known is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            known = self._known[placement] = self._judge(placement)
        return known

    def begin(self, drag: Drag | None) -> None:
        """Start over for another lift; None forgets the targets."""
        self.by_target = {}
        targets = () if drag is None else drag.targets()
        self._todo = iter([(target, land(drag.placement, drag.gpu, target)) for target in targets] if drag else ())

    def aim(self, drag: Drag) -> Judgement | None:
        """The judgement on the drop that is aimed at, now."""
        judgement = self.of(drag.drop())
        if judgement is not None and drag.target is not None:
            self.by_target[drag.target] = judgement
        return judgement

    def advance(self, count: int) -> bool:
        """Judge the next `count` targets; False once all are done."""
        if self._judge is None:
            return False
        for _ in range(count):
            target, placement = next(self._todo, (None, None))
            if target is None or placement is None:
                return False
            judgement = self.of(placement)
            if judgement is not None:
                self.by_target[target] = judgement
        return True
