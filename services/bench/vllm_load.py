"""vLLM's own load: `vllm bench serve` of the engine's environment is run, and its result file read.

Read in vLLM 0.9 to 0.33; its command came with 0.9.
"""

import asyncio
import json
import os
import re
import signal
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpudeck.services.bench.load import Progress
from gpudeck.services.bench.types import Request, Workload
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable
from gpudeck.services.vllm.installed import file_of

_SCRIPT = "vllm/benchmarks/serve.py"
_COMMAND = "vllm/entrypoints/cli/benchmark/serve.py"
_BAR = re.compile(rb"(\d+)/(\d+) \[")  # tqdm's
_MAX_RESULT = 256 << 20
_MAX_TAIL = 1 << 14
_SHOWN = 300  # characters of its last line
_GRACE_S = 5.0


def has_bench(program: Sequence[str]) -> bool:
    """Whether `program bench serve` is there; read from files, nothing is run."""
    return file_of(program, _SCRIPT) is not None and file_of(program, _COMMAND) is not None


class VllmLoad:
    """Runs one engine's load by its own vLLM."""

    def __init__(
        self,
        program: Sequence[str],
        url: str,
        model: str,
        tokenizer: str,
        workload: Workload,
        salt: str,
        key: str | None,
    ) -> None:
        """`model` is the served name, `tokenizer` what the engine was given as its model or tokenizer."""
        self._program = program
        self._url, self._model, self._tokenizer = url, model, tokenizer
        self._workload = workload
        self._salt = salt
        self._key = key
        script = file_of(program, _SCRIPT)
        self._salted = script is not None and "--extra-body" in script.read_text(encoding="utf-8", errors="replace")

    def command(self, level: float, folder: Path) -> tuple[str, ...]:
        work = self._workload
        pace = ("--request-rate", f"{level:g}") if work.open_loop else ("--max-concurrency", f"{level:.0f}")
        salt = ("--extra-body", json.dumps({"cache_salt": f"{self._salt}-{level:g}"})) if self._salted else ()
        return (
            *self._program, "bench", "serve",
            "--base-url", self._url, "--model", self._model, "--tokenizer", self._tokenizer,
            "--dataset-name", "random", "--random-input-len", str(work.input_tokens),
            "--random-output-len", str(work.output_tokens), "--num-prompts", str(work.requests_at(level)),
            *pace, "--seed", str(work.seed), "--ignore-eos", *salt,
            "--save-result", "--save-detailed", "--result-dir", str(folder), "--result-filename", "result.json",
        )  # fmt: skip

    async def level(self, level: float, progress: Progress, stop: asyncio.Event) -> list[Request]:
        """One run of it.  Stopped, it leaves nothing.  Raises OperatorError where it fails."""
        with tempfile.TemporaryDirectory(prefix="gpudeck-bench-") as folder:
            environment = dict(os.environ)
            if self._key:
                environment["OPENAI_API_KEY"] = self._key
            try:
                process = await asyncio.create_subprocess_exec(
                    *self.command(level, Path(folder)),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise OperatorError(f"{self._program[0]} can not be run ({error.strerror}).") from None
            tail = await self._follow(process, progress, stop)
            if stop.is_set():
                return []
            if process.returncode:
                raise OperatorError(f"vllm bench serve failed ({process.returncode}): {_last_line(tail)}")
            return read_result(Path(folder) / "result.json")

    async def _follow(self, process: asyncio.subprocess.Process, progress: Progress, stop: asyncio.Event) -> bytes:
        """Read what it prints until it ends; the last part is returned."""
        assert process.stdout is not None
        tail = b""
        stopped = asyncio.ensure_future(stop.wait())
        try:
            while True:
                reading = asyncio.ensure_future(process.stdout.read(4096))
                await asyncio.wait((reading, stopped), return_when=asyncio.FIRST_COMPLETED)
                if stopped.done():
                    reading.cancel()
                    return tail
                said = await reading
                if not said:
                    await process.wait()
                    return tail
                tail = (tail + said)[-_MAX_TAIL:]
                if bars := _BAR.findall(said):
                    progress(int(bars[-1][0]), 0)
        finally:
            stopped.cancel()
            await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_S)


def read_result(path: Path) -> list[Request]:
    """The requests of a result file that was saved in detail.  Raises OperatorError for anything else."""
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(_MAX_RESULT))
        return _requests(document)
    except (OSError, ValueError, RecursionError, KeyError, TypeError, IndexError):
        raise OperatorError("vllm bench serve left no result that can be read: is this vLLM older than 0.9?") from None


def _requests(document: dict[str, Any]) -> list[Request]:
    firsts, gaps, errors = document["ttfts"], document["itls"], document["errors"]
    count = len(firsts)
    # Before 0.11 neither its whole time nor its beginning was saved: they are its parts, and the run's beginning.
    whole = document.get("latencies") or [first + sum(each) for first, each in zip(firsts, gaps, strict=True)]
    begins = document.get("start_times") or _begins(whole, float(document["duration"]))
    return [
        Request(
            0,
            float(begins[place]),
            None if errors[place] else float(firsts[place]),
            tuple(float(gap) for gap in gaps[place]),
            float(whole[place]),
            int(document["input_lens"][place]),
            int(document["output_lens"][place]),
            _last_line(str(errors[place]).encode()) if errors[place] else "",
        )
        for place in range(count)
    ]


def _begins(whole: Sequence[float], duration: float) -> list[float]:
    """Beginnings that span the run's duration, where none were saved: only their span is used."""
    last = len(whole) - 1
    return [max(duration - seconds, 0.0) if place == last else 0.0 for place, seconds in enumerate(whole)]


def _last_line(said: bytes) -> str:
    """The last line that says something, by which a traceback is told."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines()]
    told = [line for line in lines if line and not line.startswith(("nanobind:", "- ", "See https://nanobind"))]
    return printable(told[-1])[:_SHOWN] if told else "it said nothing"
