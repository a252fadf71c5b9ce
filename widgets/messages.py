"""What widgets tell the app: a person's wish, as data.  Nothing here acts."""

from textual.geometry import Offset
from textual.message import Message

from gpudeck.services.box.types import Demand
from gpudeck.services.plan.findings import Finding, Judgement
from gpudeck.services.plan.types import Placement


class PlacementChanged(Message):
    """The operator changed the placement on the board: a drop, undo, redo, or other copies."""

    def __init__(self, placement: Placement) -> None:
        super().__init__()
        self.placement = placement


class PlacementPreviewed(Message):
    """A lifted card hovers over a target: what a drop would make.  None of both once the card is down again."""

    def __init__(self, placement: Placement | None, judgement: Judgement | None) -> None:
        super().__init__()
        self.placement = placement
        self.judgement = judgement


class ModelPicked(Message):
    """The operator picked a model: a path or a hub id, which may not be one."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path


class Refused(Message):
    """What the operator asked for can not be done; the sentence says why, and the way out."""

    def __init__(self, sentence: str) -> None:
        super().__init__()
        self.sentence = sentence


class ObjectiveAsked(Message):
    """Proposals are wanted for this: "context", "concurrency", "latency"."""

    def __init__(self, objective: str) -> None:
        super().__init__()
        self.objective = objective


class FixAsked(Message):
    """The operator wants done what a finding says."""

    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self.finding = finding


class PlanChosen(Message):
    """A click on a plan of the strip: its place, from 0."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place


class CardShared(Message):
    """The operator wants a card shared with other engines, or no longer."""

    def __init__(self, gpu: int) -> None:
        super().__init__()
        self.gpu = gpu


class CardChosen(Message):
    """Space or Enter on a card of the box, or a click on the chosen one: take it to the board."""

    def __init__(self, gpu: int) -> None:
        super().__init__()
        self.gpu = gpu


class CardDragged(Message):
    """A card of the box is being dragged with the mouse, which is at a point of the screen: the board takes it over."""

    def __init__(self, gpu: int, pointer: Offset) -> None:
        super().__init__()
        self.gpu = gpu
        self.pointer = pointer


class LogSearchAsked(Message):
    """The operator wants to type a search (from LogView to its pane)."""


class HostLooked(Message):
    """The machine's own figures have come into view, or left it."""

    def __init__(self, seen: bool) -> None:
        super().__init__()
        self.seen = seen


class EnginesLooked(Message):
    """The list of engines has come into view, or left it."""

    def __init__(self, seen: bool) -> None:
        super().__init__()
        self.seen = seen


class DemandChanged(Message):
    """What a view shows beyond what is always read has changed, or it has come into view or left it."""

    def __init__(self, view: str, demand: Demand) -> None:
        super().__init__()
        self.view = view
        self.demand = demand


class CardHighlighted(Message):
    """The cursor of the cards stands on this card now."""

    def __init__(self, gpu: int) -> None:
        super().__init__()
        self.gpu = gpu


class DetailAsked(Message):
    """The operator wants all that is known of the chosen card, or no longer."""


class LogChanged(Message):
    """What the log's frame says may have changed (from LogView to its pane)."""


class LogCopyAsked(Message):
    """These lines of the log are wanted in the terminal's clipboard; control characters are written out."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class LogSaveAsked(Message):
    """These lines of the log are wanted in a file; control characters are written out."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class LogStartsAsked(Message):
    """The operator wants to choose one of the engine's earlier starts."""


class LogReasonAsked(Message):
    """The operator wants to see why the engine died, which the log in view does not tell."""


class ChatSubmitted(Message):
    """A message to the engine, as it was typed; it takes the place of the last `back` questions."""

    def __init__(self, text: str, back: int = 0) -> None:
        super().__init__()
        self.text = text
        self.back = back


class ChatUnready(Message):
    """Enter in the chat while there is nobody who answers; what was typed stays."""


class ChatCancelled(Message):
    """The answer that is coming, or the question that was being edited, is no longer wanted."""


class AnswerAskedAnew(Message):
    """The operator wants another answer to the last question."""


class QuestionEditAsked(Message):
    """The operator wants to change an earlier question: the last one is 1 back."""

    def __init__(self, back: int) -> None:
        super().__init__()
        self.back = back


class ChatSettingsAsked(Message):
    """The operator wants to see and change how the engine is asked."""


class ChatSaveAsked(Message):
    """The operator wants the conversation in a file."""


class ChatLoadAsked(Message):
    """The operator wants to go on from a conversation that a file holds."""


class EngineHighlighted(Message):
    """The cursor of the engine list stands on this engine now."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class UnitAsked(Message):
    """The operator wants to see what there is to be said of the engine's unit."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class EngineFixAsked(Message):
    """The operator wants the failed engine's plan on the board, with what mends its failure."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class EngineSelected(Message):
    """Enter on an engine, or a click on the one that the cursor stands on."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class CheckAsked(Message):
    """The operator wants the engine asked the canned prompts (again)."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class WalkAsked(Message):
    """The operator wants the engine's unit reloaded, restarted and checked in one run."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class CurlAsked(Message):
    """The operator wants this command in the clipboard; "" where it is not known yet."""

    def __init__(self, line: str) -> None:
        super().__init__()
        self.line = line


class BenchAsked(Message):
    """The operator wants engines measured; `words` are those of `gpudeck bench`."""

    def __init__(self, words: tuple[str, ...]) -> None:
        super().__init__()
        self.words = words


class BenchStopAsked(Message):
    """The run that is under way is no longer wanted; what has come is."""


class ExportAsked(Message):
    """The operator wants what was measured as files."""
