"""A runner of the booted systemd, and an end to whatever a test started."""

from collections.abc import Iterator

import pytest

from gpudeck.services.engine.types import Scope


@pytest.fixture
def runner() -> Iterator[object]:
    from gpudeck.services.engine.systemd.manager import SystemdRunner

    runner = SystemdRunner(Scope.SYSTEM)
    yield runner
    for state in runner.engines():
        if state.managed:
            runner.remove(state.name)
    runner.close()
