"""`gpudeck bench [ENGINE …]`: a measured run; and what was measured before, beside each other."""

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from gpudeck.app import places
from gpudeck.app.commands.benching import aims_from, around, generator_for
from gpudeck.app.commands.common import POSITIVE, box_source, print_json, runner_for, told_command, whole
from gpudeck.app.commands.reaching import is_url
from gpudeck.services.bench.document import document
from gpudeck.services.bench.report import as_csv, as_markdown, comparison_lines, result_lines
from gpudeck.services.bench.run import Around, Bench, Step
from gpudeck.services.bench.store import keep, kept
from gpudeck.services.bench.types import Limits, Result, Workload
from gpudeck.services.bench.words import amount, duration
from gpudeck.services.errors import OperatorError

_DEFAULT = Workload()
_LIMITS = Limits()
_INTERVAL_S = 0.5  # between two readings of the cards
_MOST_AT_ONCE = 4096
_BAR = 24
_OF_EACH = "of each request (default: %(default)s)"
_INTERRUPTED = 130  # 128 + SIGINT, as a shell has it


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "engines", nargs="*", metavar="ENGINE|URL", help="which to load, together (default: the only one that runs)"
    )
    load = parser.add_argument_group("the load")
    load.add_argument("--input-tokens", type=POSITIVE, default=_DEFAULT.input_tokens, metavar="N", help=_OF_EACH)
    load.add_argument("--output-tokens", type=POSITIVE, default=_DEFAULT.output_tokens, metavar="N", help=_OF_EACH)
    load.add_argument(
        "--concurrency", type=_list_of(whole(1, _MOST_AT_ONCE, "number of requests at once")), metavar="1,4,16",
        help="requests at once, level by level (default: 1,4,16)",
    )  # fmt: skip
    load.add_argument(
        "--rate", type=_list_of(_rate), metavar="0.5,2", help="requests a second instead, whatever becomes of them"
    )
    load.add_argument("--requests", type=POSITIVE, metavar="N", help="of each level (default: three times as many)")
    load.add_argument("--seed", type=whole(0, 2**31, "seed"), default=0, metavar="N", help="of prompts and arrivals")
    load.add_argument("--model", metavar="NAME", help="the served name (default: the first that is served)")
    load.add_argument(
        "--load", choices=("auto", "vllm", "own"), default="auto",
        help="vllm bench serve of the engine's environment, gpudeck's own, or whichever there is",
    )  # fmt: skip
    limits = parser.add_argument_group("limits, for the time to the first token")
    limits.add_argument(
        "--first-token",
        type=_milliseconds,
        default=_LIMITS.first_token,
        metavar="MS",
        help="at most, in the middle (default: 200)",
    )
    limits.add_argument(
        "--p99",
        type=_milliseconds,
        default=_LIMITS.p99,
        metavar="MS",
        help="at most, at the 99th percentile (default: 1000)",
    )
    told = parser.add_argument_group("what is told")
    told.add_argument("--json", action="store_true", help="the result as one JSON document; with --results all of them")
    told.add_argument("--events", action="store_true", help="progress as JSON, a line each, for programs")
    told.add_argument("--results", action="store_true", help="run nothing: what was measured before, compared")
    told.add_argument(
        "--export", choices=("csv", "json", "md"), help="run nothing: what was measured before, as a file"
    )
    home = places.home_relative(str(places.bench_home(demo=False)))
    parser.epilog = f"Ctrl-C ends a run and keeps what has come.  Results are kept in {home}."


