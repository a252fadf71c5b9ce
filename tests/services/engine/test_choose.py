"""Which runner a machine gets, and what it says of it."""

import os
from pathlib import Path

import pytest

from gpudeck.services.engine import choose
from gpudeck.services.engine.choose import open_runner
from gpudeck.services.engine.types import Scope
from gpudeck.services.errors import OperatorError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture
def without_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "_BOOTED", tmp_path / "not-there")


@pytest.fixture
def with_a_dead_bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that was booted with systemd, and no bus that answers."""
    monkeypatch.setattr(choose, "_BOOTED", tmp_path)
    nowhere = f"unix:path={tmp_path / 'no-bus'}"
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", nowhere)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", nowhere)


@pytest.mark.usefixtures("without_systemd")
def test_without_systemd_engines_are_embedded_and_the_reason_is_said() -> None:
    runner = open_runner()
    assert runner.scope is Scope.EMBEDDED
    assert "This machine was not booted with systemd" in runner.description
    runner.close()


@pytest.mark.usefixtures("without_systemd")
def test_where_only_systemd_will_do_its_absence_is_an_error() -> None:
    wanted = Scope.SYSTEM if os.geteuid() == 0 else Scope.USER
    with pytest.raises(OperatorError, match="not booted with systemd"):
        open_runner(allow=(wanted,))
    with pytest.raises(OperatorError, match="not booted with systemd: leave --scope system out"):
        open_runner(scope=Scope.SYSTEM)


@pytest.mark.usefixtures("with_a_dead_bus")
def test_a_dead_bus_is_told_and_is_no_reason_for_the_embedded_runner() -> None:
    with pytest.raises(OperatorError, match=r"can not be reached over .*bus.* --scope embedded runs engines as"):
        open_runner()
    asked = open_runner(scope=Scope.EMBEDDED)
    assert (asked.scope, asked.description) == (Scope.EMBEDDED, "embedded: as you asked")
    asked.close()


@pytest.mark.usefixtures("with_a_dead_bus")
def test_a_demo_runs_on_a_dead_bus_too() -> None:
    runner = open_runner(demo=True)
    assert runner.scope is Scope.EMBEDDED
    assert "can not be reached" in runner.description
    runner.close()


def test_the_demo_has_names_of_its_own() -> None:
    runner = open_runner(demo=True, allow=(Scope.EMBEDDED,))
    assert runner._prefix == "gpudeck-demo-"  # type: ignore[attr-defined]
    runner.close()
