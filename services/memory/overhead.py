"""What an engine takes on a card besides weights and KV cache.

The figures are fits to real runs of vLLM 0.24 on one H200 (one card, TP = 1), within 32 MiB in most of them.  What is
unsure is said at each: TP beyond 1, image encoders, and what a cold compilation adds.
"""

from dataclasses import dataclass

from gpudeck.services.box.types import GIB, MIB, Gpu
from gpudeck.services.memory.settings import Settings
from gpudeck.services.memory.weights import StageShare
from gpudeck.services.models.types import ModelFacts

NCCL = 384 * MIB  # communicators of more than one rank, made before that look too; an estimate, not measured
NON_TORCH = 230 * MIB  # grows between that look and the end of profiling
NON_TORCH_GRAPHS = 14 * MIB  # and with CUDA graphs
NON_TORCH_POOLING = 160 * MIB
# Between budget and real use at readiness: 0.2 GiB eager, mostly 0.3 with graphs (allocator leftovers, workspaces).
SLACK = 192 * MIB
SLACK_GRAPHS = 300 * MIB
_ALLOCATOR = 32 * MIB


@dataclass(frozen=True, slots=True)
class Overhead:
    """Bytes on one rank.  `inside` counts against vLLM's budget, `outside` lies beside it; both must fit the card.

    CUDA's context, which depends on the card, comes on top (`context_bytes`).
    """

    activation: int
    non_torch: int
    graphs_inside: int
    graphs_outside: int
    nccl: int  # taken before vLLM first looks at the free memory, like CUDA's context
    slack: int  # what may be taken beyond all this

    @property
    def inside(self) -> int:
        return self.activation + self.non_torch + self.graphs_inside

    @property
    def outside(self) -> int:
        return self.nccl + self.graphs_outside


def driver_reserve(gpu: Gpu) -> int:
    """What the driver keeps: NVML's total less CUDA's.

    Where no reading tells it, a line through published pairs from 24 to 179 GiB: 330 MiB on a 4090, 615 on an H200.
    """
    reserve = gpu.memory_reserved_bytes
    if reserve is None:
        reserve = 268 * MIB + gpu.memory_bytes // 400
    return max(0, min(reserve, gpu.memory_bytes))


def context_bytes(gpu: Gpu) -> int:
    """CUDA's context and libraries, taken before vLLM first looks at the free memory.

    527 MiB on an H200; 0.3 to 0.6 GiB are published for others, growing with the card.
    """
    return 250 * MIB + gpu.memory_bytes // 500


def rank_overhead(model: ModelFacts, settings: Settings, share: StageShare, world_size: int) -> Overhead:
    """The overhead on each rank of a stage, in one copy of `world_size` ranks."""
    activation = forward_peak(model, settings, share.tensor_parallel)
    if share.is_last and not settings.pooling:
        activation = max(activation, sampler_peak(model, settings))
    activation += experts_workspace(model, settings, share.tensor_parallel)
    if not settings.eager:
        activation += _compilation_rise(model, settings)
    graphs = _graph_bytes(settings, share.layers)
    non_torch = NON_TORCH_POOLING if settings.pooling else NON_TORCH
    return Overhead(
        activation=activation,
        non_torch=non_torch if settings.eager else non_torch + NON_TORCH_GRAPHS,
        graphs_inside=graphs if settings.graphs_budgeted else 0,
        graphs_outside=0 if settings.graphs_budgeted else graphs,
        nccl=NCCL if world_size > 1 else 0,
        slack=SLACK if settings.eager else SLACK_GRAPHS,
    )


def forward_peak(model: ModelFacts, settings: Settings, tensor_parallel: int) -> int:
    """The transient peak of one layer at max_num_batched_tokens tokens, the experts' workspace left out."""
    tokens, hidden, width = settings.max_num_batched_tokens, model.hidden_size, settings.dtype_bytes
    if model.experts is not None:
        peak: float = width * tokens * 4 * hidden
    else:
        hidden_copies = _hidden_copies(model)
        matrices = 3 if model.gated_mlp else 2
        peak = width * tokens * (matrices * model.intermediate_size / tensor_parallel + hidden_copies * hidden)
    if model.mla is not None:
        peak = max(peak, _latent_peak(model, settings, tensor_parallel))
    if model.multimodal and settings.encoder:
        peak += _encoder_peak(model)
    return int(peak) + (0 if model.quantization else _ALLOCATOR)


