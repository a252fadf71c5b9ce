"""Learning what verdicts rest on, away from the screen's thread: each question is a file or a folder to be read."""

import threading
from collections.abc import Callable

from gpudeck.app.feeds import Post
from gpudeck.app.grounds import Grounds
from gpudeck.app.messages import GroundsLearned


class GroundsDesk:
    """GroundsLearned follows each question, with the step from what was known to what is."""

    def __init__(self, post: Post) -> None:
        self._post = post

    def tokenizer(self, name: str) -> None:
        """Read how many tokens the tokenizer has that a plan names; some are megabytes."""

        def look() -> Callable[[Grounds], Grounds]:
            from gpudeck.services.models.tokenizer import tokenizer_tokens

            tokens = tokenizer_tokens(name)
            return lambda grounds: grounds.with_tokenizer(name, tokens)

        self._ask("tokenizer", look)

    def key(self, engine: str, has_key: Callable[[str], bool]) -> None:
        """Look whether the engine has an API key, by asking `has_key`."""

        def look() -> Callable[[Grounds], Grounds]:
            is_set = has_key(engine)
            return lambda grounds: grounds.with_key(engine, is_set=is_set)

        self._ask("engine-key", look)

    def _ask(self, name: str, look: Callable[[], Callable[[Grounds], Grounds]]) -> None:
        threading.Thread(target=lambda: self._post(GroundsLearned(look())), name=name, daemon=True).start()
