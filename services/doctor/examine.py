"""Every check, in the order in which an operator would mend things."""

from dataclasses import dataclass, replace

from gpudeck.services.box.types import Box, BoxSource
from gpudeck.services.doctor import compatibility, machine
from gpudeck.services.doctor.check import Check, Health, told
from gpudeck.services.doctor.engine_environment import Versions, ask
from gpudeck.services.errors import OperatorError
from gpudeck.services.host.judge import concerns, count, size
from gpudeck.services.host.places import kept
from gpudeck.services.host.reader import HostReader
from gpudeck.services.host.types import HostReading


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found; None for what could not be asked."""

    checks: tuple[Check, ...]
    versions: Versions | None
    host: HostReading


def examine(source: BoxSource, *, demo: bool, unicode: bool) -> Examination:
    """Look at everything.  Blocks: some parts are asked over D-Bus or in a subprocess, each with a time-out."""
    # Read twice, so that shares and rates are over what the other checks take.
    reader = HostReader(kept())
    reader.read()
    box, driver = _box(source)
    versions, engine_checks = _engine(box, demo=demo)
    runner = [
        told("engine runner", lambda: machine.runner(demo=demo), lacking=Health.MISSING),
        machine.linger(),
        told("journal", machine.journal, lacking=Health.LESS),
    ]
    host = reader.read()
    checks = (
        driver,
        *(Check("accelerator", Health.LESS, accelerator.says) for accelerator in host.accelerators),
        None if demo else machine.rights(),
        *runner,
        *engine_checks,
        *_host(host, 0 if demo or box is None else len(box.gpus)),
        machine.terminal(unicode=unicode),
    )
    return Examination(tuple(check for check in checks if check is not None), versions, host)


def _box(source: BoxSource) -> tuple[Box | None, Check]:
    try:
        box = source.open()
    except OperatorError as error:
        return None, Check("driver", Health.MISSING, str(error))
    source.close()
    return box, machine.driver(box)


def _engine(box: Box | None, *, demo: bool) -> tuple[Versions | None, list[Check]]:
    """vLLM, what it stands on, and whether that goes with the driver."""
    if demo:
        return None, [Check("vLLM", Health.FINE, "The demo runs a simulated engine.")]
    from gpudeck.services.engine.program import find_vllm

    try:
        found = find_vllm()
    except OperatorError as error:
        return None, [Check("vLLM", Health.MISSING, str(error))]
    if found is None:
        says = "No vllm was found: put it on PATH, or name it in GPUDECK_VLLM."
        return None, [Check("vLLM", Health.MISSING, says)]
    checks = [Check("vLLM", Health.FINE, f"{' '.join(found)} will run new engines.")]
    try:
        versions = ask(found)
    except OperatorError as error:
        return None, [*checks, Check("versions", Health.LESS, str(error))]
    checks.append(compatibility.versions(versions))
    if versions.vllm is not None and box is not None:
        checks.append(compatibility.cuda(versions, box.driver, box.cuda))
    return versions, checks


def _host(host: HostReading, cards: int) -> list[Check]:
    """A check for each threshold that is passed, or one that says that none is."""
    # How busy the CPUs were within a second tells nothing, the checks were among what ran; the load does.
    found = [
        Check(concern.part, Health.LESS, concern.says) for concern in concerns(replace(host, cpu_share=None), cards)
    ]
    if found:
        return found
    says = (
        f"{count(host.threads, 'CPU')}, {size(host.memory_available_bytes)} of {size(host.memory_total_bytes)} memory "
        "free; disks, swap, shared memory and open files as engines need them."
    )
    return [Check("host", Health.FINE, says)]
