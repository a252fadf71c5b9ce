"""The words and variables that a spec becomes."""

from dataclasses import replace

from gpudeck.services.plan.command import argv, environment
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement

BRIDGED = EngineSpec("llama", "/models/llama", Placement(((0, 2), (1, 3))))


def test_a_single_card_asks_for_no_parallel_size() -> None:
    spec = EngineSpec("llama", "meta-llama/Llama-3.1-8B", Placement(((1,),)))
    assert argv(spec) == ("vllm", "serve", "meta-llama/Llama-3.1-8B", "--host", "127.0.0.1", "--port", "8000")
    assert environment(spec)["CUDA_VISIBLE_DEVICES"] == "1"


def test_stages_become_sizes_and_their_cards_stand_in_rank_order() -> None:
    words = argv(BRIDGED)
    assert words[3:7] == ("--tensor-parallel-size", "2", "--pipeline-parallel-size", "2")
    assert "--data-parallel-size" not in words
    assert list(environment(BRIDGED).items())[:2] == [
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
        ("CUDA_VISIBLE_DEVICES", "0,2,1,3"),
    ]


def test_copies_become_data_parallelism() -> None:
    words = argv(replace(BRIDGED, placement=Placement(((0, 2), (1, 3)), replicas=2)))
    assert words[3:7] == ("--tensor-parallel-size", "2", "--data-parallel-size", "2")


def test_every_option_appears_under_vllms_name_and_unknown_ones_last() -> None:
    options = EngineOptions(
        host="0.0.0.0",
        port=9001,
        served_model_name="two words",
        max_model_len=8192,
        gpu_memory_utilization=0.85,
        max_num_seqs=32,
        max_num_batched_tokens=4096,
        kv_cache_dtype="fp8",
        quantization="awq",
        dtype="float16",
        load_format="dummy",
        enforce_eager=True,
        extra=("--seed", "7"),
    )
    words = argv(replace(BRIDGED, options=options, program=("/opt/vllm/bin/python", "-m", "vllm")))
    assert words[:5] == ("/opt/vllm/bin/python", "-m", "vllm", "serve", "/models/llama")
    text = " ".join(words)
    for part in (
        "--host 0.0.0.0 --port 9001",
        "--max-model-len 8192 --gpu-memory-utilization 0.85",
        "--max-num-seqs 32 --max-num-batched-tokens 4096",
        "--kv-cache-dtype fp8 --quantization awq --dtype float16 --load-format dummy --enforce-eager",
    ):
        assert part in text
    assert words[words.index("--served-model-name") + 1] == "two words"
    assert words[-2:] == ("--seed", "7")


def test_the_layer_partition_and_the_specs_own_variables_reach_the_environment() -> None:
    spec = replace(BRIDGED, layer_partition=(14, 18), environment=(("HF_HOME", "/srv/hf"), ("PYTHONUNBUFFERED", "0")))
    variables = environment(spec)
    assert variables["VLLM_PP_LAYER_PARTITION"] == "14,18"
    assert variables["HF_HOME"] == "/srv/hf"
    assert variables["PYTHONUNBUFFERED"] == "0"
    assert "VLLM_PP_LAYER_PARTITION" not in environment(BRIDGED)
