"""Whether the driver runs the CUDA that the engine was built for."""

from collections.abc import Iterator

from gpudeck.services.doctor.compatibility import DRIVER_OF_CUDA, DRIVER_OF_MAJOR
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.plan.versions import release
from gpudeck.services.rules.rule import Plan, Rule

TOO_OLD = Rule(
    "driver-too-old",
    Severity.ERROR,
    "A driver older than the engine's CUDA",
    "A CUDA of a newer major version than the driver's does not start: CUDA 12 needs driver 525, CUDA 13 needs 580.",
    "NVIDIA, CUDA Compatibility, Minor Version Compatibility, table 1; CUDA Toolkit release notes",
)
MINOR = Rule(
    "driver-minor-older",
    Severity.INFO,
    "A driver of the same CUDA generation, but older",
    "Within one major version what is compiled beforehand runs; what Triton and FlashInfer compile on the spot may end "
    "in `the provided PTX was compiled with an unsupported toolchain`.",
    "NVIDIA, CUDA Compatibility, Minor Version Compatibility",
)
WHEEL = Rule(
    "driver-below-wheel",
    Severity.INFO,
    "A driver that the usual wheel does not run on",
    "From 0.20 on PyPI's vLLM is built for CUDA 13, which needs driver 580; wheels for CUDA 12.9 run from 525 on.",
    "vLLM 0.20 release notes; NVIDIA, CUDA Compatibility, table 1",
)
AGED = Rule(
    "driver-aged",
    Severity.WARNING,
    "A driver below 525, or CUDA below 11.8",
    "No vLLM of today is built for them.",
    "vLLM installation guide; NVIDIA, CUDA Compatibility, table 1",
)
RULES = (TOO_OLD, MINOR, WHEEL, AGED)
_CUDA_13_SINCE = (0, 20, 0)
_CUDA_12, _CUDA_13 = (int(DRIVER_OF_MAJOR[major]) for major in (12, 13))  # drivers


def check(plan: Plan) -> Iterator[Finding]:
    driver, offered = _numbers(plan.box.driver), _numbers(plan.box.cuda)
    wanted = _numbers(plan.around.engine_cuda)
    if driver and wanted:
        yield from _known(plan, driver, offered, wanted)
    elif (driver and driver[0] < _CUDA_12) or (offered and offered[:2] < (11, 8)):
        yield AGED.finding(
            f"The driver ({plan.box.driver or 'unknown'}, CUDA {plan.box.cuda or 'unknown'}) is older than any vLLM of "
            "today asks for.",
            "Install driver 580 or newer.",
        )
    elif driver and driver[0] < _CUDA_13 and release(plan.around.vllm_version) >= _CUDA_13_SINCE:
        yield WHEEL.finding(
            f"PyPI's vLLM {plan.around.vllm_version} is built for CUDA 13 and needs driver 580; this one is "
            f"{plan.box.driver}.",
            "Install driver 580 or newer, or vLLM's wheel for CUDA 12.9 (uv pip install vllm --torch-backend=cu129).",
        )


def _known(plan: Plan, driver: tuple[int, ...], offered: tuple[int, ...], wanted: tuple[int, ...]) -> Iterator[Finding]:
    major = DRIVER_OF_MAJOR.get(wanted[0])
    whole = DRIVER_OF_CUDA.get(".".join(str(part) for part in wanted[:2]))
    engine = f"The engine's torch is built for CUDA {plan.around.engine_cuda}"
    if (major is not None and driver < _numbers(major)) or (major is None and offered and offered[0] < wanted[0]):
        least = f"driver {whole or major} or newer" if whole or major else "a newer driver"
        yield TOO_OLD.finding(
            f"{engine}, which does not run on driver {plan.box.driver}.",
            f"Install {least}, or a vLLM that is built for an older CUDA.",
        )
    elif whole is not None and driver < _numbers(whole):
        yield MINOR.finding(
            f"{engine}; driver {plan.box.driver} is older than {whole}, which came with it: kernels that are compiled "
            "on the spot may fail.",
            f"Install driver {whole} or newer.",
        )


def _numbers(version: str | None) -> tuple[int, ...]:
    """ "580.95.05" → (580, 95, 5); () for what is no version."""
    parts = (version or "").split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() and len(part) < 10 for part in parts) else ()
