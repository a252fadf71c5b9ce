"""Failures of memory: a card that is taken, weights or KV cache that do not fit, a process that the kernel killed."""

import math

from gpudeck.services.diagnosis.entry import Advice, Entry, Found, sign
from gpudeck.services.diagnosis.words import holders, where
from gpudeck.services.engine.phases import Phase
from gpudeck.services.memory.settings import default_utilization
from gpudeck.services.plan.changes import options_change
from gpudeck.services.plan.versions import NEWEST_KNOWN

_LEAST_SHARE = 0.3  # below it little of any model fits: then the card has to be freed
_STEP = 0.05
_BLOCK = 16  # tokens: vLLM's block, so that a length fills whole ones
_AGAIN = 0.99  # of what fitted: starts differ by some MiB, and the memory model by up to 0.6 % from what it judges


def _memory_taken(found: Found) -> Advice:
    free, total, wanted = found.decimal("free"), found.decimal("total"), found.decimal("wanted")
    if free is None or total is None or not total:
        return Advice()
    place, held = where(found, otherwise=found.word("name") or "the card"), holders(found)
    by = f": held by {held}" if held else ""
    asked = f", and the engine asks for {wanted:g} GiB" if wanted is not None else ""
    meaning = f"Only {free:g} of {total:g} GiB are free on {place}{asked}{by}."
    share = math.floor(free / total * 100 - 1) / 100  # one percent less: others' memory moves
    if not _LEAST_SHARE <= share <= 1:
        return Advice(meaning, f"Free {place}, or put the engine on other cards: what is free there is too little.")
    return Advice(
        meaning,
        f"Free the card, or take what is free now: --gpu-memory-utilization {share:g}.",
        options_change(gpu_memory_utilization=share),
    )


def _more_share(found: Found) -> Advice:
    """A larger share where the spec leaves room for one."""
    share = None if found.options is None else found.options.gpu_memory_utilization
    if share is None or share > 0.9:
        return Advice()
    raised = round(min(share + 0.1, 0.95), 2)
    return Advice(
        fix=f"Raise the share to --gpu-memory-utilization {raised:g}, use more cards, or a smaller or quantized model.",
        change=options_change(gpu_memory_utilization=raised),
    )


def _context(found: Found) -> Advice:
    asked, fits = found.number("asked"), found.number("fits")
    if fits is None and (kept := found.run.kv_cache_tokens) is not None:
        fits = kept
    if asked is None:
        return Advice()
    if not fits or fits < _BLOCK:
        return Advice(f"The KV cache has no room for one request of {asked:,} tokens.")
    length = max(int(fits * _AGAIN), _BLOCK) // _BLOCK * _BLOCK
    needed, there = found.decimal("needed"), found.decimal("there")
    sizes = f" It would need {needed:g} GiB, and {there:g} GiB are left for it." if needed and there else ""
    return Advice(
        f"The KV cache has no room for one request of {asked:,} tokens: {fits:,} fit.{sizes}",
        f"Take a little less than that, since not every start finds the same memory: --max-model-len {length}.",
        options_change(max_model_len=length),
    )


def _out_of_memory(found: Found) -> Advice:
    """What helps depends on what the engine was doing."""
    wanted = f" {found.word('wanted')} more" if found.word("wanted") else " more"
    of = f" of {found.word('total')}" if found.word("total") else ""
    place, phase, held = where(found), found.run.phase, holders(found)
    others = f" Beside it: {held}." if held else ""
    begin = f"{place[0].upper()}{place[1:]}{of} had no room for{wanted}"
    options = found.options
    if phase in (Phase.STARTING, Phase.INITIALISING, Phase.LOADING):
        return Advice(
            f"{begin} while the weights were loaded.{others}",
            "Use more cards (TP or PP) or a quantized model: the weights do not fit into what is free.",
        )
    share = (options.gpu_memory_utilization if options else None) or default_utilization(NEWEST_KNOWN)
    lowered = round(max(share - _STEP, _LEAST_SHARE), 2)
    if phase is Phase.PROFILING and found.run.kv_cache_tokens is None:
        tokens = max((options.max_num_batched_tokens if options else None) or 8192, 1024) // 2
        return Advice(
            f"{begin} while memory was profiled with a full batch.{others}",
            f"Make the batches smaller: --max-num-batched-tokens {tokens}, and --max-num-seqs with it.",
            options_change(max_num_batched_tokens=tokens),
        )
    doing = {
        Phase.PROFILING: "while the KV cache was set up",
        Phase.COMPILING: "while the model was compiled",
        Phase.CAPTURING: "while CUDA graphs were captured",
    }.get(phase, "while it served")
    return Advice(
        f"{begin} {doing}.{others}",
        f"Leave more room beside the KV cache: --gpu-memory-utilization {lowered:g}.",
        options_change(gpu_memory_utilization=lowered),
    )


