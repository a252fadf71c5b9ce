"""Failures of the shape: ranks, heads, layers and shards that do not go into each other."""

from gpudeck.services.diagnosis.entry import Advice, Entry, Found, sign
from gpudeck.services.diagnosis.words import shape


def _world_size(found: Found) -> Advice:
    ranks, cards = found.number("ranks"), found.number("cards")
    if ranks is None or cards is None:
        return Advice()
    spec = found.around.spec
    asked = f"{shape(spec)} asks for {ranks}" if spec is not None else f"{ranks} ranks are asked for"
    return Advice(
        f"{asked}, and the engine sees {cards} {'card' if cards == 1 else 'cards'}.",
        "Lower TP × PP, or show it more cards in CUDA_VISIBLE_DEVICES; after a changed unit: systemctl daemon-reload.",
    )


def _heads(found: Found) -> Advice:
    heads, size = found.number("heads"), found.number("tp")
    if not heads or not size:
        return Advice()
    fitting = [number for number in range(1, min(heads, 64) + 1) if heads % number == 0 and number < size]
    more = [number for number in range(size + 1, min(heads, 64) + 1) if heads % number == 0][:1]
    choices = " or ".join(str(number) for number in [*fitting[-1:], *more])
    return Advice(
        f"The model's {heads} attention heads can not be shared evenly by TP {size}.",
        f"Take TP {choices}, or use the cards as pipeline stages (PP).",
    )


def _partition(found: Found) -> Advice:
    layers, stages = found.number("layers"), found.number("stages")
    if layers is not None:
        return Advice(
            f"VLLM_PP_LAYER_PARTITION shares out {found.word('sum')} layers, and the model has {layers}.",
            f"Give parts that add up to {layers}, or leave the partition out.",
        )
    if stages is not None:
        return Advice(
            f"VLLM_PP_LAYER_PARTITION has {found.word('parts')} parts for {stages} stages.",
            f"Give {stages} parts, or leave the partition out.",
        )
    return Advice()


ENTRIES = (
    Entry(
        "world-size",
        "More ranks than cards",
        (
            sign(
                "is larger than the number of available GPUs",
                r"World size \((?P<ranks>\d+)\) is larger than the number of available GPUs \((?P<cards>\d+)\)",
            ),
            sign(
                "The number of required GPUs exceeds the total number of available GPUs",
                "The number of required GPUs exceeds the total number of available GPUs",
            ),
        ),
        "TP × PP asks for more cards than the engine sees.",
        "Lower TP × PP, or show it more cards in CUDA_VISIBLE_DEVICES; after a changed unit: systemctl daemon-reload.",
        "vllm/config/parallel.py",
        _world_size,
    ),
    Entry(
        "attention-heads",
        "Attention heads that TP does not divide",
        (
            sign(
                "attention heads (",
                r"attention heads \((?P<heads>\d+)\) must be divisible by tensor parallel size \((?P<tp>\d+)\)",
            ),
        ),
        "The model's attention heads can not be shared evenly by the cards of a stage.",
        "Take a TP that divides the heads, or use the cards as pipeline stages (PP).",
        "vllm/config/model.py",
        _heads,
    ),
    Entry(
        "kv-heads",
        "KV heads that TP does not divide",
        (
            sign(
                "AssertionError (assert ",
                r"AssertionError \(assert (?:self\.total_num_kv_heads % tp_size|tp_size % self\.total_num_kv_heads"
                r"|self\.total_num_heads % tp_size)",
            ),
            sign(" is not divisible by ", r"^(?:AssertionError: )?\d+ is not divisible by \d+$"),
        ),
        "The model's heads or a layer's width can not be shared evenly by the cards of a stage.",
        "Take a TP that divides the KV heads (or is a multiple of them), or use the cards as pipeline stages (PP).",
        "the attention classes in vllm/model_executor/models; vllm/distributed/utils.py",
    ),
    Entry(
        "pipeline-unsupported",
        "A model without pipeline parallelism",
        (sign("Pipeline parallelism is not supported"), sign("Pipeline parallelism is only supported")),
        "This model's code can not be split into stages.",
        "Use tensor parallelism alone (PP 1).",
        "vllm/config/model.py",
    ),
    Entry(
        "layer-partition",
        "A layer partition that does not fit",
        (
            sign(
                "(partitions)=",
                r"sum\(partitions\)=(?P<sum>\d+) does not match num_hidden_layers=(?P<layers>\d+)"
                r"|len\(partitions\)=(?P<parts>\d+) does not match pp_size=(?P<stages>\d+)",
            ),
            sign("Invalid partition string"),
        ),
        "VLLM_PP_LAYER_PARTITION does not share out this model's layers among these stages.",
        "Give one number of layers for each stage, adding up to all layers, or leave the partition out.",
        "vllm/distributed/utils.py",
        _partition,
    ),
    Entry(
        "quantized-shards",
        "Quantized weights that TP cuts at the wrong place",
        (
            sign(
                "not divisible by",
                r"not divisible by\s{1,3}(?:weight quantization block_|(?:self\.)?group_size|min_thread)",
            ),
            sign("weight quantization block_", r"not divisible by .{0,20}weight quantization block_"),
            sign("size is not aligned with the quantized weight shape"),
        ),
        "With so many cards in a stage a shard of the weights is no whole number of quantization groups.",
        "Lower TP, or use the cards as pipeline stages (PP).",
        "vllm/model_executor/layers/quantization; until 0.10 awq.py and gptq.py (vllm#5675)",
    ),
    Entry(
        "cpu-pipeline",
        "The CPU build's pipeline lost a hand-over",
        (sign("assert self.intermediate_tensors is not None"),),
        "A later stage began without what the first one computed: a defect of vLLM's CPU build with PP.",
        "Use TP on a CPU, or run pipeline stages on GPUs.",
        "vllm/v1/worker/gpu_model_runner.py (0.32)",
    ),
)
