"""The road where all goes well: recorded, planned, started, measured, talked to, stopped."""

import json
import re
import threading
import time
from collections.abc import Callable
from statistics import median, quantiles

import httpx
import psutil

from tests.hardware.roadside import Roadside
from tests.rigs.at_the_panel import answered, choose_model, drag_card, free_port, set_options
from tests.rigs.terminal import Terminal

MODEL = "llama-3.1-8b"
_ASK = "Tell a long story about a lighthouse."
_SWEEPS = 60


def record(side: Roadside) -> None:
    """The box as gpudeck has it, and beside it what NVIDIA's own tool says."""
    side.run("box", "--record", str(side.out / "box.json"), timeout=60)
    side.run("topo")
    side.run("doctor", expect=None)


def serve(side: Roadside) -> None:
    """From a bare card to an answer and back, all at the panel; an engine serves while the other figures are taken."""
    port = free_port()
    with side.panel() as terminal:
        terminal.wait_for("H200", 60)
        terminal.settle()
        side.keep(terminal, "bare")
        choose_model(terminal, MODEL)
        set_options(terminal, {"--port": str(port), "--load-format": "dummy", "--max-num-seqs": "256"})
        drag_card(terminal, "0 H200", "stage 0")
        terminal.wait_for("32 layers")
        side.keep(terminal, "planned")
        terminal.press("s")
        terminal.wait_for("What will run")
        side.keep(terminal, "review")
        terminal.press("enter")
        began = time.monotonic()
        phases = _follow(terminal, lambda screen: re.search(rf"is ready|{MODEL} +failed", screen) is not None)
        assert "is ready" in terminal.text(), terminal.text()
        side.note(ready_after=round(time.monotonic() - began, 1), phases=phases)
        terminal.press("c")
        terminal.write("What are you?")
        terminal.press("enter")
        terminal.wait_until(answered, "answer", 60)
        side.keep(terminal, "answered")
        with _Load(port, 32):
            time.sleep(12)  # the history of the cards fills, a column a second
            terminal.press("escape")
            terminal.settle()
            side.keep(terminal, "serving")
            side.note(panel_cpu_percent=_cpu_percent(terminal, 20.0))
            _sweeps(side, busy=True)
            printed = side.run("box", "--json")
        side.note(processes=json.loads(printed)["gpus"][0]["processes"], driver_pids=side.pids_on_card())
        side.run("status", MODEL, "--json")
        side.run("check", MODEL, expect=None)
        side.run("bench", MODEL, "--load", "own", "--concurrency", "1,16,64", expect=None, timeout=180)
        terminal.press("3", "x")
        terminal.wait_for(f"stop {MODEL}")
        terminal.press("y")
        terminal.wait_for("is stopped; none", 120)
        side.note(free_after=round(side.until(lambda: not side.pids_on_card(), "bare card"), 1))
        terminal.press("q")
        terminal.wait_end()
    side.until_free()
    _sweeps(side, busy=False)
    (side.out / "serving.log").write_text(side.run("logs", MODEL))


def _follow(terminal: Terminal, ended: Callable[[str], bool], patience_s: float = 240) -> dict[str, float]:
    """When each phase was first seen on the screen, in seconds."""
    began, seen = time.monotonic(), {}
    words = ("importing", "loading weights", "profiling", "compiling", "capturing", "listening")
    while not ended(screen := terminal.text()) and time.monotonic() - began < patience_s:
        for word in words:
            if word in screen and word not in seen:
                seen[word] = round(time.monotonic() - began, 1)
        time.sleep(0.1)
    return seen


def _sweeps(side: Roadside, *, busy: bool) -> None:
    """How long reading the card takes, with everything that is ever read, and without what is on a slower beat."""
    from gpudeck.services.box.nvml import NvmlSource
    from gpudeck.services.box.types import Demand

    source = NvmlSource()
    source.open()
    try:
        for name, demand in (("everything", Demand.ALL), ("least", Demand(0))):
            took = []
            for _ in range(_SWEEPS):
                began = time.perf_counter()
                source.read(demand)
                took.append((time.perf_counter() - began) * 1e3)
                time.sleep(0.02)
            side.note(
                sweep=name, busy=busy, median_ms=round(median(took), 2), p95_ms=round(quantiles(took, n=20)[18], 2)
            )
    finally:
        source.close()


def _cpu_percent(terminal: Terminal, seconds: float) -> float:
    process = psutil.Process(terminal.process.pid)
    process.cpu_percent()
    time.sleep(seconds)
    return process.cpu_percent()


class _Load:
    """`streams` requests at any time, until the end of the block."""

    def __init__(self, port: int, streams: int) -> None:
        self._url = f"http://127.0.0.1:{port}/v1"
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(streams)]

    def _ask(self) -> None:
        with httpx.Client(timeout=120) as client:
            model = client.get(f"{self._url}/models").json()["data"][0]["id"]
            body = {"model": model, "prompt": _ASK, "max_tokens": 200, "ignore_eos": True}
            while not self._ended.is_set():
                client.post(f"{self._url}/completions", json=body).raise_for_status()

    def __enter__(self) -> "_Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(60)


SERVING: dict[str, Callable[[Roadside], None]] = {"record": record, "serve": serve}
