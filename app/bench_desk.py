"""Measured runs of the panel: each is a `gpudeck bench` of its own, so that drawing does not slow the load down."""

import json
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gpudeck.app.feeds import Post
from gpudeck.app.messages import BenchEnded, BenchStepped, ResultsArrived
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

_MAX_LINE = 1 << 16


class BenchDesk:
    """One run at a time.  Messages follow: BenchStepped, BenchEnded, ResultsArrived."""

    def __init__(self, post: Post, box: Sequence[str], home: Path) -> None:
        """`box` are the words that name the panel's box and scope on a command line, `home` is where results lie."""
        self._post = post
        self._box = tuple(box)
        self._home = home
        self._lock = threading.Lock()
        self._child: subprocess.Popen[str] | None = None

    @property
    def running(self) -> bool:
        return self._child is not None

    def run(self, words: Sequence[str]) -> None:
        """Measure; `words` are those of `gpudeck bench`.  Raises OperatorError where a run is under way."""
        with self._lock:
            if self._child is not None:
                raise OperatorError("A run is under way: wait for it, or end it with Esc.")
            self._child = subprocess.Popen(
                [sys.executable, "-m", "gpudeck.app", "bench", "--events", *words, *self._box],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # Ctrl-C at the panel is not for it
            )
        threading.Thread(target=self._follow, args=(self._child,), name="bench", daemon=True).start()

    def stop(self) -> None:
        """End the run; it keeps what has come."""
        child = self._child
        if child is not None:
            with suppress(OSError):
                child.send_signal(signal.SIGINT)

    def load(self) -> None:
        """Read what is kept; ResultsArrived follows."""
        threading.Thread(target=self._load, name="bench-results", daemon=True).start()

    def _load(self) -> None:
        from gpudeck.services.bench.store import kept

        results, troubles = kept(self._home)
        self._post(ResultsArrived(results, troubles))

    def _follow(self, child: "subprocess.Popen[str]") -> None:
        assert child.stdout is not None
        assert child.stderr is not None
        complaints: deque[str] = deque(maxlen=20)
        listening = threading.Thread(target=complaints.extend, args=(child.stderr,), daemon=True)
        listening.start()
        kept = ""
        for line in child.stdout:
            with suppress(ValueError, RecursionError):
                told = json.loads(line[:_MAX_LINE])
                if "kept" in told:
                    kept = str(told["kept"])
                else:
                    self._post(BenchStepped(told))
        code = child.wait()
        listening.join(1)
        child.stdout.close()
        child.stderr.close()
        with self._lock:
            self._child = None
        said = printable(next((line for line in reversed(complaints) if line.strip()), "").strip())
        # A refusal begins with "gpudeck: ", wrong usage with argparse's own words.
        told_why = said.removeprefix("gpudeck bench: error: argument ").removeprefix("gpudeck: ")
        failure = "" if kept else told_why or f"The run ended with {code} and kept nothing."
        self._post(BenchEnded(kept, failure))
        self._load()
