"""The API key that gpudeck's own requests carry, and the sentence where an engine does not take it."""

import os
from contextlib import suppress

from gpudeck.services.engine.types import Runner, UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.secrets import API_KEY


def key_for(runner: Runner, name: str) -> str | None:
    """The engine's own key, else the operator's VLLM_API_KEY.  Blocks shortly: the runner is asked."""
    with suppress(OperatorError):
        if found := runner.api_key(name):
            return found
    return os.environ.get(API_KEY) or None


def refusal_of(state: UnitState, key: str | None) -> str:
    """What the engine says to a request with this key, where it refuses it; "" where it serves.

    Not to be called where an event loop runs.
    """
    if state.spec is None:
        return ""
    import asyncio

    from gpudeck.services.http.address import Address
    from gpudeck.services.http.client import VllmClient

    async def ask(url: str) -> None:
        async with VllmClient(url, key) as client:
            await client.models()

    options = state.spec.options
    try:
        asyncio.run(ask(Address.of_engine(options.host, options.port).url))
    except OperatorError as error:
        return str(error)
    return ""
