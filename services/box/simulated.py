"""The demo's box: cards that do not exist, reading as if they did, with the loads of simulated engines on them."""

import math
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from gpudeck.services.box.boxfile import BoxFile, parse_box_file
from gpudeck.services.box.demo_cards import clock_mhz, described, furnished
from gpudeck.services.box.loads import CardLoad, read_loads
from gpudeck.services.box.types import MIB, Box, Demand, Gpu, Reading, Snapshot
from gpudeck.services.errors import OperatorError

_RESERVED_BYTES = 512 * MIB  # what a driver keeps for itself on a card of this size
_WARMING_S = 12.0  # time constant of a card's temperature
_IDLE_SHARE_OF_POWER = 0.07


def simulated_boxes() -> tuple[str, ...]:
    """The names of the boxes that come with gpudeck, the default one first."""
    names = sorted(entry.name.removesuffix(".json") for entry in _shelf().iterdir() if entry.name.endswith(".json"))
    return ("mixed", *(name for name in names if name != "mixed"))


def simulated_box(name: str) -> BoxFile:
    """One of those boxes.  Raises OperatorError where there is none of that name."""
    if name not in simulated_boxes():
        raise OperatorError(f"There is no demo box called {name}: take one of {', '.join(simulated_boxes())}.")
    return parse_box_file((_shelf() / f"{name}.json").read_text(encoding="utf-8"), f"the demo box {name}")


class SimulatedSource:
    """A BoxSource over a demo box.

    `loads` is the directory in which running simulated engines say which cards they load (see `loads.read_loads`).
    """

    def __init__(self, name: str, loads: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self._box = furnished(simulated_box(name).box)
        self._loads = loads
        self._clock = clock
        self._busy: dict[int, float] = {}  # each card's load as its temperature feels it, 0 to 1
        self._energy_j: dict[int, float] = {}
        self._read_at = 0.0

    def open(self) -> Box:
        self._busy = {gpu.index: 0.0 for gpu in self._box.gpus}
        self._energy_j = dict(self._busy)
        self._read_at = self._clock()
        return self._box

    def read(self, demand: Demand = Demand.ALL) -> Snapshot:
        now = self._clock()
        loads = read_loads(self._loads) if self._loads else ()
        seconds = max(now - self._read_at, 0.0)
        share = 1 - math.exp(-seconds / _WARMING_S)
        self._read_at = now
        readings = []
        for gpu in self._box.gpus:
            own = tuple(load for load in loads if load.gpu == gpu.index)
            percent = utilization(gpu, own, now)
            self._busy[gpu.index] += (percent / 100 - self._busy[gpu.index]) * share
            reading = _reading(gpu, own, percent, self._busy[gpu.index], now)
            self._energy_j[gpu.index] += (reading.power_w or 0.0) * seconds
            readings.append(
                described(
                    gpu,
                    reading,
                    demand,
                    energy_j=self._energy_j[gpu.index],
                    busy_peers=_beside(gpu, own, loads),
                )
            )
        return Snapshot(self._box, now, tuple(readings))

    def close(self) -> None:
        self._busy = {}


def utilization(gpu: Gpu, loads: tuple[CardLoad, ...], at: float) -> int:
    """What the card's loads keep it busy, in percent: never above 100, breathing a little, at rest without any."""
    asked = sum(load.utilization for load in loads)
    if not asked:
        return 0
    return round(min(max(min(asked, 100.0) + 6 * _wave(gpu, at, 7.0) - 4, 1.0), 100.0))


def _reading(gpu: Gpu, loads: tuple[CardLoad, ...], percent: int, warmth: float, at: float) -> Reading:
    held = sum(load.process.memory_bytes or 0 for load in loads)
    reserved = min(_RESERVED_BYTES, gpu.memory_bytes)
    used = min(held, gpu.memory_bytes - reserved)
    limit = gpu.power_limit_w or 300.0
    drawn = limit * (_IDLE_SHARE_OF_POWER + (0.93 - _IDLE_SHARE_OF_POWER) * percent / 100)
    return Reading(
        gpu=gpu.index,
        utilization_percent=percent,
        memory_utilization_percent=round(percent * 0.6),
        memory_used_bytes=used,
        memory_reserved_bytes=reserved,
        memory_free_bytes=gpu.memory_bytes - reserved - used,
        temperature_c=round(33 + gpu.index % 4 + 40 * warmth + _wave(gpu, at, 41.0)),
        power_w=round(drawn * (1 + 0.02 * _wave(gpu, at, 11.0)), 1),
        sm_clock_mhz=clock_mhz(percent),
        clock_idle=percent == 0,
        mig_enabled=False if gpu.compute_capability.major >= 8 and "GeForce" not in gpu.name else None,
        fan_percent=None if "SXM" in gpu.name or "HBM" in gpu.name else round(30 + 45 * warmth),
        pcie_gen=gpu.pcie.gen,
        pcie_width=gpu.pcie.width,
        processes=tuple(load.process for load in loads),
    )


def _beside(gpu: Gpu, own: tuple[CardLoad, ...], loads: tuple[CardLoad, ...]) -> frozenset[int]:
    """The other cards of the engines on this one."""
    engines = {load.process.engine for load in own}
    return frozenset(load.gpu for load in loads if load.gpu != gpu.index and load.process.engine in engines)


def _wave(gpu: Gpu, at: float, period: float) -> float:
    """A slow movement between -1 and 1, of another phase on each card."""
    return math.sin(2 * math.pi * (at / period + gpu.index * 0.37)) * math.cos(2 * math.pi * at / (period * 2.7))


def _shelf() -> Path:
    return Path(str(files("gpudeck.services.box") / "boxes"))
