"""`gpudeck check [ENGINE]`: the canned prompts, and whether every card did its part meanwhile."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from gpudeck.app.commands.common import (
    box_source,
    known_engine,
    print_json,
    read_box,
    runner_for,
    told_command,
)
from gpudeck.app.commands.confirm import confirmed
from gpudeck.app.commands.reaching import Reached, is_url, reached
from gpudeck.services.check.curl import curl_line
from gpudeck.services.check.report import document
from gpudeck.services.check.run import Check, Local, present_log
from gpudeck.services.check.types import Item, Outcome, passed
from gpudeck.services.errors import OperatorError
from gpudeck.services.http.client import VllmClient
from gpudeck.services.plan.secrets import API_KEY

if TYPE_CHECKING:
    from gpudeck.services.engine.types import Runner

_INTERVAL_S = 0.25  # between two readings of the cards
_SIGNS = {Outcome.PASSED: "ok", Outcome.FAILED: "FAIL", Outcome.NOTE: "note", Outcome.SKIPPED: "skip"}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("engine", nargs="?", metavar="ENGINE", help="its name (default: the only one that runs)")
    parser.add_argument("--url", metavar="URL", help="an engine elsewhere, http://host:port: prompts only")
    parser.add_argument(
        "--restart",
        action="store_true",
        help="walk the whole road: unit, reload where it changed, restart, log until it is ready, and the list",
    )
    parser.add_argument("--yes", action="store_true", help="with --restart: do not ask")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.epilog = (
        "0: nothing failed; 1: something did.  Notes and what could not be looked at are no failures.  "
        "An engine of this box gets its own API key where that can be read, others the one in VLLM_API_KEY."
    )


def run(args: argparse.Namespace) -> int:
    if args.engine is not None and args.url is not None:
        raise OperatorError("ENGINE and --url are two engines: give one of them.")
    url = args.url or (args.engine if args.engine is not None and is_url(args.engine) else None)
    show: Callable[[Item], None] = (lambda _item: None) if args.json else _show
    if url is not None:
        if args.restart:
            raise OperatorError("--restart is for engines of this machine: give its name.")
        return _told(args, url, *asyncio.run(_checked(url, os.environ.get(API_KEY), None, show)))
    runner = runner_for(args)
    try:
        steps: list[Item] = []
        if args.restart:
            with redirect_stdout(sys.stderr if args.json else sys.stdout):
                road = _walk(args, runner, show)
            if road is None:
                return 1
            steps = road
        engine = reached(args, runner, args.engine)
        items, model = _check_here(args, runner, engine, show)
        return _told(args, engine.url, (*steps, *items), model)
    finally:
        runner.close()


def _walk(args: argparse.Namespace, runner: "Runner", show: Callable[[Item], None]) -> list[Item] | None:
    """Unit, reload, restart, log: up to a ready engine.  None where the operator says no."""
    from gpudeck.app.commands.drifted import drift_lines
    from gpudeck.app.commands.reloading import risk_of_reload
    from gpudeck.app.commands.waiting import wait_ready
    from gpudeck.services.check.road import plan_words, walk
    from gpudeck.services.engine.drift import DriftKind
    from gpudeck.services.engine.listening import port_trouble

    if args.engine is None:
        raise OperatorError("--restart needs the name of the engine.")
    state = known_engine(runner, args.engine)
    if taken := port_trouble(state.spec, state):
        raise OperatorError(taken)
    drift = runner.drift(state.name)
    for line in drift_lines(drift):
        print(line)
    reloads = any(each.kind is DriftKind.ON_DISK for each in drift)
    risk = risk_of_reload(args, state.scope) if reloads else ""
    if not confirmed(f"{risk} {plan_words(state.name, drift)}".strip(), yes=args.yes):
        return None
    steps: list[Item] = []

    def tell(item: Item) -> None:
        steps.append(item)
        show(item)

    walk(runner, state.name, tell)
    if wait_ready(args, runner, state.name) != 0:
        return None
    tell(Item("ready", "ready, by its log and its port", Outcome.PASSED))
    return steps


def _check_here(
    args: argparse.Namespace, runner: "Runner", engine: Reached, show: Callable[[Item], None]
) -> tuple[tuple[Item, ...], str]:
    """Check an engine of this machine, its cards read meanwhile."""
    from gpudeck.services.box.sampler import Sampler
    from gpudeck.services.box.types import Demand, Snapshot

    local = Local(engine.spec, present_log(runner, engine.state.name))
    try:
        local.before = read_box(args)
    except OperatorError as error:
        local.trouble = str(error)

    def deliver(outcome: Snapshot | OperatorError) -> None:
        if isinstance(outcome, Snapshot):
            local.during.append(outcome)
        else:
            local.trouble = str(outcome)

    sampler = None
    if local.trouble is None:
        sampler = Sampler(box_source(args), deliver, _INTERVAL_S, demand=Demand.NOTHING)
        sampler.start()
    try:
        return asyncio.run(_checked(engine.url, engine.key, local, show))
    finally:
        if sampler is not None:
            sampler.stop()


async def _checked(
    url: str, key: str | None, local: Local | None, show: Callable[[Item], None]
) -> tuple[tuple[Item, ...], str]:
    """The list, and the model that was asked."""
    items = []
    async with VllmClient(url, key) as client:
        run = Check(client, local)
        async for item in run.items():
            show(item)
            items.append(item)
    return tuple(items), run.model


def _told(args: argparse.Namespace, url: str, items: tuple[Item, ...], model: str) -> int:
    good = passed(items)
    line = curl_line(url, model)
    if args.json:
        print_json(document(url, items, line))
        return 0 if good else 1
    failed = sum(item.outcome is Outcome.FAILED for item in items)
    print(f"{'All of it holds.' if good else f'{failed} failed.'}  By hand:\n  {line}")
    if not good and args.engine is not None and not is_url(args.engine):
        print(f"`{told_command(args, f'diagnose --engine {args.engine}')}` reads its log for known failures.")
    return 0 if good else 1


def _show(item: Item) -> None:
    print(f"{_SIGNS[item.outcome]:4}  {item.title}{': ' if item.words else ''}{item.words}", flush=True)
