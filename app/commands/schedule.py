"""`gpudeck schedule NAME [WHEN]`: have an engine restarted by the clock."""

import argparse
from datetime import datetime

from gpudeck.app.commands.common import known_engine, runner_for, told_command
from gpudeck.app.commands.confirm import confirmed
from gpudeck.app.commands.reloading import risk_of_reload
from gpudeck.services.engine.schedule import timer_of
from gpudeck.services.engine.systemd.calendar import check_calendar
from gpudeck.services.engine.types import Schedule, Scope
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the engine")
    parser.add_argument(
        "when",
        nargs="?",
        metavar="WHEN",
        help='"Sun 04:00", "daily", as systemd.time(7) has it; none: show it',
    )
    parser.add_argument("--off", action="store_true", help="restart it by the clock no more")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.epilog = "An engine that does not run then is left alone.  The timer goes when the engine is removed."


def run(args: argparse.Namespace) -> int:
    if args.off and args.when is not None:
        raise OperatorError("WHEN and --off are two wishes: give one of them.")
    runner = runner_for(args)
    try:
        state = known_engine(runner, args.name)
        name, timer = printable(state.name), timer_of(state.unit)
        before = runner.schedule(state.name)
        if args.when is None and (before is None or not args.off):
            print(f"{name} is {schedule_words(before) if before else 'not restarted by the clock'}.")
            return 0
        if args.when is not None and state.scope is not Scope.EMBEDDED:
            check_calendar(args.when)
        does = f"deletes {timer}" if args.off else f"writes {timer} and starts it"
        told = f"This {does}. {risk_of_reload(args, state.scope)}".rstrip()
        if not confirmed(told, yes=args.yes):
            return 1
        after = runner.set_schedule(state.name, None if args.off else args.when)
        if after is None:
            print(f"{name} is restarted by the clock no more.")
        else:
            off = told_command(args, f"schedule {name} --off")
            print(f"{name} is {schedule_words(after)}; `{off}` ends that.")
    finally:
        runner.close()
    return 0


def schedule_words(schedule: Schedule) -> str:
    """`restarted by the clock (Sun 04:00), next on 2026-12-06 04:00:00 UTC`."""
    told = f"restarted by the clock ({printable(schedule.when)})"
    if schedule.next_at is None:
        return f"{told}, but its timer does not run"
    return f"{told}, next on {datetime.fromtimestamp(schedule.next_at).astimezone():%Y-%m-%d %H:%M:%S %Z}"
