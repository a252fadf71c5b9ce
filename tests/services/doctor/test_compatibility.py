"""Which driver, CUDA and vLLM go together."""

from dataclasses import replace

import pytest

from gpudeck.services.doctor.check import Health
from gpudeck.services.doctor.compatibility import DRIVER_OF_CUDA, cuda, versions
from gpudeck.services.doctor.engine_environment import Pin, Versions


def engine(built_for: str | None, *pins: Pin) -> Versions:
    return Versions("3.12.3", "0.24.0", "2.11.0", built_for, "2.28.9", pins)


@pytest.mark.parametrize(
    ("built_for", "driver", "offered", "health", "words"),
    [
        ("12.8", "570.124.06", "12.8", Health.FINE, "runs on this driver"),
        ("12.8", "580.95.05", "13.0", Health.FINE, "takes up to 13.0"),
        ("11.8", "550.54.15", "12.4", Health.FINE, "runs on this driver"),
        ("12.9", "550.54.15", "12.4", Health.LESS, "install driver 575.51.03 or newer"),
        ("13.1", "580.95.05", "13.0", Health.LESS, "install driver 590.44.01 or newer"),
        ("12.7", "550.54.15", "12.4", Health.LESS, "install a newer driver"),
        ("13.0", "575.51.03", "12.9", Health.MISSING, "install driver 580.65.06 or newer, or a vLLM built for CUDA 12"),
        ("12.1", "470.57.02", "11.4", Health.MISSING, "install driver 530.30.02 or newer, or a vLLM built for CUDA 11"),
        ("12.8", None, None, Health.LESS, "does not tell its own"),
        (None, "580.95.05", "13.0", Health.MISSING, "built without CUDA"),
    ],
)
def test_the_cuda_of_the_wheel_against_the_drivers(
    built_for: str | None, driver: str | None, offered: str | None, health: Health, words: str
) -> None:
    check = cuda(engine(built_for), driver, offered)
    assert (check.part, check.health) == ("CUDA", health)
    assert words in check.says
    assert check.says.endswith(".")


def test_no_torch_is_not_taken_for_a_torch_without_cuda() -> None:
    check = cuda(replace(engine(None), torch=None), "580.95.05", "13.0")
    assert check.health is Health.MISSING
    assert check.says.startswith("torch does not lie beside vLLM")


def test_the_table_grows_with_cuda() -> None:
    numbers = [
        (tuple(map(int, release.split("."))), tuple(map(int, driver.split("."))))
        for release, driver in DRIVER_OF_CUDA.items()
    ]
    assert numbers == sorted(numbers)
    assert [driver for _, driver in numbers] == sorted(driver for _, driver in numbers)


def test_versions_are_told_and_pins_that_are_not_kept_with_the_way_out() -> None:
    fine = versions(engine("13.0", Pin("vllm", "torch", "2.11.0", "2.11.0+cu130")))
    assert fine.health is Health.FINE
    assert "vLLM 0.24.0, torch 2.11.0, CUDA 13.0, NCCL 2.28.9" in fine.says
    torn = versions(
        engine("13.0", Pin("vllm", "torch", "2.11.0", "2.10.0"), Pin("torch", "nvidia-nccl-cu13", "2.28.9", "2.27.5"))
    )
    assert torn.health is Health.LESS
    assert "vllm wants torch 2.11.0 and 2.10.0 is there (and 1 more)" in torn.says
    assert "pip install vllm==0.24.0" in torn.says


def test_what_is_not_installed_is_no_broken_pin() -> None:
    assert versions(engine("13.0", Pin("vllm", "tilelang", "0.1.9", None))).health is Health.FINE


def test_an_environment_without_vllm() -> None:
    check = versions(Versions("3.11.2", None, None, None, None))
    assert check.health is Health.MISSING
    assert "No vLLM" in check.says


@pytest.mark.parametrize(
    ("wanted", "found", "kept"),
    [
        ("2.11.0", "2.11.0", True),
        ("2.11.0", "2.11.0+cu130", True),
        ("2.11.0+cu128", "2.11.0+cu130", False),
        ("2.11.0", "2.11.1", False),
        ("2.11.0", None, False),
    ],
)
def test_a_builds_mark_counts_only_where_one_is_asked_for(wanted: str, found: str | None, kept: bool) -> None:
    assert Pin("vllm", "torch", wanted, found).kept is kept
