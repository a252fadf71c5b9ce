"""`gpudeck status NAME`: 0 where it runs, 3 where it does not or waits to be tried again."""

import argparse
import time
from contextlib import suppress
from datetime import datetime
from functools import partial
from textwrap import shorten

from gpudeck.app import places
from gpudeck.app.access import key_for, refusal_of
from gpudeck.app.commands.common import box_if_read, known_engine, print_json, runner_for, told_command
from gpudeck.app.commands.drifted import drift_lines
from gpudeck.app.commands.engines import document, is_ready, shape
from gpudeck.app.commands.schedule import schedule_words
from gpudeck.app.commands.waiting import what_next
from gpudeck.services.engine.ending import status_words
from gpudeck.services.engine.phases import PhaseTracker
from gpudeck.services.engine.starts.kept import StartBook
from gpudeck.services.engine.starts.times import (
    left_words,
    present_for,
    seconds_left,
    seconds_words,
    times_of,
    times_words,
)
from gpudeck.services.engine.types import Runner, UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

_LINE = 300  # characters
_LAST_LINES = 5000  # of the log: more than one start writes


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the engine")
    parser.add_argument("--json", action="store_true", help="one JSON document, as in engines")


def run(args: argparse.Namespace) -> int:
    runner = runner_for(args)
    why: tuple[str, ...] = ()
    how: tuple[str, ...] = ()
    try:
        state = known_engine(runner, args.name)
        if not args.json and state.result not in ("", "success"):
            why = _why(args, runner, state)
        elif not args.json and state.runs:
            how = _how_far(runner, state)
        drifted = drift_lines(runner.drift(state.name)) if not args.json else []
        schedule = runner.schedule(state.name) if not args.json else None
        key = key_for(runner, state.name) if state.runs and not args.json else None
    finally:
        runner.close()
    if args.json:
        print_json(document(state))
    else:
        ready = " and answers" if is_ready(state) else ""
        refusal = refusal_of(state, key) if ready else ""
        ending = f", last ended with {status_words(state.exit_status)}" if state.exit_status is not None else ""
        print(f"{printable(state.name)} is {state.active} ({state.sub}){ready}{ending}")
        if state.since:
            print(f"  since   {datetime.fromtimestamp(state.since).astimezone():%Y-%m-%d %H:%M:%S %Z}")
        print(f"  unit    {printable(state.unit)} ({state.scope.value})")
        if state.main_pid:
            print(f"  pid     {state.main_pid}")
        if state.spec:
            print(f"  model   {printable(state.spec.model)}")
            print(f"  shape   {shape(state)} on cards {', '.join(map(str, state.spec.placement.gpus))}")
            print(f"  port    {state.spec.options.port}")
        if schedule:
            print(f"  clock   {schedule_words(schedule)}")
        if refusal:
            print(f"  key     {printable(refusal)}")
        for line in (*how, *why, *drifted):
            print(line)
        if following := what_next(state, partial(told_command, args)):
            print(f"  next    {following}")
    return 0 if state.runs and state.active != "deactivating" else 3


def _how_far(runner: Runner, state: UnitState) -> tuple[str, ...]:
    """The phases of the present start: what each took, where it is now, and what is left by earlier starts."""
    kept = StartBook(places.starts_home()).of(state)
    if (times := kept.present(state.since)) is not None:
        return (f"  start   {seconds_words(times.total)}: {times_words(times)}",)
    tracker = PhaseTracker()
    with suppress(OperatorError):
        for line in runner.history(state.name, _LAST_LINES):
            if line.at is None or state.since is None or line.at >= state.since - 1:
                tracker.feed(line.text, line.at)
    standing, now = tracker.standing, time.time()
    if not standing.phase.starting_up:
        return ()
    words = [times_words(times_of(standing, state.since))]
    lasts = present_for(standing, state.since, now)
    percent = f" {standing.percent} %" if standing.percent is not None else ""
    words.append(f"{standing.phase.value}{percent}{f' for {seconds_words(lasts)}' if lasts else ''}")
    words.append(left_words(seconds_left(standing, state.since, now, kept.times(state.spec))))
    return (f"  start   {', '.join(filter(None, words))}",)


def _why(args: argparse.Namespace, runner: Runner, state: UnitState) -> tuple[str, ...]:
    """What its log says of the failure; nothing where the log can not be read or tells nothing."""
    from gpudeck.services.diagnosis.reader import LogReader
    from gpudeck.services.diagnosis.types import Around
    from gpudeck.services.engine.program import free_port

    reader = LogReader()
    with suppress(OperatorError):
        reader.feed_all(line.text for line in runner.history(state.name, _LAST_LINES))
    host = state.spec.options.host if state.spec is not None else "127.0.0.1"
    found = reader.diagnoses(Around(box_if_read(args), state.spec, lambda port: free_port(port, host)))[:1]
    return tuple(
        f"  {word:7} {printable(text)}"
        for each in found
        for word, text in (
            ("why", shorten(each.line, _LINE, placeholder=" …")),
            ("", each.meaning),
            ("fix", each.fix or ""),
        )
        if text
    )
