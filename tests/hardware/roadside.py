"""What every part of the road uses: the panel and the commands of gpudeck, the card's own figures, and the notes."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pynvml

from tests.rigs.at_the_panel import GPUDECK
from tests.rigs.terminal import Terminal

MIB = 1 << 20
_IDLE_BYTES = 64 * MIB  # of the card's memory, more than before: what a driver keeps for a moment
_POLL_S = 0.2


class Roadside:
    """One part of the road; `models` holds model directories, `out` takes what the part saw."""

    def __init__(self, models: Path, out: Path, part: str) -> None:
        self.models, self.out, self.part = models, out, part
        self._began = time.monotonic()
        pynvml.nvmlInit()
        self.used_before = self.used_bytes()

    def note(self, **facts: Any) -> None:
        """One line of what was seen."""
        line = {"part": self.part, "seconds": round(time.monotonic() - self._began, 1), **facts}
        print(json.dumps(line, ensure_ascii=False)[:400], flush=True)
        with (self.out / "road.jsonl").open("a") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def panel(self, *words: str) -> Terminal:
        return Terminal([*GPUDECK, *words], columns=200, rows=50, env={"COLORTERM": "truecolor"})

    def keep(self, terminal: Terminal, name: str) -> None:
        """Keep the screen, as text and cell by cell."""
        (self.out / f"{name}.txt").write_text(terminal.text())
        (self.out / f"{name}.json").write_text(json.dumps(terminal.cells(), ensure_ascii=False))

    def run(self, *words: str, timeout: float = 240, expect: int | None = 0) -> str:
        """A command of gpudeck: what it printed, errors included.  `expect` is its exit code, None for any."""
        began = time.monotonic()
        done = subprocess.run(
            [*GPUDECK, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        self.note(
            command=" ".join(words), code=done.returncode, took=round(time.monotonic() - began, 1),
            printed=done.stdout[-6000:],
        )  # fmt: skip
        assert expect is None or done.returncode == expect, f"gpudeck {words[0]} ended with {done.returncode}"
        return done.stdout

    def used_bytes(self) -> int:
        return int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).used)

    def pids_on_card(self) -> list[int]:
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        return sorted(process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle))

    def until(self, condition: Callable[[], bool], what: str, patience_s: float = 120) -> float:
        """Seconds until it held.  Raises AssertionError after `patience_s`."""
        began = time.monotonic()
        while not condition():
            assert time.monotonic() - began < patience_s, f"no {what} within {patience_s:.0f} s"
            time.sleep(_POLL_S)
        return time.monotonic() - began

    def until_free(self) -> None:
        """Until the card holds no more than before this part."""
        self.until(lambda: self.used_bytes() <= self.used_before + _IDLE_BYTES, "free card", 60)

    def process(self, title: str) -> psutil.Process:
        """The process of an engine that has given itself this title."""
        found = [
            process
            for process in psutil.process_iter(["cmdline"])
            if " ".join(process.info["cmdline"] or ()).startswith(title)
        ]
        assert len(found) == 1, f"{len(found)} processes are called {title}"
        return found[0]

    def edit(self, engine: str, old: str, new: str) -> None:
        """Change the command of an embedded engine by hand, as an operator with an editor would."""
        changed = 0
        for file in (self.out / "state").rglob("*.json"):
            if f"vllm-{engine}.service" in str(file) and old in file.read_text():
                file.write_text(file.read_text().replace(old, new))
                changed += 1
        assert changed, f"{old!r} stands in no file of {engine}"

    def clear(self) -> None:
        """Stop and delete every engine of this road, and see the card free."""
        listed = subprocess.run([*GPUDECK, "engines", "--json"], capture_output=True, text=True, check=False).stdout
        for engine in json.loads(listed or '{"engines": []}')["engines"]:
            subprocess.run([*GPUDECK, "remove", "--yes", engine["name"]], capture_output=True, check=False, timeout=120)
        try:
            self.until_free()
        except AssertionError as error:
            self.note(failed=f"{error}: {self.pids_on_card()} hold it")
