"""What a call of gpudeck left behind, and gpudeck as a process of its own."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

# It takes the embedded runner whatever the machine was booted with.
EMBEDDED = (
    sys.executable,
    "-c",
    "import functools, sys; from gpudeck.services.engine import choose, types; from gpudeck.app.__main__ import main; "
    "choose.open_runner = functools.partial(choose.open_runner, allow=(types.Scope.EMBEDDED,)); sys.exit(main())",
)


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def refused(self) -> bool:
        """One sentence, with nothing on standard output."""
        return self.code == 1 and self.out == "" and self.err.count("\n") == 1 and self.err.startswith("gpudeck: ")


Gpudeck = Callable[..., Done]
