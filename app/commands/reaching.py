"""Engines that a command talks to: by their name here, or by the address of one anywhere."""

import argparse
from dataclasses import dataclass, field

from gpudeck.app.access import key_for
from gpudeck.app.commands.common import known_engine, told_command
from gpudeck.services.engine.types import Runner, UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.http.address import Address
from gpudeck.services.plan.types import EngineSpec


@dataclass(frozen=True, slots=True)
class Reached:
    """An engine that runs here."""

    state: UnitState
    spec: EngineSpec
    url: str
    key: str | None = field(repr=False)  # the API key that its requests need


def is_url(target: str) -> bool:
    return "://" in target


def reached(args: argparse.Namespace, runner: Runner, name: str | None) -> Reached:
    """The running engine of that name, without a name the only one; OperatorError where it can not be talked to."""
    if name is None:
        alive = [state for state in runner.engines() if state.runs and state.spec is not None]
        if len(alive) != 1:
            names = ", ".join(sorted(state.name for state in alive))
            raise OperatorError(
                f"{len(alive)} engines run here ({names}): name one of them."
                if alive
                else f"No engine runs here: start one with `{told_command(args, 'start NAME')}`, or give --url."
            )
        state = alive[0]
    else:
        state = known_engine(runner, name)
    if state.spec is None:
        raise OperatorError(
            f"{state.name} was not written by gpudeck, so its port is not known: give its address, http://host:port."
        )
    if not state.alive:
        raise OperatorError(
            f"{state.name} is {state.active}: start it with `{told_command(args, f'start {state.name}')}`."
        )
    options = state.spec.options
    return Reached(state, state.spec, Address.of_engine(options.host, options.port).url, key_for(runner, state.name))
