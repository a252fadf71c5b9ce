"""The whole examination, on the fake NVML and an environment that holds what a test needs."""

from pathlib import Path

import pytest

from gpudeck.services.box.source import open_source
from gpudeck.services.doctor.check import Health
from gpudeck.services.doctor.examine import Examination, examine
from gpudeck.services.doctor.report import DOCTOR_DOCUMENT, document
from tests.rigs.fakenvml.fixtures import FakeNvml
from tests.services.box.boxes import pair
from tests.services.doctor.environments import environment

PACKAGES = {"vllm": "0.24.0", "torch": "2.11.0"}


@pytest.fixture
def examined(fake_nvml: FakeNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Examination:
    """A box whose driver is too old for its engine."""
    fake_nvml(pair(), (), driver="550.54.15", cuda="12040")
    program = environment(tmp_path / "env", PACKAGES, "13.0", ["torch==2.10.0"])
    monkeypatch.setenv("GPUDECK_VLLM", str(program))
    return examine(open_source(demo=None, box_file=None), demo=False, unicode=True)


def test_each_part_is_told_and_what_does_not_go_together(examined: Examination) -> None:
    parts = {check.part: check for check in examined.checks}
    assert parts["driver"].says == "2 cards, driver 550.54.15, CUDA 12.4."
    assert parts["vLLM"].health is Health.FINE
    assert "vllm wants torch 2.10.0 and 2.11.0 is there" in parts["versions"].says
    assert parts["CUDA"].health is Health.MISSING
    assert {"engine runner", "journal", "terminal"} <= set(parts)
    assert all(check.says.endswith(".") for check in examined.checks)


def test_the_document_has_its_shape(examined: Examination) -> None:
    found = document(examined)
    DOCTOR_DOCUMENT.check(found, "")
    assert found["versions"]["cuda"] == "13.0"
    assert found["host"]["memory_total_bytes"] > 0


def test_a_machine_without_a_driver_and_without_vllm(
    fake_nvml: FakeNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nvml(pair(), (), init="!DRIVER_NOT_LOADED")
    monkeypatch.setenv("GPUDECK_VLLM", str(tmp_path / "none"))
    found = examine(open_source(demo=None, box_file=None), demo=False, unicode=False)
    parts = {check.part: check for check in found.checks}
    assert parts["driver"].health is parts["vLLM"].health is Health.MISSING
    assert "CUDA" not in parts
    assert parts["terminal"].health is Health.LESS
    DOCTOR_DOCUMENT.check(document(found), "")
