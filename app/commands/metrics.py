"""`gpudeck metrics`: the box for Prometheus."""

import argparse
import ipaddress
import os
import signal
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from gpudeck.app.commands.common import box_source, runner_for
from gpudeck.services.errors import OperatorError

if TYPE_CHECKING:
    from gpudeck.services.engine.types import Runner, UnitState

_DEFAULT = "127.0.0.1:9837"
_BEAT_S = 5.0


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--listen", metavar="HOST:PORT", default=_DEFAULT, help=f"where (default: {_DEFAULT})")
    parser.add_argument("--token-file", metavar="FILE", help="a file with the bearer token that a scrape must bring")
    parser.add_argument("--once", action="store_true", help="print the metrics and end")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    from prometheus_client.core import CollectorRegistry
    from prometheus_client.exposition import generate_latest

    from gpudeck.services.box.sampler import Sampler, read_once
    from gpudeck.services.box.types import Demand
    from gpudeck.services.exporter.serving import BoxCollector, MetricsServer

    host, port = _address(args.listen)
    token = _token(args.token_file) if args.token_file else None
    if token is None and not _loopback(host):
        raise OperatorError(f"{host} can be reached from other machines: give --token-file, or listen on 127.0.0.1.")
    runner = None if args.box_file else runner_for(args)
    collector = BoxCollector(lambda: _engines(runner))
    source = box_source(args)
    if args.once:
        collector.put(read_once(source, Demand.ALL))
        registry = CollectorRegistry()
        registry.register(collector)
        print(generate_latest(registry).decode(), end="")
        return 0
    server = MetricsServer(collector, host, port, token)
    sampler = Sampler(source, collector.put, interval=_BEAT_S)
    sampler.start()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    shown = f"[{host}]" if ":" in host else host
    print(f"Serving http://{shown}:{server.port}/metrics until Ctrl-C.", flush=True)
    try:
        server.serve()
    except KeyboardInterrupt:
        return 0
    finally:
        sampler.stop()
        if runner is not None:
            runner.close()
    return 0


def _engines(runner: "Runner | None") -> "Iterable[UnitState]":
    return runner.engines() if runner is not None else ()


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or len(port) > 5 or int(port) > 65535:
        raise OperatorError(f"--listen {text} is no address: write it like {_DEFAULT}.")
    return host.strip("[]"), int(port)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token(name: str) -> str:
    """The token in a file that nobody else may read."""
    path = Path(name)
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise OperatorError(f"Others may read {name}: chmod 600 {name} first.")
            token = file.read(4096).strip()
    except OSError as error:
        raise OperatorError(
            f"{name} can not be read ({error.strerror}): --token-file names a file with a token."
        ) from None
    if not token or not token.isascii() or not token.decode().isprintable() or b" " in token:
        raise OperatorError(f"{name} holds no token: put one word of printable characters into it.")
    return token.decode()
