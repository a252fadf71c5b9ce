"""What config.json says of each family."""

from pathlib import Path
from typing import Any

import pytest

from gpudeck.services.models.read import read_model
from gpudeck.services.models.types import Experts, Mla, ModelFacts
from tests.services.models.files import write_config

MODELS = Path(__file__).parents[2] / "data" / "models"


def facts(name: str) -> ModelFacts:
    return read_model(str(MODELS / name))


# Parameters as the models' own pages give them.
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("llama-3.1-8b", 8_030_261_248),
        ("llama-3.1-70b", 70_553_706_496),
        ("llama-3.2-1b", 1_235_814_400),
        ("mistral-7b-v0.1", 7_241_732_096),
        ("mistral-7b-v0.3", 7_248_023_552),
        ("mixtral-8x22b", 140_630_071_296),
        ("qwen2.5-0.5b", 494_032_768),
        ("qwen2.5-7b", 7_615_616_512),
        ("qwen2.5-32b", 32_763_876_352),
        ("qwen3-8b", 8_190_735_360),
        ("qwen3-30b-a3b", 30_532_122_624),
        ("gemma-2-9b", 9_241_705_984),
        ("gemma-3-12b-text", 11_766_034_176),
        ("phi-3-mini-4k", 3_821_079_552),
        ("deepseek-v2-lite", 15_706_484_224),
        ("falcon-7b", 6_921_720_704),
    ],
)
def test_parameters_from_the_architecture(name: str, parameters: int) -> None:
    read = facts(name)
    assert read.parameters == parameters
    assert read.guesses == ()


def test_grouped_heads_and_a_head_dim_of_their_own() -> None:
    gemma = facts("gemma-2-9b")
    assert (gemma.attention_heads, gemma.kv_heads, gemma.head_dim) == (16, 8, 256)
    assert gemma.tied_embeddings
    falcon = facts("falcon-7b")
    assert (falcon.attention_heads, falcon.kv_heads, falcon.head_dim) == (71, 1, 64)


def test_which_layers_slide() -> None:
    assert facts("mistral-7b-v0.1").layer_kinds == ("sliding",) * 32
    assert facts("mistral-7b-v0.3").layer_kinds == ()
    assert facts("qwen2.5-7b").layer_kinds == ()
    assert facts("gemma-2-9b").layer_kinds[:3] == ("sliding", "full", "sliding")
    gemma3 = facts("gemma-3-12b-text")
    assert gemma3.layer_kinds[:7] == ("sliding",) * 5 + ("full", "sliding")
    assert gemma3.sliding_window == 1024
    assert facts("gpt-oss-20b").layer_kinds[:2] == ("sliding", "full")
    assert facts("granite-4.0-h-tiny").layer_kinds.count("state") == 36


def test_experts_and_latent_attention() -> None:
    deepseek = facts("deepseek-v2-lite")
    assert deepseek.mla == Mla(512, 64, 128, 128, None)
    assert deepseek.experts == Experts(64, 6, 1408, 2816)
    assert facts("mixtral-8x22b").experts == Experts(8, 2, 16384)
    assert facts("gpt-oss-20b").quantization == "mxfp4"


def test_the_length_that_rope_scaling_makes() -> None:
    assert facts("deepseek-v2-lite").max_position_embeddings == 163840
    assert facts("gpt-oss-20b").max_position_embeddings == 131072
    assert facts("llama-3.1-8b").max_position_embeddings == 131072


def test_a_quantized_checkpoint_is_smaller() -> None:
    awq, plain = facts("qwen2.5-32b-awq"), facts("qwen2.5-32b")
    assert awq.quantization == "awq"
    assert awq.parameters == plain.parameters
    assert awq.weights is not None
    assert awq.weights.layers[0].split.packed > 0
    assert awq.weights.embedding.packed == 0


def test_a_multimodal_wrapper_is_read_by_its_text_part(tmp_path: Path) -> None:
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
    directory = write_config(
        tmp_path / "gemma",
        architectures=["Gemma3ForConditionalGeneration"],
        model_type="gemma3",
        text_config=text,
        vision_config={"hidden_size": 1152, "num_hidden_layers": 27, "intermediate_size": 4304},
    )
    read = read_model(str(directory))
    assert read.multimodal
    assert (read.layers, read.hidden_size, read.attention_heads, read.kv_heads, read.head_dim) == (34, 2560, 8, 4, 256)
    assert read.tied_embeddings
    assert read.layer_kinds.count("full") == 5
    assert "roughly" in read.guesses[0]


def test_gpt2_and_opt_name_their_fields_otherwise(tmp_path: Path) -> None:
    gpt2: dict[str, Any] = {"n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257}
    nothing: dict[str, Any] = dict.fromkeys(
        ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
         "max_position_embeddings"), ...
    )  # fmt: skip
    read = read_model(
        str(
            write_config(
                tmp_path / "gpt2", **{**nothing, **gpt2, "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}
            )
        )
    )
    assert read.parameters == 124_439_808
    assert read.max_position_embeddings == 1024
    opt: dict[str, Any] = {
           "model_type": "opt", "hidden_size": 768, "ffn_dim": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
           "vocab_size": 50272, "max_position_embeddings": 2048, "architectures": ["OPTForCausalLM"],
           "intermediate_size": ..., "num_key_value_heads": ...}  # fmt: skip
    assert read_model(str(write_config(tmp_path / "opt", **opt))).parameters == 125_239_296


def test_an_unknown_family_is_judged_and_says_so(tmp_path: Path) -> None:
    read = read_model(str(write_config(tmp_path / "new", model_type="brandnew", architectures=["BrandNewForCausalLM"])))
    assert read.layers == 2
    assert read.parameters
    assert "brandnew is unknown" in read.guesses[0]


@pytest.mark.parametrize(
    ("architecture", "supported"),
    [("LlamaForCausalLM", True), ("WhisperForConditionalGeneration", False), ("Gemma3nForCausalLM", False)],
)
def test_models_without_pipeline_parallelism(tmp_path: Path, architecture: str, supported: bool) -> None:
    read = read_model(str(write_config(tmp_path / "model", architectures=[architecture])))
    assert read.supports_pipeline is supported


@pytest.mark.parametrize(
    ("config", "method"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "gptq"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "bitsandbytes"),
        ({"quant_algo": "NVFP4"}, "modelopt"),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4}}}},
            "compressed-tensors",
        ),
        ({"quant_method": "somethingnew"}, "somethingnew"),
    ],
)
def test_quantization_configs(tmp_path: Path, config: dict[str, object], method: str) -> None:
    read = read_model(str(write_config(tmp_path / "model", quantization_config=config)))
    assert read.quantization == method
    assert read.weights is not None
    assert read.weights.layers[0].split.packed > 0
