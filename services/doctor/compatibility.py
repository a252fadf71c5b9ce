"""Whether driver, CUDA, NCCL and vLLM go together; pure."""

from gpudeck.services.doctor.check import Check, Health
from gpudeck.services.doctor.engine_environment import Versions

# The driver that came with each CUDA, the least that runs all of it (NVIDIA, CUDA Toolkit release notes, table "CUDA
# Toolkit and Corresponding Driver Versions", Linux, the first release of each).
DRIVER_OF_CUDA = {
    "11.8": "520.61.05",
    "12.0": "525.60.13",
    "12.1": "530.30.02",
    "12.2": "535.54.03",
    "12.3": "545.23.06",
    "12.4": "550.54.14",
    "12.5": "555.42.02",
    "12.6": "560.28.03",
    "12.8": "570.26",
    "12.9": "575.51.03",
    "13.0": "580.65.06",
    "13.1": "590.44.01",
}
# The least driver for any CUDA of a major version (NVIDIA, CUDA Compatibility, "Minor Version Compatibility", table 1).
# Within it all runs but what is compiled on the spot: an older driver does not take a newer CUDA's PTX, and Triton and
# FlashInfer hand it some ("the provided PTX was compiled with an unsupported toolchain").
DRIVER_OF_MAJOR = {11: "450", 12: "525", 13: "580"}


def versions(engine: Versions) -> Check:
    """vLLM and what it stands on."""
    if engine.vllm is None:
        return Check(
            "versions",
            Health.MISSING,
            f"No vLLM lies beside Python {engine.python}: pip install vllm in that environment.",
        )
    parts = [f"vLLM {engine.vllm}", f"torch {engine.torch or 'not installed'}", f"CUDA {engine.cuda or 'none'}"]
    parts += [f"NCCL {engine.nccl}"] if engine.nccl else []
    broken = [pin for pin in engine.pins if pin.found is not None and not pin.kept]
    if broken:
        pin, more = broken[0], f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        return Check(
            "versions",
            Health.LESS,
            f"{', '.join(parts)}: {pin.of} wants {pin.name} {pin.wanted} and {pin.found} is there{more}; "
            f"pip install vllm=={engine.vllm.partition('+')[0]} into a fresh environment.",
        )
    return Check("versions", Health.FINE, f"{', '.join(parts)}, Python {engine.python}.")


def cuda(engine: Versions, driver: str | None, driver_cuda: str | None) -> Check:
    """The CUDA that torch was built for against the newest that the driver runs."""
    if engine.torch is None:
        return Check(
            "CUDA", Health.MISSING, "torch does not lie beside vLLM, which can not start so: install PyPI's vllm anew."
        )
    if engine.cuda is None:
        return Check(
            "CUDA",
            Health.MISSING,
            f"torch {engine.torch} is built without CUDA, so vLLM finds no card: install PyPI's vllm anew.",
        )
    wanted, offered = _numbers(engine.cuda), _numbers(driver_cuda or "")
    if not wanted or not offered:
        return Check("CUDA", Health.LESS, f"torch is built for CUDA {engine.cuda}; the driver does not tell its own.")
    if wanted[:2] <= offered[:2]:
        return Check(
            "CUDA", Health.FINE, f"torch's CUDA {engine.cuda} runs on this driver, which takes up to {driver_cuda}."
        )
    name = ".".join(map(str, wanted[:2]))
    whole = DRIVER_OF_CUDA.get(name)
    needed = f"driver {whole} or newer" if whole else "a newer driver"
    least = DRIVER_OF_MAJOR.get(wanted[0])
    if wanted[0] == offered[0] and (least is None or _numbers(driver or "") >= _numbers(least)):
        return Check(
            "CUDA",
            Health.LESS,
            f"torch's CUDA {engine.cuda} is newer than the driver's {driver_cuda}: most runs, but kernels compiled on "
            f"the spot may fail (unsupported toolchain); install {needed}.",
        )
    return Check(
        "CUDA",
        Health.MISSING,
        f"torch's CUDA {engine.cuda} does not run on driver {driver or 'unknown'}, which takes up to {driver_cuda}: "
        f"install {needed}, or a vLLM built for CUDA {offered[0]}.",
    )


def _numbers(version: str) -> tuple[int, ...]:
    """ "580.95.05" → (580, 95, 5); () for what is no version."""
    parts = version.split(".")
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else ()
