"""A Llama model directory small enough to make at once and real enough for vLLM to serve.

    python tests/rigs/tiny_model.py DIRECTORY

Config, tokenizer and chat template, without weights: serve it with `--load-format dummy`, which fills them with random
numbers, so that its answers are real tokens that mean nothing. No third-party import, so that any test can make one.
"""

import json
import re
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

VOCAB_SIZE = 512
BEGIN, END, ROLE = "<|begin|>", "<|end|>", "<|role|>"
SPECIAL = (BEGIN, END, ROLE)

CONFIG: dict[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    # 256 / 4 is a head_dim of 64: vLLM's CPU attention refuses small ones, and only at the first request.
    "hidden_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 4,
    "intermediate_size": 128,
    "vocab_size": VOCAB_SIZE,
    "max_position_embeddings": 2048,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "torch_dtype": "bfloat16",
    "bos_token_id": 0,
    "eos_token_id": 1,
}

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '" + ROLE + "' + message['role'] + '\n' + message['content'] + eos_token }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '" + ROLE + "assistant\n' }}{% endif %}"
)

# Any text serves; this one holds enough different words for the merges that fill the vocabulary.
TRAINING_TEXT = """
A box is one machine with its graphics cards, the links between them, the driver and the processors. A card stands
on the screen for one device. Links tell how two devices reach each other: bonded bridges, one switch, several
switches, the same host bridge, the same memory node, or across both sockets. A snapshot holds every reading at one
moment: utilisation, temperature, power, clocks and bytes in use. A stage is a group whose devices share each
layer, in rank order. Placements list the stages of one engine and the number of its replicas. The engine answers
questions over the network; it loads weights, sets aside memory for keys and values, warms up, captures graphs and
then says that it is ready. Findings name what is wrong or worth knowing, why that is so and how to mend it.
Together they make a verdict: blocked, caution, ready. When something fails, the decisive line of the log is shown
with its meaning. How are you today? Please write a short story about a quick brown fox, who jumped over lazy dogs;
count from zero to twenty, explain gravity and say hello world!
"""


def byte_alphabet() -> list[str]:
    """The characters that byte-level BPE writes for the bytes 0 … 255 (GPT-2's table: printable ones stay)."""
    plain = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)}
    moved = iter(range(256, 512))
    return [chr(byte if byte in plain else next(moved)) for byte in range(256)]


def train(alphabet: list[str], merges_wanted: int) -> list[tuple[str, str]]:
    """Byte-pair merges of TRAINING_TEXT, most frequent first; ties go to the pair that sorts first."""
    words = Counter(
        tuple(alphabet[byte] for byte in word.encode()) for word in re.findall(r" ?\w+| ?[^\s\w]+", TRAINING_TEXT)
    )
    merges: list[tuple[str, str]] = []
    while len(merges) < merges_wanted:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in pairwise(word):
                pairs[pair] += count
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        words = Counter({merged(word, best): count for word, count in words.items()})
    return merges


def merged(word: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    joined: list[str] = []
    for piece in word:
        if joined and (joined[-1], piece) == pair:
            joined[-1] += piece
        else:
            joined.append(piece)
    return tuple(joined)


def tokenizer() -> dict[str, object]:
    """The document of a tokenizer.json: three special tokens, 256 bytes and the merges that fill VOCAB_SIZE."""
    alphabet = byte_alphabet()
    merges = train(alphabet, VOCAB_SIZE - len(SPECIAL) - len(alphabet))
    entries = [*SPECIAL, *alphabet, *("".join(pair) for pair in merges)]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": number, "content": content, **flags} for number, content in enumerate(SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {entry: number for number, entry in enumerate(entries)},
            "merges": [list(pair) for pair in merges],
        },
    }


def make(directory: Path, **config: object) -> Path:
    """Write the model into `directory` (made if missing) and return it; `config` replaces entries of CONFIG.

    `make(d, hidden_size=64)` is a model that real vLLM starts and that kills it at the first request (head_dim 16).
    """
    directory.mkdir(parents=True, exist_ok=True)
    documents = {
        "config.json": CONFIG | config,
        "generation_config.json": {"bos_token_id": 0, "eos_token_id": 1, "temperature": 1.0},
        "tokenizer.json": tokenizer(),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": BEGIN,
            "eos_token": END,
            "pad_token": END,
            "model_max_length": CONFIG["max_position_embeddings"],
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
    }
    for name, document in documents.items():
        (directory / name).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return directory


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tiny_model.py DIRECTORY")
    print(make(Path(sys.argv[1])))
