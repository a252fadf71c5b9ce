"""The command line of `vllm serve`, as far as the simulated engine heeds or accepts it."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

# Accepted and without effect here: the options of `vllm serve` that operators' units hold most often.
_WITH_VALUE = (
    "--tokenizer",
    "--kv-cache-dtype",
    "--quantization",
    "--load-format",
    "--chat-template",
    "--tool-call-parser",
    "--reasoning-parser",
    "--distributed-executor-backend",
    "--attention-backend",
    "--block-size",
    "--seed",
    "--revision",
    "--hf-overrides",
    "--limit-mm-per-prompt",
    "--shutdown-timeout",
    "--uvicorn-log-level",
    "--kv-cache-memory-bytes",
    "--download-dir",
    "--generation-config",
)
_SWITCHES = (
    "--trust-remote-code",
    "--enable-prefix-caching",
    "--no-enable-prefix-caching",
    "--enable-chunked-prefill",
    "--enable-expert-parallel",
    "--enable-auto-tool-choice",
    "--disable-custom-all-reduce",
    "--disable-log-stats",
    "--disable-uvicorn-access-log",
    "--language-model-only",
)


@dataclass(frozen=True, slots=True)
class Options:
    model: str
    served_name: str
    host: str
    port: int
    api_key: str | None
    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int
    max_model_len: int | None
    gpu_memory_utilization: float
    max_num_seqs: int
    max_num_batched_tokens: int
    dtype: str
    enforce_eager: bool
    unlogged: tuple[str, ...]  # addresses that are left out of the access log
    non_default: str  # what vLLM logs as "non-default args"

    @property
    def world_size(self) -> int:
        """Of all replicas together."""
        return self.tensor_parallel_size * self.pipeline_parallel_size * self.data_parallel_size


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """In vLLM's words and with its exit status."""
        sys.stderr.write(f"usage: vllm serve [model_tag] [options]\nvllm serve: error: {message}\n")
        raise SystemExit(2)


def parse(words: Sequence[str]) -> Options:
    """Read the words behind `serve`; exits with 2 and a usage message as argparse does."""
    parser = _Parser(prog="vllm serve", allow_abbrev=False)
    parser.add_argument("model_tag", nargs="?")
    parser.add_argument("--model")
    parser.add_argument("--served-model-name", nargs="+")
    parser.add_argument("--host", default="0.0.0.0")  # noqa: S104 - vLLM's own default
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--api-key")
    parser.add_argument("--tensor-parallel-size", "-tp", type=int, default=1)
    parser.add_argument("--pipeline-parallel-size", "-pp", type=int, default=1)
    parser.add_argument("--data-parallel-size", "-dp", type=int, default=1)
    parser.add_argument("--max-model-len", type=_length)
    parser.add_argument("--gpu-memory-utilization", type=float, default=0.92)
    parser.add_argument("--max-num-seqs", type=int, default=256)
    parser.add_argument("--max-num-batched-tokens", type=int, default=2048)
    parser.add_argument("--dtype", default="auto", choices=("auto", "half", "float16", "bfloat16", "float", "float32"))
    parser.add_argument("--enforce-eager", action="store_true")
    parser.add_argument("--disable-access-log-for-endpoints", default="")
    for option in _WITH_VALUE:
        parser.add_argument(option, *(("-q",) if option == "--quantization" else ()))
    for option in _SWITCHES:
        parser.add_argument(option, action="store_true")
    given = parser.parse_args(list(words))
    model = given.model_tag or given.model
    if not model:
        parser.error("the following arguments are required: model_tag")
    for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"):
        if getattr(given, name) < 1:
            parser.error(f"argument --{name.replace('_', '-')}: must be greater than 0")
    non_default = {
        name: value for name, value in vars(given).items() if value != parser.get_default(name) and name != "api_key"
    }
    return Options(
        model=model,
        served_name=given.served_model_name[0] if given.served_model_name else model,
        host=given.host,
        port=given.port,
        api_key=given.api_key,
        tensor_parallel_size=given.tensor_parallel_size,
        pipeline_parallel_size=given.pipeline_parallel_size,
        data_parallel_size=given.data_parallel_size,
        max_model_len=given.max_model_len,
        gpu_memory_utilization=given.gpu_memory_utilization,
        max_num_seqs=given.max_num_seqs,
        max_num_batched_tokens=given.max_num_batched_tokens,
        dtype=given.dtype,
        enforce_eager=given.enforce_eager,
        unlogged=tuple(filter(None, given.disable_access_log_for_endpoints.split(","))),
        non_default=repr(non_default),
    )


def _length(text: str) -> int | None:
    """`auto` and -1 stand for what fits; 16k and 16K as vLLM reads them."""
    if text in ("auto", "-1"):
        return None
    factors = {"k": 1000, "K": 1024, "m": 1000**2, "M": 1024**2}
    factor = factors.get(text[-1:], 1)
    return int(float(text[:-1] if factor > 1 else text) * factor)
