"""Pairs of model and settings that the memory model was never fitted to: what `truth` runs on a real card."""

PAIRS: dict[str, tuple[str, str]] = {
    # id: (directory below the models, options of vllm serve)
    "P-qwen2.5-7b-cautious": (
        "qwen2.5-7b",
        "--max-model-len 8192 --gpu-memory-utilization 0.85 --max-num-seqs 32 --max-num-batched-tokens 8192",
    ),
    "P-llama-8b-fp8kv-graphs": ("llama-3.1-8b", "--max-model-len 65536 --max-num-seqs 128 --kv-cache-dtype fp8"),
    "P-mistral-7b-v0.3-bt4096": (
        "mistral-7b-v0.3",
        "--enforce-eager --max-num-batched-tokens 4096 --max-num-seqs 64",
    ),
    "P-qwen3-8b-graphs-default": ("qwen3-8b", ""),
    "P-qwen3-8b-fp8-weights": ("qwen3-8b", "--enforce-eager --quantization fp8 --max-num-seqs 512"),
    "P-llama-1b-bt16384-s1024": (
        "llama-3.2-1b",
        "--enforce-eager --max-num-batched-tokens 16384 --max-num-seqs 1024 --max-model-len 16384",
    ),
    "P-llama-1b-graphs-util0.5": (
        "llama-3.2-1b",
        "--gpu-memory-utilization 0.5 --max-num-seqs 64 --max-model-len 32768",
    ),
    "P-gemma-2-9b-bt2048": ("gemma-2-9b", "--enforce-eager --max-num-batched-tokens 2048 --max-num-seqs 64"),
    "P-gemma-3-12b-bt16384": (
        "gemma-3-12b-text",
        "--enforce-eager --max-num-batched-tokens 16384 --max-num-seqs 64 --max-model-len 65536",
    ),
    "P-deepseek-v2-lite-bt2048": (
        "deepseek-v2-lite",
        "--enforce-eager --max-num-batched-tokens 2048 --max-num-seqs 64 --max-model-len 16384",
    ),
    "P-deepseek-v2-lite-graphs": ("deepseek-v2-lite", "--max-num-seqs 64 --max-model-len 16384"),
    "P-phi-3-mini-s1024": ("phi-3-mini-4k", "--enforce-eager --max-num-batched-tokens 4096 --max-num-seqs 1024"),
    "P-qwen2.5-32b-awq-graphs": ("qwen2.5-32b-awq", "--max-num-seqs 64 --max-model-len 16384"),
    "P-gpt-oss-20b-bt2048": (
        "gpt-oss-20b",
        "--enforce-eager --max-num-batched-tokens 2048 --max-num-seqs 64 --max-model-len 32768",
    ),
    "P-qwen3-30b-a3b-bt2048": (
        "qwen3-30b-a3b",
        "--enforce-eager --max-num-batched-tokens 2048 --max-num-seqs 1024 --max-model-len 32768",
    ),
    "P-falcon-7b-bt2048": ("falcon-7b", "--enforce-eager --max-num-batched-tokens 2048 --max-num-seqs 1024"),
    "P-qwen2.5-1.5b-s32": ("qwen2.5-1.5b", "--enforce-eager --max-num-seqs 32 --max-model-len 8192"),
    "P-llama-70b-fp8": (
        "llama-3.1-70b",
        "--enforce-eager --quantization fp8 --max-num-seqs 64 --max-model-len 32768 --gpu-memory-utilization 0.95",
    ),
}
