"""Which runner this machine gets."""

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from gpudeck.services.engine.types import Runner, Scope
from gpudeck.services.errors import OperatorError

PREFIX = "vllm-"
DEMO_PREFIX = "gpudeck-demo-"
_BOOTED = Path("/run/systemd/system")  # sd_booted(3)


def open_runner(*, demo: bool = False, scope: Scope | None = None, allow: Collection[Scope] = tuple(Scope)) -> Runner:
    """The system's systemd for root, for others their own with the system's engines beside it.

    Where the machine was not booted with systemd, and where `allow` leaves nothing else, the embedded runner, whose
    description says why.  A systemd that does not answer is an error and no reason for it: its engines may run, and
    those of the embedded runner would not be found again later.  Only a demo takes it then too.  `scope` asks for one
    of the three and no other.

    Raises OperatorError where there is none.
    """
    prefix = DEMO_PREFIX if demo else PREFIX
    wanted = scope or (Scope.SYSTEM if os.geteuid() == 0 else Scope.USER)
    if wanted is Scope.EMBEDDED:
        return _embedded(prefix, "as you asked", allow)
    if wanted not in allow:
        return _embedded(prefix, "systemd is not wanted", allow)
    if not _BOOTED.is_dir():
        if scope is not None:
            raise OperatorError(f"This machine was not booted with systemd: leave --scope {scope.value} out.")
        return _embedded(prefix, "This machine was not booted with systemd", allow)
    try:
        return _of_systemd(prefix, wanted, alone=scope is not None or demo)
    except OperatorError as error:
        if demo and scope is None:
            return _embedded(prefix, str(error), allow)
        way_out = (
            "" if scope is not None else " Without it, --scope embedded runs engines as processes of gpudeck's own."
        )
        raise OperatorError(f"{error}{way_out}") from None


def _embedded(prefix: str, reason: str, allow: Collection[Scope]) -> Runner:
    if Scope.EMBEDDED not in allow:
        raise OperatorError(f"{reason.removesuffix('.')}.")
    from gpudeck.services.engine.embedded import EmbeddedRunner

    return EmbeddedRunner(prefix=prefix, reason=reason)


def _of_systemd(prefix: str, scope: Scope, *, alone: bool) -> Runner:
    try:
        from gpudeck.services.engine.systemd.beside import Beside
        from gpudeck.services.engine.systemd.manager import SystemdRunner
    except ImportError as error:
        raise OperatorError(
            f"D-Bus can not be spoken ({error.name or error}): apt-get install python3-gi, "
            "and let gpudeck's environment see the system's packages."
        ) from None
    own = SystemdRunner(scope, prefix)
    if scope is Scope.USER and not alone:
        with suppress(OperatorError):  # what is the user's own works without the system's bus
            return Beside(own, SystemdRunner(Scope.SYSTEM, prefix))
    return own