def run(args: argparse.Namespace) -> int:
    if args.concurrency and args.rate:
        raise OperatorError("--concurrency and --rate are two kinds of load: give one of them.")
    home = places.bench_home(demo=bool(args.demo))
    if args.results or args.export:
        return _told(args, home)
    runner = None if args.engines and all(map(is_url, args.engines)) else runner_for(args)
    try:
        aims = aims_from(args, runner, args.engines)
    finally:
        if runner is not None:
            runner.close()
    workload = Workload(
        args.input_tokens,
        args.output_tokens,
        tuple(args.concurrency or (() if args.rate else _DEFAULT.concurrency)),
        tuple(args.rate or ()),
        args.requests,
        args.seed,
        generator_for(aims, args.load),
    )
    here = around(args, aims, workload)
    tell = _event if args.events else _progress if sys.stderr.isatty() else _line
    bench = Bench(aims, workload, Limits(args.first_token, args.p99), here, tell)
    if not args.events:
        words = " and ".join(aim.name for aim in aims)
        print(f"{words}: {workload.words()}. Ctrl-C ends it and keeps what has come.", file=sys.stderr)
    result = _measured(args, bench, here)
    path = keep(result, home)
    if args.events:
        print(json.dumps({"kept": str(path)}), flush=True)
    elif args.json:
        print_json(document(result))
    else:
        print("\n".join(result_lines(result)))
        print(f"Kept as {places.home_relative(str(path))}; `{told_command(args, 'bench --results')}` compares.")
    if result.partial:
        return _INTERRUPTED
    return 0 if any(level.completed for level in result.levels) else 1


def _measured(args: argparse.Namespace, bench: Bench, here: Around) -> Result:
    """The run, cards read meanwhile; SIGINT and SIGTERM end it with what has come."""
    from gpudeck.services.box.sampler import Sampler
    from gpudeck.services.box.types import Demand, Snapshot

    meter = here.meter
    sampler = None
    if meter is not None:

        def deliver(outcome: Snapshot | OperatorError) -> None:
            if isinstance(outcome, Snapshot):
                meter.add(outcome)

        sampler = Sampler(box_source(args), deliver, _INTERVAL_S, demand=Demand.NOTHING)
        sampler.start()

    async def go() -> Result:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, bench.stop)
        return await bench.run()

    try:
        return asyncio.run(go())
    finally:
        if sampler is not None:
            sampler.stop()


def _told(args: argparse.Namespace, home: Path) -> int:
    results, troubles = kept(home)
    for trouble in troubles:
        print(f"gpudeck: {trouble}", file=sys.stderr)
    if args.export == "json" or (args.json and not args.export):
        print_json({"results": [document(result) for result in results]})
    elif args.export == "csv":
        sys.stdout.write(as_csv(results))
    elif args.export == "md":
        sys.stdout.write(as_markdown(results))
    elif results:
        print("\n".join(comparison_lines(results, plain=args.plain)))
    else:
        print(f"Nothing was measured here yet: `{told_command(args, 'bench ENGINE')}` does it.")
    return 0


def _event(step: Step) -> None:
    """One line for a program; the panel reads them."""
    finished = step.finished
    figures = None if finished is None else {"tokens_per_s": finished.tokens_per_s, "seconds": finished.seconds}
    print(
        json.dumps(
            {
                "place": step.place, "levels": step.levels, "level": step.level, "done": step.done,
                "wanted": step.wanted, "failed": step.failed, "finished": figures,
            }
        ),
        flush=True,
    )  # fmt: skip


def _progress(step: Step) -> None:
    """A bar that is drawn over, and a line that stays for a level that is over."""
    filled = round(_BAR * step.done / step.wanted) if step.wanted else 0
    failed = f", {step.failed} failed" if step.failed else ""
    bar = f"{'#' * filled}{'.' * (_BAR - filled)}"
    sys.stderr.write(f"\r\x1b[K{step.level:6g}  {bar}  {step.done}/{step.wanted}{failed}")
    if step.finished is not None:
        sys.stderr.write("\r\x1b[K")
        _line(step)
    sys.stderr.flush()


def _line(step: Step) -> None:
    if (level := step.finished) is not None:
        first = duration(level.first_token.p50) if level.first_token else "-"
        failed = f", {level.failed} of {level.wanted} failed" if level.failed else ""
        print(f"{step.level:6g}  {amount(level.tokens_per_s)} tokens/s, first token {first}{failed}", file=sys.stderr)


def _list_of(read: Callable[[str], float]) -> Callable[[str], Sequence[float]]:
    def each(text: str) -> Sequence[float]:
        values = [read(word) for word in text.split(",")]
        return list(dict.fromkeys(values))

    return each


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0.01 <= rate <= 10_000:
        raise argparse.ArgumentTypeError(f"{text} is no rate (requests a second, 0.01 to 10000)")
    return rate


def _milliseconds(text: str) -> float:
    return whole(1, 10**7, "number of milliseconds")(text) / 1000
