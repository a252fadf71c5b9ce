"""gpudeck box: the box now, once or every second; and its recording."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

from gpudeck.app.commands.common import box_source, print_json
from gpudeck.services.box.boxfile import save_box_file
from gpudeck.services.box.recording import Recording
from gpudeck.services.box.report import box_document
from gpudeck.services.box.reporttext import box_text
from gpudeck.services.box.sampler import Sampler, read_once
from gpudeck.services.box.types import BoxSource, Demand, Snapshot
from gpudeck.services.errors import OperatorError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document (with --watch one a line)")
    parser.add_argument("--record", metavar="FILE", help="write a box file; with --watch one that replays")
    parser.add_argument("--watch", action="store_true", help="every second, until Ctrl-C")


def run(args: argparse.Namespace) -> int:
    """Print the box; with --record, write the file at the end and say so on standard error."""
    source = box_source(args)
    if args.record and not os.access(Path(args.record).absolute().parent, os.W_OK):
        raise OperatorError(f"{args.record} can not be written: there is no such folder, or you may not write there.")
    snapshots = _watched(source) if args.watch else iter([read_once(source, Demand.ALL)])
    recording: Recording | None = None
    try:
        with suppress(KeyboardInterrupt):
            for snapshot in snapshots:
                if args.record:
                    if recording is None:
                        recording = Recording(snapshot)
                    else:
                        recording.add(snapshot)
                _print(snapshot, args)
                if recording is not None and recording.full:
                    break
    except BrokenPipeError:
        # The reader went away, as `| head` does.  Python would complain when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if recording is not None:
        save_box_file(Path(args.record), recording.file())
        print(f"Recorded to {args.record}; `gpudeck --box {args.record}` replays it.", file=sys.stderr)
    return 0


def _watched(source: BoxSource) -> Iterator[Snapshot]:
    """Snapshots at the beat until the process is interrupted or told to end.

    Raises OperatorError where the box can not be read to begin with; later failures are told and waited out.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    outcomes: SimpleQueue[Snapshot | OperatorError] = SimpleQueue()
    sampler = Sampler(source, outcomes.put)
    sampler.start()
    begun = False
    try:
        while True:
            outcome = outcomes.get()
            if isinstance(outcome, Snapshot):
                begun = True
                yield outcome
            elif not begun:
                raise outcome
            else:
                print(outcome, file=sys.stderr)
    finally:
        sampler.stop()


def _print(snapshot: Snapshot, args: argparse.Namespace) -> None:
    if args.json and args.watch:
        sys.stdout.write(json.dumps(box_document(snapshot)) + "\n")
    elif args.json:
        print_json(box_document(snapshot))
    elif args.watch and sys.stdout.isatty() and not args.plain:
        # Written over the picture before: from the top left, each line and what is below it cleared.
        text = box_text(snapshot).replace("\n", "\x1b[K\n")
        sys.stdout.write(f"\x1b[H{text}\x1b[J")
    else:
        sys.stdout.write(box_text(snapshot) + ("\n" if args.watch else ""))
    sys.stdout.flush()