def _hidden_copies(model: ModelFacts) -> int:
    """Hidden states of one width that are alive at the peak of a layer; Gemma's four norms keep two more."""
    if model.model_type.startswith(("gemma2", "gemma3")):
        return 5
    return 4 if model.model_type.startswith("qwen") else 3


def _latent_peak(model: ModelFacts, settings: Settings, tensor_parallel: int) -> float:
    """MLA profiles with room for K and V of a chunk of earlier tokens, decompressed for every head of a rank.

    vllm/model_executor/layers/attention/mla_attention.py determine_chunked_prefill_workspace_size: eight requests of
    full length or four blocks a request, at most 65,536 tokens.
    """
    if model.mla is None:
        return 0.0
    longest = settings.max_model_len if settings.max_model_len > 0 else model.max_position_embeddings or 0
    tokens = min(max(8 * longest, 4 * settings.max_num_seqs * settings.block_size), 65536)
    heads = model.attention_heads / tensor_parallel
    return tokens * heads * (model.mla.qk_nope_head_dim + model.mla.v_head_dim) * settings.dtype_bytes


def experts_workspace(model: ModelFacts, settings: Settings, tensor_parallel: int) -> int:
    """Buffers of the fused experts: made in the forward pass and kept, so that the sampler's peak comes on top.

    GPT-OSS's MXFP4 kernels do without them.
    """
    experts = model.experts
    if experts is None or model.quantization == "mxfp4":
        return 0
    inner = experts.intermediate_size / tensor_parallel
    width = settings.dtype_bytes * settings.max_num_batched_tokens
    return int(width * experts.per_token * (3 * inner + model.hidden_size))


def sampler_peak(model: ModelFacts, settings: Settings) -> int:
    """The peak of sampling for max_num_seqs requests over the whole vocabulary, on the last stage."""
    rows = settings.max_num_seqs * model.vocab_size
    # The last hidden states; with experts they lie in the experts' workspace.
    states = 0 if model.experts is not None else 2 * settings.max_num_batched_tokens * model.hidden_size
    if settings.second_runner:
        return 6 * rows + states + _ALLOCATOR
    return 14 * rows + 528 * model.vocab_size + states + _ALLOCATOR


def _encoder_peak(model: ModelFacts) -> int:
    # Qwen2.5-VL-7B took 2.7 GiB for its image encoder at the largest image; others are a guess.
    return int(2.7 * GIB) if model.model_type.startswith("qwen") else GIB


def _compilation_rise(model: ModelFacts, settings: Settings) -> int:
    """What the first, uncached compilation adds to the peak; a later start of the same spec does without.

    Measured: Gemma 3 916 MiB, Qwen3 330, Llama-8B 234, Llama-1B and Mistral 60, Qwen2.5 0 to 7.
    """
    if model.model_type.startswith("gemma3"):
        return 916 * MIB
    if model.model_type.startswith("qwen"):
        return 330 * MIB if settings.second_runner else 8 * MIB
    return 234 * MIB if settings.second_runner else 64 * MIB


def _graph_bytes(settings: Settings, layers: int) -> int:
    """CUDA graphs of one rank: a base and a share for each layer, for each captured batch size.

    Sizes are captured up to the lesser of 512 and twice max_num_seqs: 51 of them, or 11 at 32 sequences.
    """
    if settings.eager:
        return 0
    largest = min(512, 2 * settings.max_num_seqs)
    captured = 3 + largest / 8 if largest <= 256 else 19 + largest / 16
    estimate = (73 + 10.6 * layers) * min(captured / 51, 1.0) * MIB
    if settings.max_num_seqs > 512:
        estimate *= 1.4
    if settings.second_runner:
        return int(estimate * 1.45)
    # What the first runner estimates is a fifth too little; it counts as much as is real where it is not budgeted.
    return int(estimate) if settings.graphs_budgeted else int(estimate * 1.2)
