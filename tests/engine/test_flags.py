"""The tables of what vLLM takes, held to the real parser and types of the CPU build."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpudeck.services.memory.settings import default_utilization
from gpudeck.services.plan.versions import release
from gpudeck.services.rules.architecture import LEAST_CAPABILITY
from gpudeck.services.rules.flags import GONE, GONE_VARIABLES
from gpudeck.services.rules.options import KV_CACHE_DTYPES

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not os.environ.get("GPUDECK_ENGINE_ENV"), reason="no engine environment: tests/run --all"),
]

_TELL = """
import json, typing
import vllm
from vllm import envs
from vllm.config.cache import CacheConfig, CacheDType
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.model_executor.layers.quantization import QuantizationMethods
from vllm.utils.argparse_utils import FlexibleArgumentParser

parser = make_arg_parser(FlexibleArgumentParser(prog="vllm serve"))
print(json.dumps({
    "version": vllm.__version__,
    "options": sorted({name for action in parser._actions for name in action.option_strings}),
    "variables": sorted(envs.environment_variables),
    "kv_cache_dtypes": typing.get_args(CacheDType),
    "quantization": typing.get_args(QuantizationMethods),
    "utilization": CacheConfig().gpu_memory_utilization,
}))
"""


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """What the engine's own Python says of its vLLM."""
    python = Path(os.environ["GPUDECK_ENGINE_ENV"]) / "bin" / "python"
    answer = subprocess.run([python, "-c", _TELL], capture_output=True, text=True, check=True, timeout=240)
    document: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return document


def test_options_that_are_called_gone_are_gone_and_the_others_are_there(told: dict[str, Any]) -> None:
    there = set(told["options"])
    for entry in GONE:
        assert (entry.option in there) == (release(told["version"]) < release(entry.since)), entry
        named = {word.strip(",;") for word in entry.instead.split() if word.startswith("--")}
        assert named <= there, entry


def test_variables_that_are_called_gone_are_not_read(told: dict[str, Any]) -> None:
    assert not set(GONE_VARIABLES) & set(told["variables"])
    named = {word for instead in GONE_VARIABLES.values() for word in instead.split() if word.startswith("--")}
    assert named <= set(told["options"])


def test_every_type_and_method_of_vllm_is_known(told: dict[str, Any]) -> None:
    assert set(told["kv_cache_dtypes"]) == set(KV_CACHE_DTYPES)
    assert set(told["quantization"]) <= set(LEAST_CAPABILITY)


def test_the_default_share(told: dict[str, Any]) -> None:
    assert told["utilization"] == default_utilization(told["version"])
