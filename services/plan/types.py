"""An engine's plan: which cards, in which roles, with which options."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Placement:
    """The ordered pipeline stages of one engine, each the GPU indices of one TP group in rank order.

    With replicas the stages of all copies follow each other, copy by copy: `stages` holds replicas × PP entries.
    A placement may be unfit to run (stages of unequal size, a card twice): judging it is the rules' work.
    """

    stages: tuple[tuple[int, ...], ...] = ()
    replicas: int = 1

    @property
    def gpus(self) -> tuple[int, ...]:
        """Every card in rank order: what CUDA_VISIBLE_DEVICES lists."""
        return tuple(gpu for stage in self.stages for gpu in stage)

    @property
    def tensor_parallel_size(self) -> int:
        """The size of the largest stage; equal to all of them in a placement that can run."""
        return max((len(stage) for stage in self.stages), default=0)

    @property
    def pipeline_parallel_size(self) -> int:
        return len(self.stages) // max(self.replicas, 1)

    @property
    def uniform(self) -> bool:
        """Whether all stages have the same size, as vLLM wants it."""
        return len({len(stage) for stage in self.stages}) <= 1


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Options of `vllm serve` under vLLM's own names; None leaves vLLM's default."""

    host: str = "127.0.0.1"
    port: int = 8000
    served_model_name: str | None = None
    max_model_len: int | None = None
    gpu_memory_utilization: float | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    kv_cache_dtype: str | None = None
    quantization: str | None = None
    dtype: str | None = None
    load_format: str | None = None
    enforce_eager: bool = False
    extra: tuple[str, ...] = ()  # options that gpudeck does not know, passed on as they are


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """One `vllm serve`: everything that decides its unit."""

    name: str  # [a-z0-9][a-z0-9_.-]*; the unit is vllm-<name>.service
    model: str  # a model directory, a .gguf file or a hub id, as vLLM is given it
    placement: Placement
    options: EngineOptions = field(default_factory=EngineOptions)
    layer_partition: tuple[int, ...] | None = None  # VLLM_PP_LAYER_PARTITION; None: vLLM's even split
    program: tuple[str, ...] = ("vllm",)  # what stands before `serve`; its first word may be a path
    environment: tuple[tuple[str, str], ...] = ()  # variables beyond those that the placement asks for
    shared_gpus: tuple[int, ...] = ()  # cards that the operator shares on purpose with other engines
    user: str | None = None  # the account that its unit runs as, at system scope; None: root
    quiet: bool = False  # its vLLM can be told not to log who looks whether it lives, and is
