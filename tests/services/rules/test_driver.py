"""The driver against the engine's CUDA."""

from dataclasses import replace

import pytest

from gpudeck.services.rules.judge import judge
from gpudeck.services.rules.surroundings import Surroundings
from tests.services.rules.plans import MIXED, model, rules, spec


@pytest.mark.parametrize(
    ("driver", "offered", "engine", "version", "expected"),
    [
        ("580.65.06", "13.0", "13.0", "0.33", {}),
        ("575.51.03", "12.9", "13.0", "0.33", {"driver-too-old": "error"}),
        ("470.57.02", "11.4", "12.8", "0.10", {"driver-too-old": "error"}),
        ("550.54.14", "12.4", "12.8", "0.10", {"driver-minor-older": "info"}),
        ("570.26", "12.8", "12.8", "0.10", {}),
        ("570.26", "12.8", None, "0.33", {"driver-below-wheel": "info"}),
        ("570.26", "12.8", None, "0.19.1", {}),
        ("515.43.04", "11.7", None, "0.33", {"driver-aged": "warning"}),
        ("525.60.13", "11.7", None, "0.19", {"driver-aged": "warning"}),
        ("580.95.05", "13.0", None, "0.33", {}),
        (None, None, "13.0", "0.33", {}),
        ("unknown", "?", None, "0.33", {}),
    ],
)
def test_a_driver(
    driver: str | None, offered: str | None, engine: str | None, version: str, expected: dict[str, str]
) -> None:
    box = replace(MIXED, driver=driver, cuda=offered)
    around = Surroundings(vllm_version=version, engine_cuda=engine)
    assert rules(judge(box, model("llama-3.2-1b"), spec((1,)), around=around)) == expected
