"""The demo's model shelf: directories with a config and a chat template but no weights, so that nothing is downloaded.

The dimensions are those of the published models that the names remind of; the names say that these are not they.
"""

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpudeck.services.errors import OperatorError

_NOTE = "A model of gpudeck's demo: its dimensions without its weights. Only the simulated engine can serve it.\n"
_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>\n{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
_LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "rms_norm_eps": 1e-05,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 128256,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 131072,
}
CONFIGS: Mapping[str, Mapping[str, Any]] = {
    # Llama-3.1-8B-Instruct: 16 GB in bfloat16, at home on one card.
    "demo-llama-3.1-8b": _LLAMA
    | {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32},
    # Qwen2.5-14B-Instruct: 30 GB, too large for a card of 24 GB.
    "demo-qwen2.5-14b": {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "hidden_act": "silu",
        "rms_norm_eps": 1e-06,
        "rope_theta": 1000000.0,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "vocab_size": 152064,
        "hidden_size": 5120,
        "intermediate_size": 13824,
        "num_hidden_layers": 48,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "max_position_embeddings": 32768,
        "use_sliding_window": False,
    },
    # Llama-3.3-70B-Instruct: 141 GB, more than the demo's box has: what a blocked plan looks like.
    "demo-llama-3.3-70b": _LLAMA
    | {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64},
}


def make_models(directory: Path) -> tuple[Path, ...]:
    """Make the model directories in `directory` (made if need be) and return them; what is there already stays.

    Raises OperatorError where the file system refuses.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        return tuple(_make(directory / name, config) for name, config in CONFIGS.items())
    except OSError as error:
        raise OperatorError(
            f"The demo's models can not be written to {error.filename or directory}: {error.strerror}."
        ) from None


def _make(path: Path, config: Mapping[str, Any]) -> Path:
    if path.is_dir():
        return path
    # Under its own name only when it is whole: a model directory without its config is a broken one.
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        for name, document in (
            ("config.json", config),
            ("generation_config.json", {"temperature": 0.7, "top_p": 0.9}),
            (
                "tokenizer_config.json",
                {"chat_template": _TEMPLATE, "model_max_length": config["max_position_embeddings"]},
            ),
        ):
            (temporary / name).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        (temporary / "README").write_text(_NOTE, encoding="utf-8")
        temporary.chmod(0o755)
        temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        if path.is_dir():  # another gpudeck was faster
            return path
        raise
    return path
