"""The line of a log that says why an engine failed, told from the wrappers that follow it."""

import re
from dataclasses import dataclass

from gpudeck.services.engine.loglines import LogParts

# What vLLM raises because something else was raised already (0.6 to 0.33): never the reason itself.
_WRAPPERS = re.compile(
    r"See root cause above|Engine core initialization failed|WorkerProc initialization failed|EngineDeadError"
    r"|Engine process failed to start|Worker failed with error '|Failed core proc\(s\)|EngineCore failed to start"
    r"|EngineCore (encountered a fatal error|hit an exception)|output_handler failed|Error in chat completion"
    r"|Error in completion|WorkerProc (failed to start|hit an exception)|Background loop (has errored|is stopped)"
    r"|Exception in worker |Error executing method|[Ss]hutdown|^Dumping (input data|scheduler)"
)
_ENDINGS = re.compile(r"^(SystemExit|KeyboardInterrupt|(\w+\.)*CancelledError|(\w+\.)*StopAsyncIteration)\b")
_EXCEPTION = re.compile(r"^(?P<name>[A-Za-z_]\w*(?:\.\w+)*)(?P<message>: .*|:?)$")
_CHAINED = re.compile(r"^(The above exception was the direct cause|During handling of the above exception)")
_VALIDATION = re.compile(r"ValidationError: \d+ validation errors? for ")
_USAGE = re.compile(r"^[\w./-]+(?: \w+)?: error: .+")
_SUDDEN_DEATH = re.compile(r"(died|exited) unexpectedly")
_FIELD = re.compile(r"[A-Za-z_][\w.]*")
# A panel is left open for weeks, and requests that fail must not fill its memory.
_WRITERS = 256  # processes whose tracebacks are told apart
_REASONS = 16


def is_wrapper(text: str) -> bool:
    """Whether a line (without its prefixes) only says that something else failed."""
    return bool(_WRAPPERS.search(text))


@dataclass(frozen=True, slots=True)
class DecisiveLine:
    text: str  # what it says, without the prefixes; foreign text
    number: int  # of the line in what was read, from 1
    writer: str  # "EngineCore", "Worker_TP0", "" for none


@dataclass(slots=True)
class _Writer:
    """Where one process stands in what it is printing."""

    inside: bool = False  # a traceback
    source: str = ""  # the last line of code that the traceback quoted
    chained: bool = False  # the next traceback explains the one before
    ignored: bool = False  # the next traceback is a destructor's
    reason: int | None = None  # the place of its last exception among the reasons
    unsaid: str = ""  # the exception whose message begins on the next line, indented
    field: str | None = None  # pydantic's next lines say what is wrong with this field; "" for the whole object


class FailureReader:
    """Feed every line of one run; `decisive` is then the first real reason.

    Of a chain of exceptions in one process the last says what it meant to the engine ("warming up sampler with 1024
    requests" after "CUDA out of memory"), of several processes the first was the cause.  Tracebacks that belong to
    requests are read too: whether the run failed at all is for `PhaseTracker` and the runner to say.
    """

    def __init__(self) -> None:
        self._writers: dict[tuple[str, int | None], _Writer] = {}
        self._reasons: list[DecisiveLine] = []
        self._fallback: DecisiveLine | None = None
        self.raised = False  # the line that was read last ends a traceback or refuses the command line

    @property
    def decisive(self) -> DecisiveLine | None:
        return self._reasons[0] if self._reasons else self._fallback

    def read(self, parts: LogParts, number: int) -> None:
        self.raised = False
        text, line = parts.text, DecisiveLine(parts.text, number, parts.writer)
        if parts.level in ("DEBUG", "INFO"):
            return
        if parts.level == "WARNING":
            if _SUDDEN_DEATH.search(text):
                self._fallback = self._fallback or line
            return
        writer = self._writer(parts)
        if writer.field is not None and self._validation_detail(writer, line):
            return
        if writer.unsaid and self._message_below(writer, line):
            return
        if text.startswith("Traceback (most recent call last)"):
            writer.inside, writer.source = True, ""
            if not writer.chained:
                writer.reason = None
            writer.chained = False
        elif writer.inside:
            self._inside(writer, line)
        elif _CHAINED.match(text):
            writer.chained = True
        elif text.startswith("Exception ignored in"):
            writer.ignored = True
        elif parts.level is None and _USAGE.match(text):
            self._keep(writer, line)
        elif parts.level in ("ERROR", "CRITICAL") and text.strip() and not _WRAPPERS.search(text):
            self._fallback = self._fallback or line

    def _writer(self, parts: LogParts) -> _Writer:
        writer = self._writers.setdefault((parts.writer, parts.pid), _Writer())
        if len(self._writers) > _WRITERS:
            self._writers.pop(next(iter(self._writers)))
        return writer

    def _inside(self, writer: _Writer, line: DecisiveLine) -> None:
        text = line.text
        if text.startswith(" ") or not text.strip():
            if text.strip(" ^~") and not text.lstrip().startswith('File "'):
                writer.source = text.strip()
            return
        found = _EXCEPTION.match(text)
        if found is None:
            return
        writer.inside = False
        if writer.ignored or _ENDINGS.match(text):
            writer.ignored = False
            return
        self.raised = True
        if _WRAPPERS.search(text):
            return
        if not found["message"].strip(": "):
            writer.unsaid = found["name"]
            if writer.source:
                line = DecisiveLine(f"{found['name']} ({writer.source})", line.number, line.writer)
        self._keep(writer, line)
        if _VALIDATION.search(text):
            writer.field = ""

    def _keep(self, writer: _Writer, reason: DecisiveLine) -> None:
        self.raised = True
        if writer.reason is not None:
            self._reasons[writer.reason] = reason
        elif len(self._reasons) < _REASONS:
            self._reasons.append(reason)
            writer.reason = len(self._reasons) - 1

    def _message_below(self, writer: _Writer, line: DecisiveLine) -> bool:
        """Some messages begin with a line's end ("RuntimeError: ", then a paragraph): its first line is taken."""
        if not line.text.strip():
            return True
        name, writer.unsaid = writer.unsaid, ""
        if not line.text.startswith("  "):
            return False
        if writer.reason is not None:
            said = f"{name}: {line.text.strip()}"
            self._reasons[writer.reason] = DecisiveLine(said, self._reasons[writer.reason].number, line.writer)
        return True

    def _validation_detail(self, writer: _Writer, line: DecisiveLine) -> bool:
        """pydantic prints the field (unless it is the whole object) and, indented, what is wrong with it."""
        if line.text.startswith("  "):
            said = line.text.strip().removeprefix("Value error, ").split(" [type=")[0]
            if writer.reason is not None:
                said = f"{writer.field}: {said}" if writer.field else said
                self._reasons[writer.reason] = DecisiveLine(said, line.number, line.writer)
            writer.field = None
            return True
        if _FIELD.fullmatch(line.text):
            writer.field = line.text
            return True
        writer.field = None
        return False
