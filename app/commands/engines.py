"""`gpudeck engines`: every engine on the box."""

import argparse
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from gpudeck.app.commands.common import print_json, runner_for, told_command
from gpudeck.services.adoption.report import finding_document
from gpudeck.services.engine.types import UnitState
from gpudeck.services.text import printable

if TYPE_CHECKING:
    from gpudeck.services.adoption.on_runner import Reviewed
    from gpudeck.services.adoption.types import Adopted
    from gpudeck.services.engine.types import Runner
    from gpudeck.services.plan.types import EngineSpec

_COLUMNS = ("NAME", "STATE", "PORT", "SHAPE", "CARDS", "PID", "SCOPE", "MODEL")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--names", action="store_true", help="their names alone, a line each, for scripts")


def run(args: argparse.Namespace) -> int:
    runner = runner_for(args)
    try:
        if args.names:
            for state in runner.engines():
                print(printable(state.name))
            return 0
        foreign = {_key(each.found.state): each for each in _others(args, runner)}
        states = sorted(
            (
                replace(state, spec=foreign[_key(state)].review.adopted.spec) if _key(state) in foreign else state
                for state in runner.engines()
            ),
            key=lambda state: state.name,
        )
    finally:
        runner.close()
    if args.json:
        print_json({"engines": [document(state, foreign.get(_key(state))) for state in states]})
    elif states:
        print(table([_COLUMNS, *(_row(state) for state in states)]))
        for (_scope, unit), each in foreign.items():
            count = len(each.review.findings)
            print(
                f"{printable(unit)} was not written by gpudeck: {count or 'no'} finding{'' if count == 1 else 's'}, "
                f"gpudeck adopt {printable(unit)}"
            )
    else:
        print(f"No engines here yet: {told_command(args, 'install MODEL --stage 0')} makes one, or open the panel.")
    return 0


def _key(state: UnitState) -> tuple[str, str]:
    """The user's systemd and the system's may have units of one name."""
    return state.scope.value, state.unit


def _others(args: argparse.Namespace, runner: "Runner") -> "list[Reviewed]":
    from gpudeck.services.engine.types import Scope

    if args.demo or runner.scope is Scope.EMBEDDED:
        return []
    from gpudeck.app.commands.adopting import others

    return others(args, runner)


def document(state: UnitState, reviewed: "Reviewed | None" = None) -> dict[str, object]:
    """One engine as `--json` gives it; what is not known of a foreign unit is null."""
    spec = state.spec
    adopted = reviewed.review.adopted if reviewed is not None else None
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
        **_sizes(spec, adopted),
        "pid": state.main_pid,
        "since": datetime.fromtimestamp(state.since, timezone.utc).isoformat() if state.since else None,
        "findings": [finding_document(each) for each in (reviewed.review.findings if reviewed is not None else ())],
    }


def _sizes(spec: "EngineSpec | None", adopted: "Adopted | None") -> dict[str, object]:
    """TP and PP as they are asked for, also where there are fewer cards."""
    asked = adopted or (spec.placement if spec else None)
    return {
        "tensor_parallel_size": asked.tensor_parallel_size if asked else None,
        "pipeline_parallel_size": asked.pipeline_parallel_size if asked else None,
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
        "ready" if is_ready(state) else state.sub if state.between_tries else state.active,
        str(spec.options.port) if spec else "-",
        shape(state),
        ",".join(map(str, spec.placement.gpus)) if spec else "-",
        str(state.main_pid or "-"),
        state.scope.value,
        printable(spec.model) if spec else f"(not written by gpudeck: {printable(state.unit)})",
    )
