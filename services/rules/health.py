"""The cards' state and history: MIG, display, memory errors, Xids.  Only what was read is judged."""

from collections.abc import Iterator

from gpudeck.services.box.types import Gpu, Reading
from gpudeck.services.box.types import Severity as EventSeverity
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.rules.rule import Plan, Rule, listed, named
from gpudeck.services.text import printable

FAULT = Rule(
    "gpu-fault",
    Severity.WARNING,
    "A card that does not answer",
    "A card that NVML can not read is lost to CUDA, or about to be.",
    "NVML: NVML_ERROR_GPU_IS_LOST, NVML_ERROR_TIMEOUT",
)
MIG = Rule(
    "mig-mode",
    Severity.ERROR,
    "A card in MIG mode",
    "CUDA shows a process one slice of a card in MIG mode, whatever CUDA_VISIBLE_DEVICES lists: the memory that is "
    "planned here is the whole card's, and several ranks can never see several slices.",
    "NVIDIA MIG user guide, CUDA_VISIBLE_DEVICES; vllm#7211, #6551, #17047",
)
PROHIBITED = Rule(
    "compute-prohibited",
    Severity.ERROR,
    "A card on which nothing may compute",
    "In compute mode PROHIBITED no CUDA context can be made.",
    "CUDA: cudaErrorDevicesUnavailable; nvidia-smi -c",
)
FABRIC = Rule(
    "fabric-not-ready",
    Severity.ERROR,
    "An NVSwitch fabric that is not ready",
    "On NVSwitch boxes CUDA does not start before the fabric manager has registered the card.",
    "CUDA: cudaErrorSystemNotReady (802); NVIDIA fabric manager user guide",
)
ROWS = Rule(
    "memory-worn",
    Severity.WARNING,
    "Memory that the card could not mend",
    "A row remapping that failed, or is pending until a reset, and uncorrected ECC errors end in Xid 48, 63, 64, 94 or "
    "95 and with them the engine.",
    "NVIDIA GPU memory error management; Xid catalogue",
)
XID = Rule(
    "xid-history",
    Severity.WARNING,
    "A driver error since the box is watched",
    "An Xid tells that the driver or the card failed; many come again under the same load.",
    "NVIDIA Xid catalogue",
)
DISPLAY = Rule(
    "display-attached",
    Severity.INFO,
    "A card that also draws a screen",
    "The desktop's memory is counted as taken, grows with what is opened, and the fraction of gpu-memory-utilization "
    "holds for all ranks: the card with the screen lowers the others too.",
    "vllm#49816",
)
PERSISTENCE = Rule(
    "persistence-off",
    Severity.INFO,
    "Persistence mode is off",
    "Without it the driver lets go of a card that nobody uses: the next start waits for it, and counters begin anew.",
    "NVIDIA driver persistence",
)
RULES = (FAULT, MIG, PROHIBITED, FABRIC, ROWS, XID, DISPLAY, PERSISTENCE)


def check(plan: Plan) -> Iterator[Finding]:
    if not plan.around.readings and not plan.around.events:
        return
    readings = {reading.gpu: reading for reading in plan.around.readings}
    cards = [(gpu, readings[gpu.index]) for gpu in plan.gpus if gpu.index in readings]
    yield from _blocking(cards, len(plan.spec.placement.gpus))
    yield from _worn(cards)
    yield from _xids(plan)
    screens = [gpu for gpu, reading in cards if reading.modes is not None and reading.modes.display_active]
    if screens:
        yield DISPLAY.finding(
            f"{_names(screens)} also {'draws' if len(screens) == 1 else 'draw'} a screen, which takes memory and time.",
            "Move the desktop to another card, or stop it (systemctl isolate multi-user.target).",
        )
    lax = [gpu for gpu, reading in cards if reading.modes is not None and reading.modes.persistence is False]
    if lax:
        yield PERSISTENCE.finding(
            f"Persistence mode is off on {_names(lax)}: starts wait for the driver.",
            "Switch it on: systemctl enable --now nvidia-persistenced.",
        )


def _blocking(cards: list[tuple[Gpu, Reading]], ranks: int) -> Iterator[Finding]:
    sliced = [gpu for gpu, reading in cards if reading.mig_enabled]
    if sliced:
        more = f"; {ranks} ranks can not each have a slice" if ranks > 1 else ""
        yield MIG.finding(
            f"{_names(sliced)} {'is' if len(sliced) == 1 else 'are'} in MIG mode: the engine would see one slice"
            f"{more}.",
            f"Switch it off (nvidia-smi -i {','.join(str(gpu.index) for gpu in sliced)} -mig 0), or run one engine for "
            "each slice in a container that is given the slice's UUID.",
        )
    barred = [gpu for gpu, reading in cards if reading.modes is not None and reading.modes.compute == "prohibited"]
    if barred:
        yield PROHIBITED.finding(f"{_names(barred)}: compute mode is prohibited.", "Run nvidia-smi -c 0.")
    waiting = [
        gpu
        for gpu, reading in cards
        if reading.modes is not None and reading.modes.fabric in ("in progress", "not started")
    ]
    if waiting:
        yield FABRIC.finding(
            f"The NVSwitch fabric of {_names(waiting)} is not ready.",
            "See why: systemctl status nvidia-fabricmanager.",
        )
    for gpu, reading in cards:
        if reading.fault is not None:
            yield FAULT.finding(
                f"{named(gpu)} can not be read: {printable(reading.fault)}",
                "Use another card, or reset this one (nvidia-smi -r, or a reboot).",
            )


def _worn(cards: list[tuple[Gpu, Reading]]) -> Iterator[Finding]:
    for gpu, reading in cards:
        told = []
        rows, ecc = reading.rows, reading.ecc
        if rows is not None and rows.remapping_failed:
            told.append("a row remapping failed")
        if rows is not None and (rows.remapping_pending or rows.retirement_pending):
            told.append("memory waits for a reset to be put out of use")
        if ecc is not None and ecc.volatile_uncorrected:
            told.append(f"{ecc.volatile_uncorrected:,} uncorrected memory errors since the driver was loaded")
        if told:
            failed = rows is not None and rows.remapping_failed
            yield ROWS.finding(
                f"{named(gpu)}: {listed(told)}.",
                "Have the card replaced." if failed else "Reset the card (nvidia-smi -r) before it serves again.",
            )


def _xids(plan: Plan) -> Iterator[Finding]:
    for gpu in plan.gpus:
        numbers = dict.fromkeys(
            event.xid
            for event in plan.around.events
            if event.gpu == gpu.index and event.xid is not None and event.severity is not EventSeverity.INFO
        )
        if numbers:
            yield XID.finding(
                f"{named(gpu)} had Xid {listed([str(number) for number in numbers])} since the box is watched.",
                "See what it means (gpudeck box, or dmesg) before the card serves again.",
            )


def _names(gpus: list[Gpu]) -> str:
    return listed([named(gpu) for gpu in gpus])
