"""What an operator does with a log: copy it, save it, look back at earlier starts and at why one died."""

import threading
import time
from functools import partial

from textual import on

from gpudeck.app import places
from gpudeck.app.deck_app import DeckApp
from gpudeck.app.messages import LogTold, StartRead, StartsArrived
from gpudeck.services.engine.starts.outcome import start_words
from gpudeck.services.engine.types import Runner, Start
from gpudeck.services.errors import OperatorError
from gpudeck.widgets.choice_list import ChoiceList
from gpudeck.widgets.log_buffer import MAX_LINES
from gpudeck.widgets.messages import LogCopyAsked, LogReasonAsked, LogSaveAsked, LogStartsAsked
from gpudeck.widgets.path_dialog import PathDialog

# What xterm, tmux and others take at once is 100,000 characters or more, of which base64 makes four of three.
_CLIPBOARD = 74_000
_BEFORE_REASON = 1_000  # lines shown before the one that says why, where not all can be shown


class LogActs(DeckApp):
    # -- copy and save

    @on(LogCopyAsked)
    def _copy_log(self, message: LogCopyAsked) -> None:
        text = message.text.encode("utf-8", "replace")[:_CLIPBOARD].decode("utf-8", "ignore")
        if not text:
            self.say("There is nothing to copy.", "warning")
            return
        self.copy_to_clipboard(text)
        count = len(text.splitlines())
        cut = ", cut where a clipboard over a terminal ends" if len(text) < len(message.text) else ""
        lines = "1 line" if count == 1 else f"{count:,} lines"
        self.say(f"Handed {lines} to your terminal's clipboard{cut}; a terminal that takes none (OSC 52) ignores that.")

    @on(LogSaveAsked)
    def _save_log(self, message: LogSaveAsked) -> None:
        text = message.text
        if not text:
            self.say("There is nothing to save.", "warning")
            return

        def answered(path: str | None) -> None:
            if path is not None:
                threading.Thread(target=partial(self._write_log, path, text), name="save-log", daemon=True).start()

        name = self.state.selected or "engine"
        offered = f"~/{name.replace('/', '-')}-{time.strftime('%Y%m%d-%H%M%S')}.log"
        note = f"The {text.count(chr(10)):,} lines that are held and pass the filter."
        self.push_screen(PathDialog("Save the log", offered, note, glyphs=self.glyphs), answered)

    def _write_log(self, path: str, text: str) -> None:
        from gpudeck.services.engine.savedlog import save

        try:
            file = save(path, text)
        except OperatorError as error:
            self.post_message(LogTold(str(error), failed=True))
        else:
            self.post_message(LogTold(f"The log is in {places.home_relative(str(file))}."))

    @on(LogTold)
    def _told(self, message: LogTold) -> None:
        self.say(message.sentence, "error" if message.failed else "information")

    # -- earlier starts

    @on(LogStartsAsked)
    def _look_back(self) -> None:
        name = self.state.selected
        if name is not None:
            self.engine_desk.ask(f"starts-{name}", lambda runner: StartsArrived(name, runner.starts(name)), _failed)

    @on(StartsArrived)
    def _starts_arrived(self, message: StartsArrived) -> None:
        name, starts = message.name, message.starts
        engine = self.state.engines.get(name)
        if not starts or engine is None:
            self.say(f"Nothing is kept of earlier starts of {name}.", "warning")
            return

        runs = engine.unit.runs

        def answered(place: int | None) -> None:
            if place == 0 and runs:
                self.deck.log_pane.show_present()
            elif place is not None:
                self.engine_desk.ask(f"start-of-{name}", partial(_read, name, starts[place]), _failed)

        lines = [start_words(start, runs=runs and place == 0) for place, start in enumerate(starts)]
        note = "Newest first, as far as the log is kept."
        self.push_screen(ChoiceList(f"Starts of {name}", note, lines, act="show its log", glyphs=self.glyphs), answered)

    @on(LogReasonAsked)
    def _last_failure(self) -> None:
        """Show why the last start died that did not end as it should."""
        name = self.state.selected
        if name is not None:
            self.engine_desk.ask(f"failure-of-{name}", partial(_read_last_failure, name), _failed)

    @on(StartRead)
    def _start_read(self, message: StartRead) -> None:
        if message.name != self.state.selected:
            return
        found = message.diagnosis
        self.deck.log_pane.show_start(start_words(message.start, runs=False), message.lines, message.reason)
        if found is not None:
            self.say(f"{found.meaning} {found.fix or ''}".rstrip())
        elif message.start.failed:
            self.say("Its log does not say why it ended.", "warning")


def _read(name: str, start: Start, runner: Runner) -> StartRead:
    """Read and diagnose the log of a start; blocks."""
    from gpudeck.services.diagnosis.reader import LogReader

    lines = runner.log_of(name, start)
    reader = LogReader()
    reader.feed_all(line.text for line in lines)
    found = reader.diagnoses() if start.failed else ()
    reason = found[0].line_number - 1 if found else None
    begin = beginning(len(lines), reason, MAX_LINES)
    shown = lines[begin : begin + MAX_LINES]
    return StartRead(name, start, shown, found[0] if found else None, None if reason is None else reason - begin)


def beginning(count: int, reason: int | None, most: int) -> int:
    """With which of `count` lines to begin where `most` can be shown: its end, unless the reason stands before that."""
    end = max(0, count - most)
    return end if reason is None else min(end, max(0, reason - _BEFORE_REASON))


def _read_last_failure(name: str, runner: Runner) -> StartRead:
    start = next((start for start in runner.starts(name) if start.failed), None)
    if start is None:
        raise OperatorError(f"No start of {name} that the log still holds died.")
    return _read(name, start, runner)


def _failed(sentence: str) -> LogTold:
    return LogTold(sentence, failed=True)
