"""Whether weights, KV cache and everything beside them fit the cards."""

from collections.abc import Iterator
from dataclasses import replace

from gpudeck.services.memory.balance import balanced_partition
from gpudeck.services.memory.plan import MemoryDetail, RankMemory, memory_detail
from gpudeck.services.memory.settings import AUTO_LENGTH
from gpudeck.services.plan.changes import Change, options_change
from gpudeck.services.plan.extra import without_options
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.plan.versions import NEWEST_MEASURED
from gpudeck.services.rules.rule import ModelPlan, Rule, gib, named
from gpudeck.services.text import printable

WEIGHTS = Rule(
    "weights-fit",
    Severity.ERROR,
    "Weights that do not fit the card",
    "Weights are loaded before anything is measured; a card that they exceed ends in CUDA out of memory.",
    "run on an H200 (vLLM 0.24): Mixtral-8x22B on one card",
)
KV_ROOM = Rule(
    "kv-cache-room",
    Severity.ERROR,
    "No room for a KV cache",
    "The KV cache gets what the requested share of the card leaves after weights, activation peak and CUDA graphs.",
    "vllm/v1/core/kv_cache_utils.py: No available memory for the cache blocks",
)
LENGTH_ROOM = Rule(
    "max-model-len-kv",
    Severity.ERROR,
    "A length that the KV cache can not hold",
    "At least one request of max-model-len tokens must fit into the KV cache.",
    "vllm/v1/core/kv_cache_utils.py: To serve at least one request with the models's max seq len, KV cache is needed "
    "which is larger than the available KV cache memory",
)
LENGTH_MODEL = Rule(
    "max-model-len-model",
    Severity.ERROR,
    "A length beyond the model's own",
    "vLLM refuses lengths beyond what config.json states, unless VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 is set.",
    "vllm/config/model.py _get_and_verify_max_len",
)
OCCUPIED = Rule(
    "gpu-occupied",
    Severity.ERROR,
    "Too little memory free for the requested share",
    "When it starts, vLLM compares the free memory with gpu-memory-utilization × the card's total, and refuses below.",
    "vllm/v1/worker/gpu_worker.py: Free memory on device is less than desired GPU memory utilization",
)
BESIDE_BUDGET = Rule(
    "beside-budget",
    Severity.ERROR,
    "No room beside the requested share",
    "CUDA's context and, with the second model runner, the CUDA graphs lie outside the share; an engine that fills the "
    "card to the brim runs out of memory while capturing graphs.",
    "run on an H200 (vLLM 0.24): Qwen2.5-7B at 0.99 with the graph estimate off",
)
FIXED_CACHE = Rule(
    "kv-cache-memory-bytes",
    Severity.ERROR,
    "A fixed KV cache that does not fit",
    "--kv-cache-memory-bytes overrides the share; vLLM allocates that much without comparing it with the card.",
    "run on an H200 (vLLM 0.24): Qwen2.5-7B with 126 GiB",
)
TIGHT = Rule(
    "memory-tight",
    Severity.WARNING,
    "Little memory beside the requested share",
    "Real use lies up to 0.6 GiB above what vLLM budgets (allocator leftovers, workspaces).",
    "run on an H200 (vLLM 0.24): NVML's use at readiness against the budget",
)
UNEVEN = Rule(
    "memory-uneven",
    Severity.WARNING,
    "Memory that stays unused",
    "All ranks take the block count of the one with the least room; what the others have beyond it is not used.",
    "vllm/v1/core/kv_cache_utils.py get_kv_cache_configs: the minimum over all workers",
)
SHARED = Rule(
    "gpu-shared",
    Severity.WARNING,
    "A card that others use",
    "Another process's memory can grow while the engine runs, and its work slows the engine.",
    "vllm/v1/worker/gpu_worker.py",
)
LENGTH_BY_VERSION = Rule(
    "max-model-len-version",
    Severity.WARNING,
    "A length that fits one version of vLLM and not another",
    "vLLM 0.32 counts a second batch as under way (scheduling runs ahead), and keeps its tokens in every sliding "
    "window of a request; 0.24, whose memory was measured, does not. The engine's own version is not known here.",
    "vllm/config/vllm.py max_in_flight_tokens; runs on an H200 (vLLM 0.24)",
)
CACHE_BY_VERSION = Rule(
    "kv-cache-version",
    Severity.INFO,
    "A KV cache that holds less under a later vLLM",
    "As max-model-len-version: with sliding windows the batches under way decide how much a request takes.",
    "vllm/config/vllm.py max_in_flight_tokens; runs on an H200 (vLLM 0.24)",
)

