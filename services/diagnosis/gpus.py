"""Failures between vLLM and the cards: drivers, architectures, kernels, and cards that can not be seen."""

from gpudeck.services.diagnosis.entry import Advice, Entry, Found, sign
from gpudeck.services.diagnosis.words import cards_below, where
from gpudeck.services.plan.changes import options_change

_AMPERE, _ADA = (8, 0), (8, 9)


def _bfloat16(found: Found) -> Advice:
    low = cards_below(found, _AMPERE)
    return Advice(
        f"{low or 'A card of the engine'} can not compute in bfloat16, which begins with compute capability 8.0.",
        "Take --dtype half.",
        options_change(dtype="half"),
    )


def _fp8_cache(found: Found) -> Advice:
    low = cards_below(found, _ADA)
    return Advice(
        f"{low or 'A card of the engine'} can not keep the KV cache in FP8 with this attention backend.",
        "Take --kv-cache-dtype auto.",
        options_change(kv_cache_dtype=None),
    )


def _fp8_architecture(found: Found) -> Advice:
    low = cards_below(found, _ADA)
    spec = found.around.spec
    cached = spec is not None and (spec.options.kv_cache_dtype or "").startswith("fp8")
    return Advice(
        f"{low or 'A card of the engine'} has no FP8 arithmetic (compute capability 8.9 on), and a kernel was compiled "
        "for it.",
        "Take --kv-cache-dtype auto."
        if cached
        else "Keep FP8 models on cards from 8.9 on, or take another quantization.",
        options_change(kv_cache_dtype=None) if cached else None,
    )


def _capability(found: Found) -> Advice:
    method, least, there = found.word("method"), found.number("least"), found.number("there")
    if least is None or there is None:
        return Advice()
    name = f"The quantization method {method}" if method else "The model's quantization"
    return Advice(
        f"{name} needs compute capability {least / 10:.1f}, and {where(found)} has {there / 10:.1f}.",
        "Put the engine on newer cards, or take the model in another quantization.",
    )


def _flash_attention(found: Found) -> Advice:
    low = cards_below(found, _AMPERE)
    return Advice(
        f"FlashAttention was chosen for all ranks, and {low or 'a card of the engine'} is older than Ampere (8.0).",
        "Leave the older card out, or take --attention-backend TRITON_ATTN.",
    )


def _driver(found: Found) -> Advice:
    snapshot = found.around.snapshot
    driver = f" ({snapshot.box.driver})" if snapshot is not None and snapshot.box.driver else ""
    return Advice(f"The NVIDIA driver{driver} is older than the CUDA that this vLLM was built for.")


