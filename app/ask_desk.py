"""Asking the installed vLLM about the plan on the board, away from the screen's thread."""

import threading
from typing import TYPE_CHECKING

from gpudeck.app.feeds import Post
from gpudeck.app.messages import VllmAnswered
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.vllm.answer import Answer

if TYPE_CHECKING:
    from gpudeck.services.vllm.asking import Asking


class AskDesk:
    """One question at a time: a new one calls the one before off.  May be used from any thread."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._lock = threading.Lock()
        self._asking: Asking | None = None
        self._cancelled = threading.Event()
        self._asked: EngineSpec | None = None

    @property
    def asked(self) -> EngineSpec | None:
        """The spec whose answer is awaited."""
        return self._asked

    def known(self, spec: EngineSpec) -> Answer | None:
        """The answer to this very command, where it was given already; looks at one file's date, and asks nothing."""
        with self._lock:
            asking = self._asking
        return asking.known(spec) if asking is not None else None

    def ask(self, spec: EngineSpec) -> None:
        """Ask; VllmAnswered follows, unless the question is called off before."""
        with self._lock:
            self._cancelled.set()
            self._cancelled = cancelled = threading.Event()
            self._asked = spec
        threading.Thread(target=self._ask, args=(spec, cancelled), name="ask-vllm", daemon=True).start()

    def cancel(self) -> None:
        """Call off what is being asked; its process is ended within a moment."""
        with self._lock:
            self._cancelled.set()
            self._asked = None

    def _ask(self, spec: EngineSpec, cancelled: threading.Event) -> None:
        from gpudeck.services.vllm.asking import Asking

        with self._lock:
            if self._asking is None:
                self._asking = Asking()
            asking = self._asking
        answer = asking.ask(spec, cancelled)
        with self._lock:
            if cancelled.is_set():
                return
            self._asked = None
        self._post(VllmAnswered(spec, answer))
