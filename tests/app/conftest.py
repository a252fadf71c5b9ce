"""A home of its own for each test of the app, and the embedded runner whatever the machine was booted with."""

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from gpudeck.app.__main__ import main
from gpudeck.services.engine import choose
from gpudeck.services.engine.types import Scope
from tests.rigs.as_command import Done, Gpudeck


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Nothing of the operator's own home is read or written, and every engine of the test ends with it."""
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    for variable in ("STATE", "CACHE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{variable}_HOME", str(place / variable.lower()))
    for variable in [name for name in os.environ if name.startswith(("GPUDECK_", "VLLM_", "HF_"))]:
        if variable not in ("GPUDECK_FAKE_NVML",):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("GPUDECK_SIMULATOR_SPEED", "20")
    embedded = partial(choose.open_runner, allow=(Scope.EMBEDDED,))
    monkeypatch.setattr(choose, "open_runner", embedded)
    yield place
    for demo in (True, False):
        runner = embedded(demo=demo)
        for engine in runner.engines():
            runner.remove(engine.name)
        runner.close()


@pytest.fixture
def gpudeck(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Gpudeck:
    """gpudeck in this process, where it gets the embedded runner."""

    def run(*words: str) -> Done:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["gpudeck", *words])
        try:
            code = main()
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run