RULES = (
    WEIGHTS, KV_ROOM, LENGTH_ROOM, LENGTH_MODEL, OCCUPIED, BESIDE_BUDGET, FIXED_CACHE, TIGHT, UNEVEN, SHARED,
    LENGTH_BY_VERSION, CACHE_BY_VERSION,
)  # fmt: skip
_SHARED_FROM = 1 << 30
_TOLD_FROM = 1.02  # what two versions take for one request
_UNEVEN_FROM = 0.15  # of the card's memory
_MOST_SHARE = 0.95  # that is advised
_USUAL_SHARE = 0.9


def check(judged: ModelPlan) -> Iterator[Finding]:
    memory, model = judged.memory, judged.model
    yield from _model_length(judged)
    if memory is None or not memory.ranks or model.weights is None:
        return
    yield from _occupied(judged, memory)
    tightest = min(memory.ranks, key=lambda rank: rank.free_at_start - rank.weights)
    if tightest.weights > tightest.free_at_start:
        yield _weights_too_large(tightest)
        return
    yield from _cache(memory)
    yield from _beside_budget(judged, memory)
    yield from _uneven(judged, memory)


def _model_length(judged: ModelPlan) -> Iterator[Finding]:
    length, limit = judged.plan.spec.options.max_model_len, judged.model.max_position_embeddings
    allowed = ("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "1") in judged.plan.spec.environment
    if length is not None and limit is not None and length > limit and not allowed:
        yield LENGTH_MODEL.finding(
            f"max-model-len {length:,} is greater than the model's own {limit:,}.",
            f"Use --max-model-len {limit}.",
            options_change(max_model_len=limit),
        )


def _occupied(judged: ModelPlan, memory: MemoryDetail) -> Iterator[Finding]:
    for rank in memory.ranks:
        if rank.free_at_start < rank.budget and memory.settings.kv_cache_memory_bytes is None:
            share = _useful_share(memory, rank, rank.free_at_start)
            taken = (
                f"{gib(rank.other)} are taken already{_by_whom(judged, rank)}"
                if rank.other
                else "the CUDA context takes the rest"
            )
            yield OCCUPIED.finding(
                f"{named(rank.gpu)}: {gib(rank.free_at_start)} of {gib(rank.cuda_total)} would be free, less than the "
                f"requested share ({memory.settings.utilization:g}, {gib(rank.budget)}): {taken}.",
                f"Use --gpu-memory-utilization {share:.2f}, or free the card."
                if share is not None
                else "Free the card, or use another one.",
                _share_change(share),
            )
        elif rank.other >= _SHARED_FROM:
            yield SHARED.finding(
                f"{named(rank.gpu)} holds {gib(rank.other)} of other processes{_by_whom(judged, rank)}, which may "
                "grow and slow the engine.",
                "Use a free card, or stop what runs there.",
            )


def _by_whom(judged: ModelPlan, rank: RankMemory) -> str:
    """ ", most of it by python3 (pid 4711)": the process that holds most of the card, where it is known."""
    plan = judged.plan
    held = [
        process
        for reading in plan.around.readings
        if reading.gpu == rank.gpu.index
        for process in reading.processes
        if process.memory_bytes and process.engine != plan.spec.name
    ]
    most = max(held, key=lambda process: process.memory_bytes or 0, default=None)
    if most is None or 2 * (most.memory_bytes or 0) < rank.other:
        return ""
    who = most.engine or most.name
    return f", most of it by {printable(who)} (pid {most.pid})"


def _weights_too_large(rank: RankMemory) -> Finding:
    return WEIGHTS.finding(
        f"{named(rank.gpu)} would have to hold {gib(rank.weights)} of weights, and {gib(rank.free_at_start)} are free "
        "on it.",
        "Spread the model over more cards (tensor or pipeline parallelism), or use a quantized checkpoint.",
    )


def _cache(memory: MemoryDetail) -> Iterator[Finding]:
    keeping = [rank for rank in memory.ranks if rank.block_bytes > 0]
    if not keeping:
        return
    rank = min(keeping, key=lambda rank: rank.blocks(memory.settings))
    if memory.blocks == 0:
        needed = rank.least(memory.needed)
        enough = -(-needed * 100 // max(rank.cuda_total, 1)) / 100
        share = enough if memory.settings.utilization < enough <= _MOST_SHARE else None
        raised = f"Use --gpu-memory-utilization {share:.2f}, " if share is not None else "Use "
        least = rank.least(1)
        if (
            enough > _MOST_SHARE
            and memory.settings.utilization < _USUAL_SHARE
            and least <= _USUAL_SHARE * rank.cuda_total
        ):
            share = _USUAL_SHARE
            raised = f"Use --gpu-memory-utilization {share:.2f} and a shorter --max-model-len, "
        yield KV_ROOM.finding(
            f"{named(rank.gpu)}: of the {gib(rank.budget)} that vLLM may use, weights take {gib(rank.weights)} and "
            f"activation peak and CUDA graphs {gib(rank.overhead.inside)}: nothing is left for a KV cache.",
            f"{raised}more cards, a quantized checkpoint, or smaller --max-num-seqs and --max-num-batched-tokens.",
            _share_change(share),
        )
    elif memory.needed > memory.blocks and memory.settings.max_model_len != AUTO_LENGTH:
        length = memory.plan.max_model_len
        yield LENGTH_ROOM.finding(
            f"One request of {length:,} tokens needs {gib(memory.needed * rank.block_bytes)} of KV cache on "
            f"{named(rank.gpu)}, and {gib(memory.blocks * rank.block_bytes)} are there: the longest that fits is "
            f"{memory.longest:,} tokens.",
            f"Use --max-model-len {memory.longest}." if memory.longest else "Use more cards or a smaller model.",
            options_change(max_model_len=memory.longest) if memory.longest else None,
        )
    else:
        yield from _by_version(memory)


def _by_version(memory: MemoryDetail) -> Iterator[Finding]:
    """What a later version would hold, where the engine's own is not known and windows make a difference."""
    length, longest = memory.plan.max_model_len, memory.longest_later
    known = f"vLLM {NEWEST_MEASURED}"
    if memory.needed_later > memory.blocks:
        fixed = longest if longest and memory.settings.max_model_len != AUTO_LENGTH else None
        yield LENGTH_BY_VERSION.finding(
            f"{length:,} tokens fit {known}; the windows of one request take more under 0.32 and later, where "
            f"{longest:,} fit.",
            f"Use --max-model-len {fixed}, or name the engine's version (--vllm-version)."
            if fixed
            else "Name the engine's version (--vllm-version).",
            options_change(max_model_len=fixed) if fixed else None,
        )
    elif memory.needed_later > _TOLD_FROM * memory.needed:
        tokens = int(memory.blocks / memory.needed_later * length)
        yield CACHE_BY_VERSION.finding(
            f"The KV cache is {known}'s; under 0.32 and later it holds about {tokens:,} tokens in requests of "
            f"{length:,}.",
            "Name the engine's version (--vllm-version) for its own figure.",
        )


def _beside_budget(judged: ModelPlan, memory: MemoryDetail) -> Iterator[Finding]:
    if memory.settings.kv_cache_memory_bytes is not None:
        yield from _fixed_cache(judged, memory, memory.settings.kv_cache_memory_bytes)
        return
    for rank in memory.ranks:
        # Where the version is not known, graphs are held against a plan only if no version budgets them.
        outside = 0 if memory.settings.later_graphs_budgeted else rank.overhead.graphs_outside
        spare = rank.spare_beside_budget + rank.overhead.graphs_outside - outside
        if rank.free_at_start < rank.budget or spare >= rank.overhead.slack:
            continue
        graphs = f" and {gib(outside)} of CUDA graphs, which vLLM does not budget" if outside else ""
        share = _useful_share(memory, rank, rank.free_at_start - outside - rank.overhead.slack)
        # NCCL's part is an estimate, and an estimate alone blocks nothing.
        certain = spare + rank.overhead.nccl
        rule = BESIDE_BUDGET if certain < (rank.overhead.slack if outside else 0) else TIGHT
        yield rule.finding(
            f"{named(rank.gpu)}: beside the requested share of {memory.settings.utilization:g} ({gib(rank.budget)}) "
            f"and CUDA's context{graphs}, {gib(max(spare, 0))} stay free; {gib(rank.overhead.slack)} may be needed.",
            f"Use --gpu-memory-utilization {share:.2f}." if share is not None else None,
            _share_change(share),
        )


def _fixed_cache(judged: ModelPlan, memory: MemoryDetail, wanted: int) -> Iterator[Finding]:
    for rank in memory.ranks:
        room = rank.free_at_start - rank.weights - rank.overhead.inside - rank.overhead.graphs_outside
        least = rank.block_bytes * max(memory.needed, 1)
        if rank.block_bytes > 0 and wanted > room:
            yield FIXED_CACHE.finding(
                f"{named(rank.gpu)}: --kv-cache-memory-bytes asks for {gib(wanted)}, and weights, activation peak and "
                f"CUDA graphs leave {gib(max(room, 0))}.",
                f"Use --kv-cache-memory-bytes {room}." if room >= least else "Use more cards or a smaller model.",
                _cache_change(judged, room) if room >= least else None,
            )


def _uneven(judged: ModelPlan, memory: MemoryDetail) -> Iterator[Finding]:
    # Within one group a partition moves nothing; tp-mixed-memory tells what larger cards leave unused there.
    rank = _unused_most(memory) if judged.plan.stages > 1 else None
    if rank is None:
        return
    unused = (rank.blocks(memory.settings) - memory.copy_blocks[rank.copy]) * rank.block_bytes
    change = _balanced(judged, memory)
    layers = change.layer_partition if change is not None else None
    yield UNEVEN.finding(
        f"{named(rank.gpu)} could hold {gib(unused)} more KV cache; the rank with the least room sets the number of "
        "blocks for all.",
        f"Use --layer-partition {','.join(str(count) for count in layers)}, which gives larger cards more layers."
        if layers is not None
        else "Give stages with larger cards more layers (a layer partition), or leave this card to another engine.",
        change,
    )


def _unused_most(memory: MemoryDetail) -> RankMemory | None:
    """The rank that leaves the most of its card unused, where that is worth a word."""

    def unused(rank: RankMemory) -> int:
        return (rank.blocks(memory.settings) - memory.copy_blocks[rank.copy]) * rank.block_bytes

    wasteful = [
        rank for rank in memory.ranks if rank.block_bytes > 0 and unused(rank) > _UNEVEN_FROM * rank.gpu.memory_bytes
    ]
    return max(wasteful, key=unused, default=None)


def _balanced(judged: ModelPlan, memory: MemoryDetail) -> Change | None:
    """The layer partition that makes the most KV cache, where it mends the unevenness."""
    plan = judged.plan
    used = {rank.gpu.index: rank.other for rank in memory.ranks}
    layers = balanced_partition(plan.box, judged.model, plan.spec, vllm_version=plan.around.memory_version)
    if layers is None or layers == plan.spec.layer_partition:
        return None
    spec = replace(plan.spec, layer_partition=layers)
    mended = memory_detail(plan.box, judged.model, spec, used, plan.around.memory_version)
    return Change(layer_partition=layers) if _unused_most(mended) is None else None


def _useful_share(memory: MemoryDetail, rank: RankMemory, room: float) -> float | None:
    """The share of the card that `room` bytes are; None where the engine could not serve one request in it."""
    if rank.cuda_total <= 0:
        return None
    share = int(room / rank.cuda_total * 100) / 100
    least = rank.least(memory.needed)
    return share if 0 < share <= 1 and share * rank.cuda_total >= least else None


def _share_change(share: float | None) -> Change | None:
    return None if share is None else options_change(gpu_memory_utilization=share)


def _cache_change(judged: ModelPlan, room: int) -> Change:
    option = "--kv-cache-memory-bytes"
    return options_change(extra=(*without_options(judged.plan.spec.options.extra, {option}), option, str(room)))