def _warm_up(found: Found) -> Advice:
    tried = found.number("requests")
    if tried is None or tried < 2:
        return Advice()
    lowered = min(256, tried // 2)
    return Advice(
        f"{where(found).capitalize()} had no room to sample for {tried:,} requests at once.",
        f"Allow fewer at once: --max-num-seqs {lowered}.",
        options_change(max_num_seqs=lowered),
    )


ENTRIES = (
    Entry(
        "memory-taken",
        "The card is not free enough",
        (
            sign(
                "GiB) on startup is less than",
                r"Free memory on device (?P<name>cuda:(?P<device>\d{1,3}))? ?\((?P<free>[\d.]+)/(?P<total>[\d.]+) "
                r"GiB\) "
                r"on startup is less than [^(]{1,80}(?:\((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB\))?",
            ),
        ),
        "Less memory is free on the card than the engine's share of it: others hold some.",
        "Free the card, or lower --gpu-memory-utilization.",
        "vllm/v1/worker/utils.py",
        _memory_taken,
    ),
    Entry(
        "no-kv-memory",
        "Nothing left for the KV cache",
        (sign("No available memory for the cache blocks"), sign("not enough GPU memory available to serve even")),
        "Weights and working memory take the engine's whole share of a card: no KV cache fits.",
        "Raise --gpu-memory-utilization, use more cards, or a smaller or quantized model.",
        "vllm/v1/core/kv_cache_utils.py",
        _more_share,
    ),
    Entry(
        "context-too-long",
        "One request does not fit into the KV cache",
        (
            sign(
                "To serve at least one request with the model",
                r"To serve at least one request with the models?'s max seq len \((?P<asked>\d+)\)"
                r"(?:.{0,20}?\((?P<needed>[\d.]+) Gi?B KV)?(?:.{0,160}?\((?P<there>[\d.]+) Gi?B\))?"
                r"(?:.{0,120}?estimated maximum model length is (?P<fits>\d+))?",
            ),
            sign(
                "is larger than the maximum number of tokens that can be stored in KV cache",
                r"max seq len \((?P<asked>\d+)\) is larger than the maximum number of tokens that can be stored in "
                r"KV cache \((?P<fits>\d+)\)",
            ),
        ),
        "The KV cache has no room for one request of the model's full length.",
        "Lower --max-model-len to what fits, or raise --gpu-memory-utilization.",
        "vllm/v1/core/kv_cache_utils.py; until 0.9 vllm/worker/worker.py",
        _context,
    ),
    Entry(
        "sampler-warm-up",
        "No memory to sample for so many requests",
        (sign("occurred when warming up", r"warming up (?:sampler|pooler).{0,60}? with (?P<requests>\d+) dummy"),),
        "The card had no room to sample for as many requests as may run at once.",
        "Lower --max-num-seqs, or --gpu-memory-utilization.",
        "vllm/v1/worker/gpu_model_runner.py",
        _warm_up,
        covers=("out-of-memory",),
    ),
    Entry(
        "weights-too-large",
        "The weights do not fit",
        (sign("Failed to load model - not enough GPU memory"),),
        "A card's part of the weights is larger than what is free there.",
        "Use more cards (TP or PP), or a quantized model.",
        "vllm/v1/worker/gpu_model_runner.py",
    ),
    Entry(
        "out-of-memory",
        "The card is out of memory",
        (
            sign(
                "CUDA out of memory",
                r"CUDA out of memory(?:\. Tried to allocate (?P<wanted>[\d.]+ [KMGT]iB))?"
                r"(?:\. GPU (?P<device>\d{1,3}) has a total capac\w{1,3}ty of (?P<total>[\d.]+ [KMGT]iB))?",
            ),
            sign("CUDA error: out of memory"),
            sign("CUBLAS_STATUS_ALLOC_FAILED"),
        ),
        "A card had no room for what the engine asked for; what helps depends on what it was doing.",
        "While loading: more cards or a quantized model. While profiling: smaller batches. Later: a smaller share.",
        "torch (c10/cuda/CUDACachingAllocator)",
        _out_of_memory,
        covers=("weights-too-large",),
    ),
    Entry(
        "memory-profiling",
        "Another process let memory go meanwhile",
        (sign("Error in memory profiling"),),
        "While the engine measured its own use, another process freed memory on the card, so that the figures clash.",
        "Start it again, one engine after the other.",
        "vllm/v1/worker/gpu_worker.py",
    ),
    Entry(
        "host-memory",
        "The kernel killed a process for memory",
        (
            sign("Out of memory: Killed process", r"Out of memory: Killed process \d+ \((?P<name>[^)]{1,64})\)"),
            sign("Memory cgroup out of memory: Killed process"),
            sign("oom-kill:constraint="),
        ),
        "The machine's own memory was full, and the kernel ended a process to get some back.",
        "Free host memory, lower the swap or offload options, or raise the unit's MemoryMax.",
        "the kernel's log",
    ),
)
