"""What a real vLLM counts on a real card, for the pairs of `pairs.py`; one line of JSON a run, beside a log each.

    python -m tests.hardware.truth --models DIR --out FOLDER --python PYTHON [ID…]

PYTHON is the engine environment's.  Weights are dummies (`--load-format dummy`): memory is the architecture's own.
Each engine is ended, and the card seen empty again, before the next begins.  FOLDER/runs.jsonl has the form of
tests/data/h200_cases.jsonl, which `python -m tests.services.memory.h200` compares with the memory model.
"""

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

import pynvml

from tests.hardware.pairs import PAIRS

_GIB = 2**30
_AHEAD = 3  # engines that import while one is measured
_PATIENCE_S = 240.0
_READY = "Application startup complete"
_SIZES = {
    # vLLM's own words at debug level, in GiB with two decimals
    "weights": r"weights memory: ([\d.]+)\s?GiB",
    "activation_peak": r"torch peak memory increase: ([\d.]+)\s?GiB",
    "non_torch": r"non-torch forward increase memory: ([\d.]+)\s?GiB",
    "cudagraph_estimate": r"Estimated CUDA graph memory: ([\d.]+) GiB",
    "cudagraph_actual": r"([\d.]+) GiB for CUDAGraph memory",
    "available_kv": r"Available KV cache memory: ([\d.]+) GiB",
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--until", type=float, default=3600.0, help="begin no engine after this many seconds")
    parser.add_argument("ids", nargs="*", metavar="ID")
    args = parser.parse_args()
    end = time.monotonic() + args.until
    args.out.mkdir(parents=True, exist_ok=True)
    pynvml.nvmlInit()
    ids = args.ids or list(PAIRS)
    waiting = {case: _Engine(args, case) for case in ids[:_AHEAD]}
    with (args.out / "runs.jsonl").open("a") as runs:
        for number, case in enumerate(ids):
            if time.monotonic() > end:
                break
            for coming in ids[number + 1 : number + 1 + _AHEAD]:
                if coming not in waiting:
                    waiting[coming] = _Engine(args, coming)
            run = waiting.pop(case).measure()
            runs.write(json.dumps(run) + "\n")
            runs.flush()
            print(case, run["ready"], run.get("tokens"), f"{run['seconds']:.0f} s", flush=True)
    for engine in waiting.values():
        engine.end()


def used_bytes() -> int:
    return int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).used)


class _Engine:
    """One engine: importing from now on, begun by `measure`."""

    def __init__(self, args: argparse.Namespace, case: str) -> None:
        self.case = case
        self.model, options = PAIRS[case]
        self.options = ["--load-format", "dummy", *options.split()]
        self._go = args.out / f"{case}.go"
        self._path: Path = args.out / f"{case}.log"
        self._log: IO[bytes] = self._path.open("wb")
        port = 8200 + list(PAIRS).index(case)
        self._process = subprocess.Popen(
            [
                args.python, str(Path(__file__).with_name("warm_vllm.py")), str(self._go),
                "serve", str(args.models / self.model), "--host", "127.0.0.1", "--port", str(port), *self.options,
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "VLLM_LOGGING_LEVEL": "DEBUG", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"},
        )  # fmt: skip

    def measure(self) -> dict[str, Any]:
        before = used_bytes()
        begun = time.monotonic()
        self._go.touch()
        while time.monotonic() < begun + _PATIENCE_S and self._process.poll() is None and _READY not in self._text():
            time.sleep(0.2)
        text = self._text()
        run: dict[str, Any] = {
            "id": self.case,
            "model": self.model,
            "options": self.options,
            "env": {},
            "ready": _READY in text,
            "seconds": round(time.monotonic() - begun, 1),
            "used_before": 0,
            "nvml_before": before,
            "nvml_ready": used_bytes(),
        }
        sizes = {name: found[-1] for name, words in _SIZES.items() if (found := re.findall(words, text))}
        if sizes:
            run["memory"] = {name: int(float(size) * _GIB) for name, size in sizes.items()}
        tokens = re.findall(r"GPU KV cache size: ([\d,]+) tokens", text)
        if tokens:
            run["tokens"] = int(tokens[-1].replace(",", ""))
        self.end()
        while used_bytes() > before + 64 * 2**20 and time.monotonic() < begun + _PATIENCE_S + 60:
            time.sleep(0.2)
        return run

    def _text(self) -> str:
        return self._path.read_text(errors="replace")

    def end(self) -> None:
        """End the whole group: an engine core outlives its server otherwise, and holds the card."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()


if __name__ == "__main__":
    main()
