"""Which weights share a scale, and which scheme compressed-tensors names."""

from typing import Any

import pytest

from gpudeck.services.models.fields import Fields
from gpudeck.services.models.quantization import quantization_of

FP8 = {"num_bits": 8, "type": "float"}


def read(config: dict[str, Any]) -> Any:
    return quantization_of(Fields({"quantization_config": config}, "config.json"))


@pytest.mark.parametrize(
    ("weights", "activations", "scheme", "group"),
    [
        ({"num_bits": 4, "type": "int", "group_size": 128}, None, None, 128),
        ({"num_bits": 4, "type": "int", "group_size": 128}, FP8, "W4A8-FP8", 128),
        (FP8, FP8, "W8A8-FP8", None),
        ({"num_bits": 4, "type": "float", "group_size": 16}, {"num_bits": 4, "type": "float"}, "NVFP4", 16),
        ({"num_bits": 4, "type": "float", "group_size": 32}, None, "MXFP4", 32),
        ({"num_bits": 8, "type": "int"}, {"num_bits": 8, "type": "int"}, None, None),
    ],
)
def test_schemes(
    weights: dict[str, Any], activations: dict[str, Any] | None, scheme: str | None, group: int | None
) -> None:
    groups = {"group_0": {"weights": weights, "input_activations": activations}}
    found = read({"quant_method": "compressed-tensors", "config_groups": groups})
    assert (found.scheme, found.group) == (scheme, group)


@pytest.mark.parametrize(
    ("sides", "expected"),
    [([128, 128], (128, 128)), ([64, 128], (64, 128)), ([128], None), (["a", 128], None), ([0, 1], None), ("x", None)],
)
def test_blocks(sides: object, expected: tuple[int, int] | None) -> None:
    assert read({"quant_method": "fp8", "weight_block_size": sides}).block == expected


@pytest.mark.parametrize(("size", "expected"), [(128, 128), (-1, None)])
def test_groups(size: int, expected: int | None) -> None:
    assert read({"quant_method": "gptq", "bits": 4, "group_size": size}).group == expected