ENTRIES = (
    Entry(
        "bfloat16-unsupported",
        "No bfloat16 on this card",
        (sign("Bfloat16 is only supported"),),
        "A card below compute capability 8.0 can not compute in bfloat16.",
        "Take --dtype half.",
        "vllm/platforms/cuda.py",
        _bfloat16,
    ),
    Entry(
        "quantization-unsupported",
        "A quantization that this card can not do",
        (
            sign(
                "is not supported for the current GPU",
                r"quantization method (?P<method>[\w.-]{1,40}) is not supported for the current GPU"
                r"(?:\. Minimum capability: (?P<least>\d+)\. Current capability: (?P<there>\d+))?",
            ),
            sign(
                "Quantization scheme is not supported",
                r"Quantization scheme is not supported"
                r"(?:.{0,40}(?:Required|Min) capability: (?P<least>\d+).{0,8}Current capability: (?P<there>\d+))?",
            ),
        ),
        "The model's quantization needs a newer card than this one.",
        "Put the engine on newer cards, or take the model in another quantization.",
        "vllm/config/vllm.py; compressed_tensors.py",
        _capability,
    ),
    Entry(
        "fp8-kv-cache",
        "No FP8 KV cache on this card",
        (sign("FP8 KV cache is not supported"),),
        "A card below compute capability 8.9 can not keep the KV cache in FP8 with this attention backend.",
        "Take --kv-cache-dtype auto.",
        "vllm/v1/attention/backends/triton_attn.py",
        _fp8_cache,
    ),
    Entry(
        "fp8-architecture",
        "FP8 compiled for a card without it",
        (sign("fp8e4nv not supported in this architecture"),),
        "A rank on a card below compute capability 8.9 compiled an FP8 kernel.",
        "Keep FP8 models and FP8 KV caches on cards from 8.9 on, or take another quantization.",
        "triton; vllm#17581",
        _fp8_architecture,
    ),
    Entry(
        "attention-backend",
        "No attention backend fits",
        (
            sign("No valid attention backend found"),
            sign("Selected backend", r"Selected backend .{1,80} is not valid for"),
        ),
        "No attention backend can serve this model with these options on these cards; the reasons stand in the line.",
        "Read the reasons: drop --attention-backend and --kv-cache-dtype, or install what is named there.",
        "vllm/platforms/cuda.py",
    ),
    Entry(
        "flash-attention-architecture",
        "FlashAttention on an older card",
        (
            sign("FlashAttention only support", r"FlashAttention only supports? Ampere GPUs or newer"),
            sign("FlashAttention version not detected"),
        ),
        "FlashAttention needs compute capability 8.0: a rank runs on an older card.",
        "Leave the older card out, or take --attention-backend TRITON_ATTN.",
        "flash-attn; vllm/v1/attention/backends/flash_attn.py",
        _flash_attention,
    ),
    Entry(
        "no-kernel-image",
        "A card that this build has no kernels for",
        (
            sign("no kernel image is available for execution"),
            sign(
                "is not compatible with the current PyTorch installation",
                r"sm_\d{2,3} is not compatible with the current",
            ),
            sign("invalid device function"),
        ),
        "The card is older or newer than those that this vLLM (or torch) was built for.",
        "Install a vLLM built for this card: a newer CUDA wheel for new cards, an older release for old ones.",
        "torch; vllm#14452",
    ),
    Entry(
        "driver-too-old",
        "The driver is too old",
        (
            sign("driver on your system is too old"),
            sign("CUDA driver version is insufficient for CUDA runtime version"),
        ),
        "The NVIDIA driver is older than the CUDA that this vLLM was built for.",
        "Update the driver, or install a vLLM wheel built for an older CUDA.",
        "torch/cuda",
        _driver,
    ),
    Entry(
        "driver-mismatch",
        "Driver and CUDA library do not belong together",
        (
            sign("Error 803", r"Error 803\b"),
            sign("unsupported display driver / cuda driver combination"),
            sign("Driver/library version mismatch"),
            sign("API mismatch: the client has the version"),
        ),
        "The process loaded a CUDA driver library of another version than the kernel module: a compat library, or a "
        "driver "
        "that was updated without a reboot.",
        "Take cuda-compat out of LD_LIBRARY_PATH and ld.so.conf; after a driver update, reboot.",
        "CUDA (error 803); gpustack#4678",
    ),
    Entry(
        "no-device",
        "The engine sees no card",
        (
            sign("Failed to infer device type"),
            sign("No CUDA GPUs are available"),
            sign("no CUDA-capable device is detected"),
            sign("Found no NVIDIA driver on your system"),
        ),
        "Inside the engine no card and no driver can be seen.",
        "See that nvidia-smi works there, that CUDA_VISIBLE_DEVICES is not empty, that the unit's sandbox lets "
        "/dev/nvidia* "
        "through, and that this vLLM is no CPU build.",
        "vllm/config/device.py; torch/cuda",
    ),
    Entry(
        "gpu-not-there",
        "CUDA_VISIBLE_DEVICES names a card that is not there",
        (
            sign("NVMLError_InvalidArgument"),
            sign("CUDA error: invalid device ordinal"),
        ),
        "CUDA_VISIBLE_DEVICES names a card that this box does not have.",
        "List only cards that nvidia-smi -L shows, in CUDA_DEVICE_ORDER=PCI_BUS_ID.",
        "vllm/third_party/pynvml.py",
    ),
    Entry(
        "gpu-uuid",
        "CUDA_VISIBLE_DEVICES by UUID",
        (
            sign("invalid literal for int() with base 10", r"invalid literal for int\(\) with base 10: '(?:GPU|MIG)-"),
            sign("failed to be inspected", r"Model architectures .{1,200} failed to be inspected"),
        ),
        "This vLLM (0.23 and older) reads CUDA_VISIBLE_DEVICES as numbers, and gives up on a UUID while it inspects "
        "the model.",
        "Name the cards by their indices with CUDA_DEVICE_ORDER=PCI_BUS_ID, or take a newer vLLM.",
        "vllm/platforms/interface.py; vllm#13815, vllm#20939",
    ),
    Entry(
        "illegal-access",
        "A kernel went wrong on the card",
        (
            sign("CUDA error: an illegal memory access"),
            sign("CUDA error: unspecified launch failure"),
            sign("CUDA error: device-side assert triggered"),
            sign("CUDA error: uncorrectable ECC error"),
            sign("CUBLAS_STATUS_EXECUTION_FAILED"),
        ),
        "A computation on a card failed: a defect of a kernel, or of the card.",
        "Look for an Xid at that time in `journalctl -k`; try --enforce-eager and another --attention-backend.",
        "torch",
    ),
    Entry(
        "flashinfer-kernels",
        "FlashInfer's kernels are missing",
        (sign("precompiled kernels are missing"),),
        "FlashInfer has no ready-made kernels of its version, and compiles them at the start or fails to.",
        "Run `vllm download-kernels` in the engine's environment.",
        "vllm/utils/flashinfer.py (0.32)",
        notice=True,
    ),
    Entry(
        "fp8-emulated",
        "FP8 or FP4 by weights only",
        (sign("does not have native support for FP", r"Your GPU does not have native support for FP[48]"),),
        "The card has no such arithmetic: weights are unpacked for every use, which saves memory and no time.",
        "Nothing has to be done; a newer card computes faster.",
        "vllm/model_executor/layers/quantization (Marlin)",
        notice=True,
    ),
)
