"""The API key that gpudeck's own requests carry, and the sentence where an engine does not take it."""

import os
from contextlib import suppress
from pathlib import Path

from gpudeck.services.engine.types import Runner, UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.secrets import API_KEY
from gpudeck.services.text import printable

_KEY_FILE = 1 << 16  # characters


def key_for(runner: Runner, name: str) -> str | None:
    """The engine's own key, else the operator's VLLM_API_KEY.  Blocks shortly: the runner is asked."""
    with suppress(OperatorError):
        if found := runner.api_key(name):
            return found
    return os.environ.get(API_KEY) or None


def key_from(key_file: str) -> str | None:
    """The key that the file holds, without a file VLLM_API_KEY.  Raises OperatorError for one that can not be read.

    A file may hold the key alone, or be an environment file with a line VLLM_API_KEY=….
    """
    if not key_file:
        return os.environ.get(API_KEY) or None
    shown = printable(key_file)
    try:
        with Path(key_file).expanduser().open(encoding="utf-8") as file:
            lines = file.read(_KEY_FILE).splitlines()
    except (OSError, ValueError, RuntimeError) as error:
        said = (error.strerror if isinstance(error, OSError) else None) or "it is no text"
        raise OperatorError(f"The key file {shown} can not be read ({said}): name another.") from None
    named = [line.split("=", 1)[1].strip().strip("'\"") for line in lines if line.startswith(f"{API_KEY}=")]
    alone = [line.strip() for line in lines if line.strip()]
    if named:
        return named[-1]
    if len(alone) != 1:
        raise OperatorError(f"The key file {shown} must hold the key alone, or a line {API_KEY}=….")
    return alone[0]


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
