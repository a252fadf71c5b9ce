"""What stop and restart share: requests in flight are told and drained, and Ctrl-C leaves a true sentence."""

import argparse
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from gpudeck.app.commands.common import whole
from gpudeck.services.engine.draining import DRAIN_SECONDS, InFlight, drain, in_flight, in_flight_words
from gpudeck.services.engine.types import UnitState
from gpudeck.services.text import printable

_INTERRUPTED = 130  # 128 + SIGINT, as a shell has it
_NO_MORE = "New ones still come in meanwhile: gpudeck can not turn them away."


def add_drain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--drain",
        nargs="?",
        type=whole(1, 86400, "number of seconds from 1 to 86400"),
        const=DRAIN_SECONDS,
        metavar="SECONDS",
        help=f"wait until no request is in flight, at most so long (default {DRAIN_SECONDS})",
    )


def see_requests_off(args: argparse.Namespace, state: UnitState) -> None:
    """Tell which requests are in flight, and wait for their end where that is wished."""
    name = printable(state.name)
    if not state.runs:
        return
    now = in_flight(state)
    if now is None:
        if args.drain is not None:
            print(f"{name} does not tell its requests in flight: there is nothing to wait for.")
        return
    if not now.any:
        return
    if args.drain is None:
        print(f"{_sentence(now)}: what is unfinished ends with {name}; --drain waits for it.", flush=True)
        return
    print(f"{_sentence(now)}; waiting until none is left, at most {args.drain} s. {_NO_MORE}", flush=True)
    with on_interrupt(f"Nothing was stopped: {name} goes on serving."):
        left = drain(lambda: in_flight(state), args.drain, _tell, threading.Event())
    if left is None:
        print(f"{name} does not tell its requests any more.")
    elif left.any:
        print(f"After {args.drain} s {in_flight_words(left)} still: what is unfinished ends now.")


def _tell(now: InFlight) -> None:
    print(f"  {in_flight_words(now)}", flush=True)


def _sentence(now: InFlight) -> str:
    words = in_flight_words(now)
    return f"{words[:1].upper()}{words[1:]}"


@contextmanager
def on_interrupt(sentence: str) -> Iterator[None]:
    """Where Ctrl-C ends what is done within, say what that left, and end as a shell has it."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"\n{sentence}", file=sys.stderr)
        raise SystemExit(_INTERRUPTED) from None
