"""`python -m gpudeck.services.simulator serve MODEL [options of vllm serve]`."""

import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from gpudeck.services.simulator import log, startup, workers
from gpudeck.services.simulator.generation import Generator
from gpudeck.services.simulator.loads import LoadsFile
from gpudeck.services.simulator.memory import RefusedError, plan
from gpudeck.services.simulator.meter import Meter
from gpudeck.services.simulator.options import Options, parse
from gpudeck.services.simulator.server import Server

_PACKAGE = "gpudeck/services/simulator"


class _StoppedError(Exception):
    """SIGTERM or SIGINT came."""


def main(words: Sequence[str]) -> int:
    """Serve until SIGTERM: 0 after a stop while serving, 143 while starting, 1 where vLLM would not start."""
    if not words or words[0] != "serve":
        sys.stderr.write("usage: vllm [-h] [-v] {serve} ...\nvllm: error: the simulated engine can only serve\n")
        return 2
    options = parse(words[1:])
    stop = threading.Event()

    def stopped(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stopped)
    return serve(options, stop, _speed())


def serve(options: Options, stop: threading.Event, speed: float) -> int:
    pid = os.getpid()
    notice = "gpudeck's SIMULATED engine in place of vLLM: no model is loaded, no GPU is used"
    log.info("APIServer", pid, "simulator.py:1", notice)
    log.info("APIServer", pid, "api_utils.py:273", f"non-default args: {options.non_default}")
    try:
        bound = _bind(options)
        load = plan(options)
    except OSError as error:
        return _refuse(pid, "sock.bind(addr)", f"OSError: [Errno {error.errno}] {error.strerror}")
    except RefusedError as refusal:
        return _refuse(pid, "engine_args.create_engine_config()", *refusal.lines)
    family = workers.start(options)
    loads = LoadsFile(os.environ.get("GPUDECK_SIMULATED_LOADS", ""), options.served_name, load, family.ranks)

    def pause(seconds: float) -> None:
        if stop.wait(seconds / speed):
            raise _StoppedError

    try:
        startup.run(pid, options, load, family, loads, pause)
        meter = Meter(options.served_name, load.kv_cache_tokens)
        generator = Generator(options, load, meter, loads, speed)
        key = options.api_key or os.environ.get("VLLM_API_KEY") or None
        server = Server(bound, options, load, meter, generator, key)
        _listen(pid, server)
        stop.wait()
        _shut_down(pid, server)
    except _StoppedError:
        return 128 + signal.SIGTERM
    except OSError as error:  # two engines were started for one port, and the other one listens
        return _refuse(pid, "sock.listen(backlog)", f"OSError: [Errno {error.errno}] {error.strerror}")
    finally:
        loads.remove()
        family.end()
    return 0


def _listen(pid: int, server: Server) -> None:
    options = server.options
    log.info("APIServer", pid, "api_server.py:581", f"Starting vLLM server on http://{options.host}:{options.port}")
    log.info("APIServer", pid, "launcher.py:37", "Available routes are:")
    for route, method in (
        ("/health", "GET"),
        ("/metrics", "GET"),
        ("/version", "GET"),
        ("/v1/models", "GET"),
        ("/v1/chat/completions", "POST"),
        ("/v1/completions", "POST"),
    ):
        log.info("APIServer", pid, "launcher.py:46", f"Route: {route}, Methods: {method}")
    log.uvicorn(pid, f"Started server process [{pid}]")
    log.uvicorn(pid, "Waiting for application startup.")
    server.listen()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.5}, daemon=True).start()
    log.uvicorn(pid, "Application startup complete.")


def _shut_down(pid: int, server: Server) -> None:
    log.info("APIServer", pid, "launcher.py:100", "[shutdown] API server: shutdown triggered")
    server.server_close()
    for text in ("Shutting down", "Waiting for application shutdown.", "Application shutdown complete."):
        log.uvicorn(pid, text)


def _bind(options: Options) -> socket.socket:
    """Taken before anything is loaded, as vLLM does, so that a port in use is told at once."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((options.host, options.port))
    except OSError:
        bound.close()
        raise
    return bound


def _refuse(pid: int, source: str, *lines: str) -> int:
    for line in (
        "Traceback (most recent call last):",
        f'  File "{_PACKAGE}/__main__.py", line 1, in serve',
        f"    {source}",
        *lines,
    ):
        log.raw("APIServer", pid, line)
    return 1


def _speed() -> float:
    """$GPUDECK_SIMULATOR_SPEED: how many times faster than a comfortable pace everything goes."""
    try:
        speed = float(os.environ.get("GPUDECK_SIMULATOR_SPEED", "1"))
    except ValueError:
        return 1.0
    return speed if 0.01 <= speed <= 10_000 else 1.0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
