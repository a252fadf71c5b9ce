"""`gpudeck chat NAME|URL [PROMPT]`: one prompt, its answer streamed to standard output."""

import argparse
import asyncio
import sys
from contextlib import aclosing
from typing import TextIO

from gpudeck.app.access import key_from
from gpudeck.app.chat_desk import NO_TEMPLATE, told
from gpudeck.app.commands.common import POSITIVE, runner_for
from gpudeck.app.commands.reaching import is_url, reached
from gpudeck.services.errors import OperatorError
from gpudeck.services.http.client import VllmClient
from gpudeck.services.http.events import (
    Done,
    Message,
    NoTemplate,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
)
from gpudeck.services.http.tool_calls import ToolCalls
from gpudeck.services.text import printable

_MAX_PROMPT = 16 << 20  # characters from standard input: more than any context holds


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="NAME|URL", help="an engine, or the address of one: http://host:port")
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="what to say (default: standard input)")
    parser.add_argument("--system", metavar="TEXT", help="a system prompt before it")
    parser.add_argument("--model", metavar="NAME", help="the served name (default: the first that is served)")
    parser.add_argument("--max-tokens", type=POSITIVE, metavar="N", help="the longest answer")
    parser.add_argument("--temperature", type=float, metavar="T", help="0 always takes the likeliest token")
    parser.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end the answer here (repeatable)")
    parser.add_argument(
        "--key-file", default="", metavar="FILE", help="holds the API key of a server named by its address"
    )
    parser.epilog = (
        "An engine of this box gets its own API key where that can be read, others that of --key-file or VLLM_API_KEY."
    )


def run(args: argparse.Namespace) -> int:
    """The answer goes to standard output, reasoning and figures to standard error."""
    url, key = (args.target, key_from(args.key_file)) if is_url(args.target) else _engine(args)
    messages = [Message("system", args.system)] if args.system else []
    messages.append(Message("user", _prompt(args)))
    asyncio.run(_talk(url, key, messages, args))
    return 0


async def _talk(url: str, key: str | None, messages: list[Message], args: argparse.Namespace) -> None:
    text = False
    calls = ToolCalls()
    try:
        async with (
            VllmClient(url, key) as client,
            aclosing(
                client.chat(
                    args.model,
                    messages,
                    max_tokens=args.max_tokens,
                    temperature=args.temperature,
                    stop=args.stop,
                )
            ) as answer,
        ):
            async for event in answer:
                if isinstance(event, TextDelta | RefusalDelta):
                    text = True
                    _write(event.text, sys.stdout)
                elif isinstance(event, ReasoningDelta):
                    _write(event.text, sys.stderr)
                elif isinstance(event, ToolCallDelta):
                    calls.add(event)
                elif isinstance(event, NoTemplate):
                    print(NO_TEMPLATE, file=sys.stderr)
                elif isinstance(event, Done):
                    _end_line(text)
                    text = False
                    print(told(event), file=sys.stderr)
    finally:
        # What had come stays, and the sentence about its end begins a line of its own.
        _end_line(text)
        for call in calls.told():
            print(f"tool call: {call}")


def _engine(args: argparse.Namespace) -> tuple[str, str | None]:
    """Where the engine answers, and the key that it wants."""
    runner = runner_for(args)
    try:
        engine = reached(args, runner, args.target)
        return engine.url, engine.key
    finally:
        runner.close()


def _prompt(args: argparse.Namespace) -> str:
    prompt: str = args.prompt if args.prompt is not None else sys.stdin.read(_MAX_PROMPT)
    if not prompt.strip():
        raise OperatorError("There is nothing to say: give a prompt behind the name, or on standard input.")
    return prompt


def _write(text: str, stream: TextIO) -> None:
    """Line breaks are the answer's own; every other control character is written out."""
    stream.write("\n".join(printable(line) for line in text.split("\n")))
    stream.flush()


def _end_line(text: bool) -> None:
    if text:
        sys.stdout.write("\n")
        sys.stdout.flush()
