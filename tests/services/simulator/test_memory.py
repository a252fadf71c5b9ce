"""How the simulated engine shares a model out."""

from pathlib import Path

import pytest

from gpudeck.services.simulator.memory import GIB, RefusedError, plan
from gpudeck.services.simulator.models import make_models
from gpudeck.services.simulator.options import parse


@pytest.fixture
def shelf(tmp_path: Path) -> dict[str, str]:
    return {path.name: str(path) for path in make_models(tmp_path)}


def test_weights_are_those_of_the_dimensions(shelf: dict[str, str]) -> None:
    load = plan(parse([shelf["demo-llama-3.1-8b"], "--max-model-len", "8192"]), {})
    (rank,) = load.ranks
    assert rank.weights / GIB == pytest.approx(14.96, abs=0.01)  # vLLM itself says 15.0 GiB of this model
    assert load.kv_cache_tokens == (int(24 * GIB * 0.92) - rank.weights - int(1.2 * GIB)) // 131072 // 16 * 16


def test_stages_follow_the_partition(shelf: dict[str, str]) -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "0,1", "VLLM_PP_LAYER_PARTITION": "8,24"}
    load = plan(parse([shelf["demo-llama-3.1-8b"], "-pp", "2", "--max-model-len", "8192"]), environment)
    assert load.ranks[1].weights == pytest.approx(3 * load.ranks[0].weights, rel=1e-6)


def test_the_remainder_goes_where_vllm_puts_it(shelf: dict[str, str]) -> None:
    """32 layers over 3 stages are 11, 11 and 10 (get_pp_indices)."""
    load = plan(parse([shelf["demo-llama-3.1-8b"], "-pp", "3", "--max-model-len", "8192"]), {})
    shares = [rank.weights for rank in load.ranks]
    assert shares[0] == shares[1] == pytest.approx(shares[2] * 1.1, rel=1e-6)


def test_cards_have_the_sizes_that_are_told(shelf: dict[str, str]) -> None:
    options = parse([shelf["demo-qwen2.5-14b"], "-tp", "2", "--max-model-len", "8192"])
    environment = {"CUDA_VISIBLE_DEVICES": "1,2", "GPUDECK_SIMULATED_CARDS": f"{24 * GIB},{40 * GIB},{40 * GIB}"}
    large = plan(options, environment)
    small = plan(options, environment | {"CUDA_VISIBLE_DEVICES": "0,1"})
    assert [rank.gpu for rank in large.ranks] == [1, 2]
    assert large.kv_cache_tokens > small.kv_cache_tokens > 0


def test_a_model_that_does_not_fit_is_refused(shelf: dict[str, str]) -> None:
    with pytest.raises(RefusedError, match="No available memory for the cache blocks"):
        plan(parse([shelf["demo-llama-3.3-70b"]]), {})


def test_the_shelf_is_made_once(tmp_path: Path, shelf: dict[str, str]) -> None:
    config = Path(shelf["demo-qwen2.5-14b"]) / "config.json"
    config.write_text("{}")
    assert {path.name for path in make_models(tmp_path)} == set(shelf)
    assert config.read_text() == "{}"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(shelf)
