"""`gpudeck engines`: every engine on the box."""

import argparse
from datetime import datetime, timezone

from gpudeck.app.commands.common import print_json, runner_for, told_command
from gpudeck.services.engine.types import UnitState
from gpudeck.services.text import printable

_COLUMNS = ("NAME", "STATE", "PORT", "SHAPE", "CARDS", "PID", "SCOPE", "MODEL")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(args: argparse.Namespace) -> int:
    runner = runner_for(args)
    try:
        states = sorted(runner.engines(), key=lambda state: state.name)
    finally:
        runner.close()
    if args.json:
        print_json({"engines": [document(state) for state in states]})
    elif states:
        print(table([_COLUMNS, *(_row(state) for state in states)]))
    else:
        print(f"No engines here yet: {told_command(args, 'install MODEL --stage 0')} makes one, or open the panel.")
    return 0


def document(state: UnitState) -> dict[str, object]:
    """One engine as `--json` gives it; what is not known of a foreign unit is null."""
    spec = state.spec
    return {
        "name": state.name,
        "unit": state.unit,
        "scope": state.scope.value,
        "managed": state.managed,
        "state": state.active,
        "ready": is_ready(state),
        "port": spec.options.port if spec else None,
        "model": spec.model if spec else None,
        "gpus": list(spec.placement.gpus) if spec else None,
        "tensor_parallel_size": spec.placement.tensor_parallel_size if spec else None,
        "pipeline_parallel_size": spec.placement.pipeline_parallel_size if spec else None,
        "pid": state.main_pid,
        "since": datetime.fromtimestamp(state.since, timezone.utc).isoformat() if state.since else None,
        "findings": [],
    }


def is_ready(state: UnitState) -> bool:
    """Whether the engine answers on its port now; asked once, not waited for."""
    if state.spec is None or state.active not in ("active", "activating"):
        return False
    import asyncio

    from gpudeck.services.engine.listening import answers_itself
    from gpudeck.services.http.address import Address
    from gpudeck.services.http.client import VllmClient

    async def ask(url: str) -> bool:
        async with VllmClient(url) as client:
            return await client.ready()

    options = state.spec.options
    return answers_itself(state, options.port) and asyncio.run(ask(Address.of_engine(options.host, options.port).url))


def shape(state: UnitState) -> str:
    """TP and PP as the operator says them: "TP2 PP1"."""
    if state.spec is None:
        return "-"
    placement = state.spec.placement
    copies = f" DP{placement.replicas}" if placement.replicas > 1 else ""
    return f"TP{placement.tensor_parallel_size} PP{placement.pipeline_parallel_size}{copies}"


def table(rows: list[tuple[str, ...]]) -> str:
    """Rows as aligned columns, two blanks apart."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _row(state: UnitState) -> tuple[str, ...]:
    spec = state.spec
    return (
        printable(state.name),
        state.active if not is_ready(state) else "ready",
        str(spec.options.port) if spec else "-",
        shape(state),
        ",".join(map(str, spec.placement.gpus)) if spec else "-",
        str(state.main_pid or "-"),
        state.scope.value,
        printable(spec.model) if spec else f"(not written by gpudeck: {printable(state.unit)})",
    )
