"""Which runner a machine without systemd gets, and what it says of it."""

import os
from pathlib import Path

import pytest

from gpudeck.services.engine.choose import open_runner
from gpudeck.services.engine.types import Scope
from gpudeck.services.errors import OperatorError

booted = pytest.mark.skipif(Path("/run/systemd/system").is_dir(), reason="systemd runs here")


@booted
def test_without_systemd_engines_are_embedded_and_the_reason_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    runner = open_runner()
    assert runner.scope is Scope.EMBEDDED
    assert "This machine was not booted with systemd" in runner.description
    runner.close()


@booted
def test_where_only_systemd_will_do_its_absence_is_an_error() -> None:
    wanted = Scope.SYSTEM if os.geteuid() == 0 else Scope.USER
    with pytest.raises(OperatorError, match="not booted with systemd"):
        open_runner(allow=(wanted,))


def test_the_demo_has_names_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    runner = open_runner(demo=True, allow=(Scope.EMBEDDED,))
    assert runner._prefix == "gpudeck-demo-"  # type: ignore[attr-defined]
    runner.close()
