"""A box of eight cards at work, played by the fake NVML: every figure moves at every beat, each card has a worker."""

import math
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

from gpudeck.services.box.simulated import simulated_box
from gpudeck.services.box.types import GIB, GpuProcess, Reading
from tests.rigs.fakenvml.description import describe, process_list
from tests.rigs.fakenvml.fixtures import PlayedBox, library_folder
from tests.rigs.titled import HOLD

CARDS = 8
BEAT_S = 1.0

# What calls took on a busy H200, warm, in microseconds (median); those not named took under 200 and stand at that.
REAL_DELAYS_US = {
    "utilization": 3_750,
    "power_mw": 1_980,
    "ecc_mode": 2_060,
    "energy_mj": 3_200,
    "process_utilization": 2_000,
    "max_clock.0": 1_400,
    "pcie_kbs.0": 20_700,
    "pcie_kbs.1": 20_700,
    "cpus": 10_900,
}
_QUICK_KEYS = (
    *("memory", "temperature.0", "clock.0", "clock.1", "clock.2", "event_reasons", "pcie_gen", "pcie_width"),
    *("processes", "graphics", "pstate", "fan.0", "encoder", "decoder", "mig_mode"),
)


class BusyBox:
    """Plays the box; `beat` moves it once, `run` does so at every beat until `stop`.  Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.played = PlayedBox(folder / "box.nvml", library_folder())
        self._random = random.Random(7)
        self._beats = 0
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._workers = [
            subprocess.Popen(
                [f"VLLM::Worker_TP{card}", "-c", HOLD],
                executable=sys.executable,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "GPUDECK_UNIT": "vllm-llama.service"},
            )
            for card in range(CARDS)
        ]
        self.played.keys = self._description()
        self.beat()

    def beat(self) -> None:
        """Every figure of every card takes a new value."""
        self._beats += 1
        moved: dict[str, str | None] = {}
        for card in range(CARDS):
            moved |= {f"gpu.{card}.{key}": value for key, value in self._figures(card).items()}
        self.played.change(moved)

    def delay_as_a_real_driver(self) -> None:
        """From now on each call takes as long as on a busy H200."""
        delays = dict.fromkeys(_QUICK_KEYS, 200) | REAL_DELAYS_US
        self.played.change(
            {f"gpu.{card}.{key}.delay_us": str(delay) for card in range(CARDS) for key, delay in delays.items()}
        )

    def no_delays(self) -> None:
        """Each call takes what it takes."""
        self.played.change({key: None for key in self.played.keys if key.endswith(".delay_us")})

    def run(self) -> None:
        def beats() -> None:
            while not self._stopped.wait(BEAT_S):
                self.beat()

        self._thread = threading.Thread(target=beats, daemon=True)
        self._thread.start()

    def __enter__(self) -> "BusyBox":
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        for worker in self._workers:
            worker.kill()
            worker.wait()

    def _description(self) -> dict[str, str]:
        box = simulated_box("nvswitch").box
        readings = [Reading(gpu.index, utilization_percent=0, temperature_c=40, fan_percent=None) for gpu in box.gpus]
        return describe(box, readings)

    def _figures(self, card: int) -> dict[str, str]:
        wave = 0.5 + 0.4 * math.sin(self._beats / 5 + card) + 0.1 * self._random.random()
        total, used = 80 * GIB, int((30 + 40 * wave) * GIB)
        process = GpuProcess(self._workers[card].pid, "", used - GIB)
        return {
            "utilization": f"{round(100 * min(wave, 1))} {round(60 * min(wave, 1))}",
            "memory": f"{total} {used} {GIB // 2}",
            "temperature.0": str(round(40 + 40 * wave)),
            "power_mw": str(round(700_000 * min(wave, 1))),
            "clock.0": str(round(1200 + 780 * min(wave, 1))),
            "clock.1": str(round(1200 + 780 * min(wave, 1))),
            "pcie_kbs.0": str(round(8_000_000 * wave)),
            "pcie_kbs.1": str(round(6_000_000 * wave)),
            "processes": process_list([process]),
        }
