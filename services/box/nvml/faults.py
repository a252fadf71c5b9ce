"""What NVML's errors mean to an operator: one sentence each, with the way out."""

from typing import Any

from gpudeck.services.errors import OperatorError


class CardError(Exception):
    """A card that can not be read now; the text is the sentence for the operator."""


def never_codes(nvml: Any) -> frozenset[int]:
    """What a call answers that this card or driver will never answer: it is not asked again."""
    return frozenset(
        (
            nvml.NVML_ERROR_NOT_SUPPORTED,
            nvml.NVML_ERROR_FUNCTION_NOT_FOUND,
            nvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
            nvml.NVML_ERROR_INVALID_ARGUMENT,
            nvml.NVML_ERROR_NO_PERMISSION,
            nvml.NVML_ERROR_DEPRECATED,
        )
    )


def never_answered(nvml: Any) -> tuple[type[Exception], ...]:
    """The same as pynvml raises it."""
    return tuple(type(nvml.NVMLError(code)) for code in sorted(never_codes(nvml)))


def card_fault(nvml: Any, index: int, error: Exception) -> CardError | None:
    """The fault that an error on a card stands for; None for one that concerns a single reading."""
    code = getattr(error, "value", nvml.NVML_ERROR_UNKNOWN)
    sentence = {
        nvml.NVML_ERROR_GPU_IS_LOST: (
            f"GPU {index} has fallen off the bus: look for its Xid in `dmesg`, then reset it "
            f"(`nvidia-smi --gpu-reset -i {index}`) or reboot."
        ),
        nvml.NVML_ERROR_RESET_REQUIRED: (
            f"GPU {index} wants a reset before it works again: `nvidia-smi --gpu-reset -i {index}`, or reboot."
        ),
        nvml.NVML_ERROR_GPU_NOT_FOUND: f"GPU {index} is no longer there: look for it with `lspci`.",
        nvml.NVML_ERROR_NOT_FOUND: f"GPU {index} is no longer there: look for it with `lspci`.",
        nvml.NVML_ERROR_TIMEOUT: f"GPU {index} did not answer the driver in time: look for its Xid in `dmesg`.",
        nvml.NVML_ERROR_DRIVER_NOT_LOADED: "The NVIDIA driver was unloaded: load it again with `modprobe nvidia`.",
        nvml.NVML_ERROR_UNINITIALIZED: "The connection to the NVIDIA driver was lost; it is opened anew.",
    }.get(code)
    return None if sentence is None else CardError(sentence)


def hangs(index: int) -> str:
    return f"GPU {index} does not answer, a call to it hangs: look for its Xid in `dmesg`."


def unopened_card(nvml: Any, index: int, error: Exception) -> str:
    """Why a card that the driver counts could not be opened."""
    if getattr(error, "value", None) == nvml.NVML_ERROR_NO_PERMISSION:
        return f"GPU {index} may not be opened by this user: ask for access to /dev/nvidia{index}."
    fault = card_fault(nvml, index, error)
    return str(fault) if fault else f"GPU {index} can not be opened: {error}."


def library_error(nvml: Any, error: Exception) -> OperatorError:
    """Why the library could not be opened."""
    code = getattr(error, "value", nvml.NVML_ERROR_UNKNOWN)
    sentence = {
        nvml.NVML_ERROR_LIBRARY_NOT_FOUND: (
            "No NVIDIA driver is installed here (libnvidia-ml.so.1 was not found): install the driver, "
            "or look at a simulated box with --demo."
        ),
        nvml.NVML_ERROR_DRIVER_NOT_LOADED: (
            "The NVIDIA driver is installed and not loaded: load it with `modprobe nvidia` (`dmesg` says why if that "
            "fails), or look at a simulated box with --demo."
        ),
        nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
            "The NVIDIA library and the loaded kernel driver are of two versions, as after an update: reboot, or "
            "unload the nvidia modules and load them again."
        ),
        nvml.NVML_ERROR_NO_PERMISSION: (
            "This user may not open the NVIDIA devices: run as root, or join the group that owns /dev/nvidiactl "
            "(`ls -l /dev/nvidiactl`)."
        ),
        nvml.NVML_ERROR_FUNCTION_NOT_FOUND: (
            "The NVIDIA driver here is too old to be read: gpudeck needs one from 2018 (396) or later."
        ),
        nvml.NVML_ERROR_GPU_NOT_FOUND: "The NVIDIA driver finds no GPU: look for one with `lspci`, or use --demo.",
        nvml.NVML_ERROR_GPU_IS_LOST: (
            "The NVIDIA driver has lost its GPUs: look for their Xid in `dmesg`, then reset them or reboot."
        ),
    }.get(code)
    return OperatorError(sentence or f"The NVIDIA driver can not be read: {error}; `nvidia-smi` may tell more.")
