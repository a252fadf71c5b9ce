"""What arrives at the panel from its feeds and desks.  What a person does arrives as gpudeck.widgets.messages."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from textual.message import Message

from gpudeck.app.grounds import Grounds
from gpudeck.app.offers import Offer, Question
from gpudeck.services.diagnosis.types import Diagnosis
from gpudeck.services.engine.draining import InFlight
from gpudeck.services.engine.drift import Drift
from gpudeck.services.engine.starts.kept import Kept
from gpudeck.services.engine.starts.standstill import Check
from gpudeck.services.engine.types import LogLine, Start, UnitPreview, UnitState
from gpudeck.services.models.types import ModelFacts, ShelfEntry
from gpudeck.services.plan.fit import Fit
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.vllm.answer import Answer

if TYPE_CHECKING:
    from gpudeck.services.adoption.on_runner import Reviewed  # more than the first frame needs
    from gpudeck.services.bench.types import Result


class BoxArrived(Message):
    """A new snapshot, or trouble, lies in the box feed's slot."""


class HostArrived(Message):
    """A new reading of the machine lies in the host feed's slot."""


class RunnerOpened(Message):
    """Engines can be run: `description` says by whom."""

    def __init__(self, description: str) -> None:
        self.description = description
        super().__init__()


class RunnerFailed(Message):
    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        super().__init__()


class UnitsArrived(Message):
    """All engines that there are."""

    def __init__(self, units: tuple[UnitState, ...]) -> None:
        self.units = units
        super().__init__()


class UnitChanged(Message):
    def __init__(self, unit: UnitState) -> None:
        self.unit = unit
        super().__init__()


class ActBegan(Message):
    """The panel began to do something to an engine: `doing` is a word like "stopping"."""

    def __init__(self, name: str, doing: str) -> None:
        self.name = name
        self.doing = doing
        super().__init__()


class ActEnded(Message):
    """It is done, or `failure` says in one sentence why not."""

    def __init__(self, name: str, doing: str, failure: str | None) -> None:
        self.name = name
        self.doing = doing
        self.failure = failure
        super().__init__()


class StartsRead(Message):
    """What is kept of the engine's starts."""

    def __init__(self, name: str, kept: Kept) -> None:
        self.name = name
        self.kept = kept
        super().__init__()


class StartChecked(Message):
    """A start that stands still was looked at; `run` is its main process."""

    def __init__(self, name: str, run: int | None, checks: tuple[Check, ...]) -> None:
        self.name = name
        self.run = run
        self.checks = checks
        super().__init__()


class RequestsCounted(Message):
    """How many requests an engine has in flight; None where it does not tell."""

    def __init__(self, name: str, now: InFlight | None) -> None:
        self.name = name
        self.now = now
        super().__init__()


class UnitsDrifted(Message):
    """How far units are from what is loaded, written and run, by engine."""

    def __init__(self, found: Mapping[str, tuple[Drift, ...]]) -> None:
        self.found = found
        super().__init__()


class UnitsReviewed(Message):
    """The units of others, read and judged."""

    def __init__(self, found: "tuple[Reviewed, ...]") -> None:
        self.found = found
        super().__init__()


class PreviewArrived(Message):
    """What installing the spec would write; `failure` where that can not be told."""

    def __init__(self, spec: EngineSpec, preview: UnitPreview | None, failure: str | None = None) -> None:
        self.spec = spec
        self.preview = preview
        self.failure = failure
        super().__init__()


class LogsArrived(Message):
    """Lines of an engine's log wait to be taken."""


class StartsArrived(Message):
    """The starts of an engine that its log still holds, newest first."""

    def __init__(self, name: str, starts: tuple[Start, ...]) -> None:
        self.name = name
        self.starts = starts
        super().__init__()


class StartRead(Message):
    """What was logged of one start; where it is known why it died, `reason` is the place of that line in `lines`."""

    def __init__(
        self, name: str, start: Start, lines: list[LogLine], diagnosis: Diagnosis | None, reason: int | None
    ) -> None:
        self.name = name
        self.start = start
        self.lines = lines
        self.diagnosis = diagnosis
        self.reason = reason
        super().__init__()


class LogTold(Message):
    """One sentence on what was asked of the log."""

    def __init__(self, sentence: str, *, failed: bool = False) -> None:
        self.sentence = sentence
        self.failed = failed
        super().__init__()


class ModelRead(Message):
    """What a model is, or why that can not be read; `spec` is the engine that it was read for, None for a new plan."""

    def __init__(
        self, path: str, model: ModelFacts | None, failure: str | None = None, *, spec: EngineSpec | None = None
    ) -> None:
        self.path = path
        self.model = model
        self.failure = failure
        self.spec = spec
        super().__init__()


class GroundsLearned(Message):
    """Something that verdicts rest on is known now; `step` adds it to what was known."""

    def __init__(self, step: Callable[[Grounds], Grounds]) -> None:
        self.step = step
        super().__init__()


class ModelsWeighed(Message):
    """How a model of the shelf fits the box now."""

    def __init__(self, path: str, fit: Fit) -> None:
        self.path = path
        self.fit = fit
        super().__init__()


class ProposalsArrived(Message):
    """Placements for a question, best first; where there are none, `refusal` says why in a sentence."""

    def __init__(self, question: Question, offers: tuple[Offer, ...], refusal: str) -> None:
        self.question = question
        self.offers = offers
        self.refusal = refusal
        super().__init__()


class ShelfSearched(Message):
    """What lies on the shelf; `failure` where it can not be looked at."""

    def __init__(self, entries: tuple[ShelfEntry, ...], failure: str | None = None) -> None:
        self.entries = entries
        self.failure = failure
        super().__init__()


class VllmAnswered(Message):
    """The installed vLLM said what it thinks of a spec."""

    def __init__(self, spec: EngineSpec, answer: Answer) -> None:
        self.spec = spec
        self.answer = answer
        super().__init__()


class BenchStepped(Message):
    """How far a measured run is, as `gpudeck bench --events` tells it."""

    def __init__(self, step: Mapping[str, Any]) -> None:
        self.step = step
        super().__init__()


class BenchEnded(Message):
    """A measured run is over: `kept` is its file, "" with a `failure` in a sentence."""

    def __init__(self, kept: str, failure: str) -> None:
        self.kept = kept
        self.failure = failure
        super().__init__()


class ResultsArrived(Message):
    """Every result that is kept, oldest first, and a sentence for each file that is none."""

    def __init__(self, results: "tuple[Result, ...]", troubles: tuple[str, ...]) -> None:
        self.results = results
        self.troubles = troubles
        super().__init__()
