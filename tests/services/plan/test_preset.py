"""The cautious options of a first start."""

from dataclasses import replace

from gpudeck.services.plan.preset import cautious, is_cautious, stepped_up
from gpudeck.services.plan.types import EngineOptions
from tests.services.memory.test_token import LLAMA


def test_a_first_start_is_small_and_keeps_what_it_does_not_decide() -> None:
    options = cautious(EngineOptions(port=8001, dtype="half"), LLAMA)
    assert options == EngineOptions(
        port=8001,
        dtype="half",
        max_model_len=8192,
        gpu_memory_utilization=0.85,
        max_num_seqs=32,
        max_num_batched_tokens=8192,
    )
    assert is_cautious(options, LLAMA)
    assert not is_cautious(replace(options, max_num_seqs=64), LLAMA)


def test_a_shorter_model_keeps_its_own_length() -> None:
    assert cautious(EngineOptions(), replace(LLAMA, max_position_embeddings=2048)).max_model_len == 2048
    assert cautious(EngineOptions(), replace(LLAMA, max_position_embeddings=None)).max_model_len == 8192


def test_stepping_up_leaves_them_to_vllm() -> None:
    assert stepped_up(cautious(EngineOptions(port=8001), LLAMA)) == EngineOptions(port=8001)
