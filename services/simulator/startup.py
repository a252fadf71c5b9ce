"""A start as vLLM logs one: the same phases in the same words, with delays that can be followed by eye."""

from collections.abc import Callable

from gpudeck.services.simulator import log
from gpudeck.services.simulator.loads import LoadsFile
from gpudeck.services.simulator.memory import GIB, Load
from gpudeck.services.simulator.options import Options
from gpudeck.services.simulator.workers import Family

_SHARDS = 8
_GRAPHS = 12


def run(
    pid: int, options: Options, load: Load, family: Family, loads: LoadsFile, pause: Callable[[float], None]
) -> None:
    """Log the start up to the moment before the server listens.  `pause` takes seconds; all together are about six."""
    core, first = family.cores[0], family.ranks[0]
    for text in (f"Resolved architecture: {load.architecture}", f"Using max model len {load.max_model_len}"):
        log.info("APIServer", pid, "model.py:598", text)
    pause(0.8)
    log.info(
        core.name,
        core.pid,
        "core.py:114",
        f"Initializing a V1 LLM engine (simulated) with config: model={options.model!r}, "
        f"tensor_parallel_size={options.tensor_parallel_size}, "
        f"pipeline_parallel_size={options.pipeline_parallel_size}, data_parallel_size={options.data_parallel_size}",
    )
    pause(0.4)
    world = options.tensor_parallel_size * options.pipeline_parallel_size
    for number, worker in enumerate(family.ranks):
        text = f"world_size={world} rank={number % world} local_rank={number % world} backend=none (simulated)"
        log.info(worker.name, worker.pid, "parallel_state.py:1588", text)
    for worker in family.ranks:
        log.info(worker.name, worker.pid, "gpu_model_runner.py:5160", f"Starting to load model {options.model}...")
    for done in range(_SHARDS + 1):
        log.bar(first, "Loading safetensors checkpoint shards", done, _SHARDS, weights=True)
        loads.show(part=0.1 + 0.5 * done / _SHARDS, utilization=15)
        pause(0.25)
    for worker, rank in zip(family.ranks, load.ranks, strict=True):
        text = f"Model loading took {rank.weights / GIB:.2f} GiB memory and {0.25 * _SHARDS:.6f} seconds"
        log.info(worker.name, worker.pid, "gpu_model_runner.py:5255", text)
    pause(0.6)
    if not options.enforce_eager:
        log.info(first.name, first.pid, "backends.py:1148", "Dynamo bytecode transform time: 0.60 s")
        pause(1.0)
        log.info(first.name, first.pid, "monitor.py:53", "torch.compile took 1.60 s in total")
    for worker, rank in zip(family.ranks, load.ranks, strict=True):
        text = f"Available KV cache memory: {rank.kv_cache / GIB:.2f} GiB"
        log.info(worker.name, worker.pid, "gpu_worker.py:508", text)
    loads.show(part=0.95, utilization=40)
    tokens, length = load.kv_cache_tokens, load.max_model_len
    log.info(core.name, core.pid, "kv_cache_utils.py:2146", f"GPU KV cache size: {tokens:,} tokens")
    text = f"Maximum concurrency for {length:,} tokens per request: {tokens / length:.2f}x"
    log.info(core.name, core.pid, "kv_cache_utils.py:2147", text)
    pause(0.3)
    if not options.enforce_eager:
        for done in range(_GRAPHS + 1):
            log.bar(first, "Capturing CUDA graphs (decode, FULL)", done, _GRAPHS)
            pause(0.08)
        text = "Graph capturing finished in 1 secs, took 0.25 GiB"
        log.info(first.name, first.pid, "gpu_model_runner.py:6656", text)
    log.info(core.name, core.pid, "core.py:337", "init engine (profile, create kv cache, warmup model) took 3.10 s")
    loads.show(part=1.0, utilization=0)
    pause(0.2)
