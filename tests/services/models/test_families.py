"""Every family that is known, against the figures of published models."""

from pathlib import Path

import pytest

from gpudeck.services.memory.kv_cache import layer_token_bytes
from gpudeck.services.memory.settings import settings_for
from gpudeck.services.models.checkpoint import total_bytes
from gpudeck.services.models.read import read_model
from tests.services.models.files import write_config
from tests.services.models.published import PUBLISHED, Published
from tests.services.rules.plans import spec


@pytest.mark.parametrize("published", PUBLISHED, ids=[one.name for one in PUBLISHED])
def test_parameters_and_bytes_per_token(tmp_path: Path, published: Published) -> None:
    read = read_model(str(write_config(tmp_path, whole=published.config)))
    assert read.parameters == pytest.approx(published.parameters, rel=0.01)
    assert read.layers * layer_token_bytes(read, settings_for(read, spec((0,)), None), 1) == published.kv_bytes
    assert read.supports_pipeline
    assert all("roughly" in guess for guess in read.guesses)


def by_name(name: str) -> Published:
    return next(one for one in PUBLISHED if one.name == name)


# Sizes of the quantized checkpoints' files as the hub lists them, in GB; AWQ and GPTQ count their scales twice, as vLLM
# holds them, which is why 3 % are allowed.
@pytest.mark.parametrize(
    ("name", "quantization", "size"),
    [
        ("Qwen2-7B", {"quant_method": "awq", "bits": 4, "group_size": 128}, 5.57),
        ("Qwen2-7B", {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False}, 5.58),
        ("Qwen2.5-72B", {"quant_method": "awq", "bits": 4, "group_size": 128}, 41.6),
        (
            "Llama-2-70B",
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float", "strategy": "tensor"}}},
            },
            69.5,
        ),
        ("DeepSeek-V3", {"quant_method": "fp8", "weight_block_size": [128, 128]}, 672.6),
        ("GPT-OSS-20B", {"quant_method": "mxfp4"}, 13.76),
        ("GPT-OSS-120B", {"quant_method": "mxfp4"}, 65.25),
        ("Mistral-Small-24B", {"quant_method": "bitsandbytes", "load_in_4bit": True}, 15.2),
        ("Llama-3.1-405B", {"quant_method": "modelopt", "quant_algo": "FP8"}, 410.0),
    ],
)
def test_a_quantized_checkpoint_without_its_files(
    tmp_path: Path, name: str, quantization: dict[str, object], size: float
) -> None:
    published = by_name(name)
    config = published.config | {"quantization_config": quantization}
    read = read_model(str(write_config(tmp_path, whole=config)))
    assert read.quantization == quantization["quant_method"]
    assert read.parameters == pytest.approx(published.parameters, rel=0.01)
    assert read.weights is not None
    assert total_bytes(read.weights, 2) / 1e9 == pytest.approx(size, rel=0.03)
