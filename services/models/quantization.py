"""How quantized weights are stored, as far as it decides their size."""

from dataclasses import dataclass

from gpudeck.services.models.fields import Fields

SCALE_COPIES = 2
_MOST_BITS = 16


@dataclass(frozen=True, slots=True)
class Quantization:
    """A checkpoint's quantization; `bytes_per_element` includes the scales and zero points of its groups."""

    method: str
    bytes_per_element: float
    experts_only: bool = False
    guessed: bool = False
    group: int | None = None  # weights that share a scale, along a layer's input; None: a whole channel or unknown
    scheme: str | None = None  # of compressed-tensors: what weights and activations are
    block: tuple[int, int] | None = None  # block_n and block_k of block-wise fp8


def quantization_of(config: Fields) -> Quantization | None:
    """What config.json's quantization_config (or compression_config) says; None without one.  Raises ModelError."""
    found = config.inner("quantization_config") or config.inner("compression_config")
    if found is None:
        return None
    method = found.text("quant_method", default="").lower()
    if not method:
        # modelopt's older exports leave it out and name quant_algo; llm-compressor's always carry it.
        method = "modelopt" if found.has("quant_algo") or found.has("quantization") else "unknown"
    return _sized(method, found)


def _sized(method: str, found: Fields) -> Quantization:
    if method in ("awq", "gptq", "auto-round", "inc"):
        group = found.maybe_whole("group_size", least=-1)
        return Quantization(method, _grouped(_bits(found, 4), group), group=_positive(group))
    if method in ("fp8", "fbgemm_fp8"):
        return Quantization(method, 1.0, block=_block(found))
    if method == "mxfp4":
        # Blocks of 32 share one 8-bit exponent; attention, router and embeddings stay in the engine's dtype.
        return Quantization(method, 0.5 + 1 / 32, experts_only=True)
    if method == "bitsandbytes":
        return Quantization(method, 1.0 if found.flag("load_in_8bit", False) else _grouped(4, 64))
    if method == "compressed-tensors":
        return _compressed_tensors(found)
    if method == "modelopt":
        algorithm = found.text("quant_algo", default="").upper()
        return Quantization(method, 0.5 + 1 / 16 if "FP4" in algorithm else 1.0, guessed=not algorithm)
    return Quantization(method, _bits(found, 8) / 8, guessed=True)


def _compressed_tensors(found: Fields) -> Quantization:
    groups = found.inner("config_groups")
    for name in groups.values if groups is not None else ():
        group = groups.inner(name) if groups is not None else None
        weights = group.inner("weights") if group is not None else None
        if weights is not None:
            size = weights.maybe_whole("group_size", least=-1)
            bits = _bits(weights, 8)
            scheme = _scheme(weights, group.inner("input_activations") if group is not None else None, bits, size)
            return Quantization("compressed-tensors", _grouped(bits, size), group=_positive(size), scheme=scheme)
    return Quantization("compressed-tensors", 1.0, guessed=True)


def _scheme(weights: Fields, activations: Fields | None, bits: int, group_size: int | None) -> str | None:
    """vllm/model_executor/layers/quantization/compressed_tensors/schemes; None where it needs nothing of its own."""
    floating = weights.text("type", default="") == "float"
    fp8 = activations is not None and activations.text("type", default="") == "float"
    fp8 = fp8 and activations is not None and activations.whole("num_bits", default=0) == 8
    if floating and bits == 4:
        return "MXFP4" if group_size == 32 else "NVFP4"
    if floating and bits == 8 and fp8:
        return "W8A8-FP8"
    return "W4A8-FP8" if bits == 4 and fp8 else None


def _positive(group: int | None) -> int | None:
    return group if group is not None and group > 0 else None


def _block(found: Fields) -> tuple[int, int] | None:
    sides = found.values.get("weight_block_size")
    if not isinstance(sides, list) or len(sides) != 2:
        return None
    known = [side for side in sides if isinstance(side, int) and not isinstance(side, bool) and 0 < side <= 1 << 20]
    return (known[0], known[1]) if len(known) == 2 else None


def _bits(found: Fields, default: int) -> int:
    bits = found.whole("bits", "w_bit", "num_bits", default=default)
    if bits > _MOST_BITS:
        raise found.wrong(found.first("bits", "w_bit", "num_bits"), f"at most {_MOST_BITS}")
    return bits


def _grouped(bits: int, group_size: int | None) -> float:
    """Bytes per element: its bits, and for each group a 16-bit scale and a zero point of as many bits.

    vLLM keeps the scales twice, in the checkpoint's order and in Marlin's: Qwen2.5-32B-AWQ took 496 MiB more on an
    H200 (vLLM 0.24) than its elements and one set of scales, whose size is 465 MiB.
    """
    size = bits / 8
    if group_size is not None and group_size > 0:
        size += (2 * SCALE_COPIES + bits / 8) / group_size
    return size
