"""`gpudeck status NAME`: 0 where it runs, 3 where it does not."""

import argparse
from datetime import datetime

from gpudeck.app.commands.common import known_engine, print_json, runner_for
from gpudeck.app.commands.engines import document, is_ready, shape
from gpudeck.services.text import printable


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the engine")
    parser.add_argument("--json", action="store_true", help="one JSON document, as in engines")


def run(args: argparse.Namespace) -> int:
    runner = runner_for(args)
    try:
        state = known_engine(runner, args.name)
    finally:
        runner.close()
    if args.json:
        print_json(document(state))
    else:
        ready = " and answers" if is_ready(state) else ""
        ending = f", last exit status {state.exit_status}" if state.exit_status is not None else ""
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
    return 0 if state.active in ("active", "activating", "reloading") else 3
