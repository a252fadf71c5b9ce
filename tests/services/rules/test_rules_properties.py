"""What holds for every box, model and placement."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gpudeck.services.box.types import GIB, MIB, Box, ComputeCapability, Ecc, Gpu, Link, Modes, Reading, Rows
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.plan.propose import Objective, nearest, propose
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from gpudeck.services.rules.judge import judge
from gpudeck.services.rules.surroundings import Surroundings
from gpudeck.services.text import printable
from tests.services.rules.plans import model

NAMES = (
    "llama-3.1-8b", "llama-3.1-70b", "qwen2.5-32b-awq", "gemma-3-12b-text", "deepseek-v2-lite", "gpt-oss-20b",
    "granite-4.0-h-tiny", "falcon-7b", "qwen2.5-vl-7b", "bge-large", "phi-3-mini-4k",
)  # fmt: skip
MODELS = {name: model(name) for name in NAMES}

gpus = st.builds(
    Gpu,
    index=st.just(0),
    name=st.sampled_from(("A", "NVIDIA A100")),
    memory_bytes=st.sampled_from((0, 1, 8 * GIB, 24564 * MIB, 40 * GIB, 80 * GIB, 192 * GIB)) | st.integers(0, 1 << 40),
    compute_capability=st.sampled_from(
        tuple(ComputeCapability(*pair) for pair in ((6, 1), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (12, 0)))
    ),
    memory_reserved_bytes=st.none() | st.integers(0, 1 << 31),
)
links = st.builds(
    Link, st.integers(0, 6), st.integers(0, 6), st.sampled_from(("NV4", "NV12", "PIX", "PHB", "NODE", "SYS", "?"))
)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    cards = draw(st.lists(gpus, max_size=6))
    return Box(
        tuple(replace(card, index=index) for index, card in enumerate(cards)), tuple(draw(st.lists(links, max_size=8)))
    )


placements = st.builds(
    Placement,
    stages=st.lists(st.lists(st.integers(-1, 7), max_size=4).map(tuple), max_size=4).map(tuple),
    replicas=st.integers(0, 3),
)
EXTRA = (
    "--enable-expert-parallel", "--enable-eplb", "-dcp", "3", "--swap_space", "4", "--task=x", "--attention-backend",
    "flashinfer", "--kv-cache-memory-bytes", "9999999999", "--api-key", "--limit-mm-per-prompt", "image=2", "-O",
    "", "-",
    "--compilation-config", "--tokenizer", "\x1b[0m", "--no-enable-prefix-caching", "--trust-remote-code",
)  # fmt: skip
options = st.builds(
    EngineOptions,
    max_model_len=st.none() | st.sampled_from((-1, 1, 4096, 131072, 10**9)),
    gpu_memory_utilization=st.none() | st.sampled_from((0.0, 0.1, 0.5, 0.92, 1.0, 1.5)),
    max_num_seqs=st.none() | st.sampled_from((1, 32, 256, 1024)),
    max_num_batched_tokens=st.none() | st.sampled_from((1, 2048, 8192)),
    kv_cache_dtype=st.sampled_from((None, "fp8", "auto", "fp9")),
    quantization=st.sampled_from((None, "fp8", "awq", "?")),
    dtype=st.sampled_from((None, "float32", "bfloat16")),
    enforce_eager=st.booleans(),
    host=st.sampled_from(("127.0.0.1", "0.0.0.0", "")),
    served_model_name=st.sampled_from((None, "llama-70b", "x\x1b[31m 7b", "0b", "9999.99b")),
    extra=st.lists(st.sampled_from(EXTRA), max_size=4).map(tuple),
)
specs = st.builds(
    EngineSpec,
    name=st.just("x"),
    model=st.just("m"),
    placement=placements,
    options=options,
    layer_partition=st.none() | st.lists(st.integers(-5, 90), max_size=4).map(tuple),
    environment=st.lists(
        st.tuples(
            st.sampled_from(("VLLM_USE_V1", "CUDA_VISIBLE_DEVICES", "TRANSFORMERS_CACHE", "")), st.text(max_size=3)
        ),
        max_size=2,
    ).map(tuple),
    shared_gpus=st.lists(st.integers(-1, 7), max_size=3).map(tuple),
)
surroundings = st.builds(
    Surroundings,
    vllm_version=st.sampled_from(("0.9.2", "0.24.0", "0.33", "nightly", "")),
    engine_cuda=st.none() | st.sampled_from(("12.8", "13.0", "?", "14.0")),
    neighbours=st.lists(specs, max_size=2).map(tuple),
    readings=st.lists(
        st.builds(
            Reading,
            gpu=st.integers(0, 6),
            fault=st.none() | st.text(max_size=9),
            mig_enabled=st.none() | st.booleans(),
            ecc=st.none()
            | st.builds(Ecc, enabled=st.none() | st.booleans(), volatile_uncorrected=st.none() | st.integers(0, 9)),
            rows=st.none() | st.builds(Rows, remapping_failed=st.none() | st.booleans()),
            modes=st.none() | st.builds(Modes, compute=st.none() | st.just("prohibited"), display_active=st.booleans()),
        ),
        max_size=4,
    ).map(tuple),
    tokenizer_tokens=st.none() | st.integers(0, 1 << 24),
)
models = st.none() | st.sampled_from(NAMES).map(lambda name: MODELS[name])
used = st.dictionaries(st.integers(0, 5), st.integers(-1, 1 << 38), max_size=4)


@given(boxes(), models, specs, used, surroundings)
def test_every_plan_gets_a_verdict_whose_memory_adds_up(
    box: Box, facts: ModelFacts | None, spec: EngineSpec, taken: dict[int, int], around: Surroundings
) -> None:
    judgement = judge(box, facts, spec, used=taken, around=around)
    assert all(finding.message == printable(finding.message) for finding in judgement.findings)
    assert all(finding.fix is None or finding.fix == printable(finding.fix) for finding in judgement.findings)
    if judgement.memory is None:
        return
    assert judgement.memory.kv_cache_tokens >= 0
    for part in judgement.memory.per_gpu:
        gpu = box.gpu(part.gpu)
        assert gpu is not None
        assert part.total == gpu.memory_bytes
        assert min(part.weights, part.kv_cache, part.overhead, part.other) >= 0


@given(boxes(), models, specs, used)
def test_a_broken_placement_is_never_ready(
    box: Box, facts: ModelFacts | None, spec: EngineSpec, taken: dict[int, int]
) -> None:
    cards = spec.placement.gpus
    broken = (
        not cards
        or len(set(cards)) < len(cards)
        or any(box.gpu(card) is None for card in cards)
        or not spec.placement.uniform
    )
    if broken:
        assert judge(box, facts, spec, used=taken).state is VerdictState.BLOCKED


@given(boxes(), st.sampled_from(NAMES), specs, used, st.integers(0, 5), st.integers(1, 1 << 37))
def test_more_memory_never_blocks_what_would_start(
    box: Box, name: str, spec: EngineSpec, taken: dict[int, int], index: int, more: int
) -> None:
    """With both scheduler sizes given: vLLM itself raises their defaults on cards of 70 and 160 GiB."""
    sized = replace(spec, options=replace(spec.options, max_num_seqs=64, max_num_batched_tokens=2048))
    if index >= len(box.gpus) or judge(box, MODELS[name], sized, used=taken).state is VerdictState.BLOCKED:
        return
    larger = tuple(
        replace(gpu, memory_bytes=gpu.memory_bytes + more) if gpu.index == index else gpu for gpu in box.gpus
    )
    grown = judge(replace(box, gpus=larger), MODELS[name], sized, used=taken)
    assert grown.state is not VerdictState.BLOCKED, grown.findings


@settings(deadline=None)
@given(boxes(), st.sampled_from(NAMES), specs, used, st.sampled_from(Objective))
def test_what_is_proposed_is_never_blocked(
    box: Box, name: str, spec: EngineSpec, taken: dict[int, int], objective: Objective
) -> None:
    proposals = propose(box, MODELS[name], spec, taken, objective=objective)
    for proposed, judgement, why in proposals:
        assert why
        assert judgement.state is not VerdictState.BLOCKED
        assert judge(box, MODELS[name], proposed, used=taken) == judgement
    if not proposals:
        assert nearest(box, MODELS[name], spec, taken).message
