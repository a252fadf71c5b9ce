"""Which runner this machine gets."""

import os
from collections.abc import Collection
from pathlib import Path

from gpudeck.services.engine.types import Runner, Scope
from gpudeck.services.errors import OperatorError

PREFIX = "vllm-"
DEMO_PREFIX = "gpudeck-demo-"


def open_runner(*, demo: bool = False, allow: Collection[Scope] = tuple(Scope)) -> Runner:
    """The system's systemd for root, the user's own for others, and the embedded runner where neither answers.

    The embedded runner's description says why.  Raises OperatorError where `allow` leaves nothing that works here.
    """
    prefix = DEMO_PREFIX if demo else PREFIX
    wanted = Scope.SYSTEM if os.geteuid() == 0 else Scope.USER
    reason = "systemd is not wanted"
    if wanted in allow:
        try:
            return _systemd_runner(wanted, prefix)
        except OperatorError as error:
            reason = str(error)
    if Scope.EMBEDDED not in allow:
        raise OperatorError(reason)
    from gpudeck.services.engine.embedded import EmbeddedRunner

    return EmbeddedRunner(prefix=prefix, reason=reason)


def _systemd_runner(scope: Scope, prefix: str) -> Runner:
    if not Path("/run/systemd/system").is_dir():  # sd_booted(3)
        raise OperatorError("This machine was not booted with systemd.")
    try:
        from gpudeck.services.engine.systemd.manager import SystemdRunner
    except ImportError as error:
        raise OperatorError(
            f"D-Bus can not be spoken ({error.name or error}): apt-get install python3-gi, "
            "and let gpudeck's environment see the system's packages."
        ) from None
    return SystemdRunner(scope, prefix)
