"""`gpudeck grafana`: a scrape config for Prometheus and a dashboard for Grafana."""

import argparse
import sys
from typing import TYPE_CHECKING

from gpudeck.app.commands.common import print_json, runner_for
from gpudeck.services.errors import OperatorError
from gpudeck.services.exporter.dashboard import dashboard, scrape_config

if TYPE_CHECKING:
    from gpudeck.services.engine.types import UnitState

_BOX = "127.0.0.1:9837"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["dashboard", "scrape-config"], help="what to print")


def run(args: argparse.Namespace) -> int:
    if args.what == "dashboard":
        print_json(dashboard())
    else:
        sys.stdout.write(scrape_config(_BOX, _addresses(args)))
    return 0


def _addresses(args: argparse.Namespace) -> dict[str, str]:
    """The engines that are known here; none where they can not be asked for."""
    try:
        runner = runner_for(args)
    except OperatorError as error:
        print(f"{error}  The engines are left out.", file=sys.stderr)
        return {}
    try:
        return {state.name: address for state in runner.engines() if (address := _address(state)) is not None}
    finally:
        runner.close()


def _address(state: "UnitState") -> str | None:
    return f"127.0.0.1:{state.spec.options.port}" if state.spec is not None else None
