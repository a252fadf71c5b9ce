"""What NVIDIA's driver errors (Xid) mean, and what to do about each.

After NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors), in the words of an operator of inference engines.
"""

from dataclasses import dataclass

from gpudeck.services.box.types import Severity

_RESTART = "restart the engine that ran there; if it comes again under another engine too, suspect the card"
_RESET = "stop what runs on the card, then reset it (`nvidia-smi --gpu-reset`) or reboot"
_REBOOT = "reboot; if it comes back, check seating, power and cooling, and have the card examined"
_WATCH = "nothing to do now; have the card examined if it comes often"


@dataclass(frozen=True, slots=True)
class Xid:
    """One kind of driver error."""

    severity: Severity
    meaning: str
    fix: str


_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

_LINK = "look at the link's error counters; reset the cards at both ends, and check the bridge or baseboard if it stays"

XIDS = {
    8: Xid(_ERROR, "the card stopped processing a program's work", _RESTART),
    11: Xid(_ERROR, "a program sent a corrupt command stream", _RESTART),
    13: Xid(_ERROR, "a program made a fault in a compute kernel (often an address out of bounds)", _RESTART),
    31: Xid(_ERROR, "a program touched an invalid address in the card's memory", _RESTART),
    32: Xid(_ERROR, "a corrupt command stream reached the card, by a program or over PCIe", _RESTART),
    38: Xid(_ERROR, "the driver's firmware failed", _RESET),
    43: Xid(_ERROR, "a program's channel was reset after its own fault; the card is fine", _RESTART),
    45: Xid(
        _WARNING,
        "a program's work was removed from the card, since it was killed or another error went before",
        _RESTART,
    ),
    46: Xid(_ERROR, "the card stopped processing", _RESET),
    48: Xid(_ERROR, "a memory error could not be corrected (double bit)", _RESET),
    54: Xid(_ERROR, "the card's own power cable is not connected", "connect it, with the machine off"),
    61: Xid(_WARNING, "the card's micro-controller met a breakpoint", _RESET),
    62: Xid(_ERROR, "the card's micro-controller halted", _RESET),
    63: Xid(
        _WARNING, "a bad memory row or page was marked to be replaced", "reset the card when it is free, which does it"
    ),
    64: Xid(
        _ERROR,
        "a bad memory row or page could not be marked to be replaced",
        "reset the card; replace it if it comes again",
    ),
    68: Xid(_ERROR, "the video decoder failed", _RESTART),
    69: Xid(_ERROR, "a program used the graphics engine wrongly", _RESTART),
    74: Xid(_ERROR, "an NVLink failed", _LINK),
    79: Xid(_ERROR, "the card has fallen off the bus", _REBOOT),
    92: Xid(_WARNING, "corrected memory errors come at a high rate", _WATCH),
    94: Xid(
        _ERROR,
        "a memory error was contained: only the program that used that memory is lost",
        "restart that engine, and reset the card when it is free",
    ),
    95: Xid(_ERROR, "a memory error was not contained: every program on the card may be wrong", _RESET),
    109: Xid(_ERROR, "switching between programs took too long", _RESTART),
    110: Xid(_ERROR, "the card's security engine failed", _REBOOT),
    119: Xid(_ERROR, "the card's system processor (GSP) did not answer the driver", _RESET),
    120: Xid(_ERROR, "the card's system processor (GSP) failed", _RESET),
    121: Xid(_INFO, "an error on the link between chips (C2C) was corrected", _WATCH),
    123: Xid(_ERROR, "the card's power management failed", _RESET),
    136: Xid(_ERROR, "an NVLink could not be trained", _LINK),
    137: Xid(_ERROR, "a program's access over NVLink failed at the other card", _RESTART),
    140: Xid(_ERROR, "a memory error could not be corrected", _RESET),
    143: Xid(_ERROR, "the card could not be initialised", _REBOOT),
    154: Xid(
        _WARNING, "the driver changed what it advises to do with the card", "see GPU Recovery Action in `nvidia-smi -q`"
    ),
    155: Xid(_ERROR, "the NVLinks were brought down by software", _LINK),
    156: Xid(_INFO, "a part of the card's memory was retired", _WATCH),
    157: Xid(_ERROR, "a part of the card's memory could not be retired", "have the card examined"),
    158: Xid(_ERROR, "the card ran into a fatal timeout", _RESET),
    **{number: Xid(_ERROR, "an NVLink failed", _LINK) for number in range(144, 151)},
    171: Xid(_ERROR, "a memory error could not be corrected (in the card's DRAM)", _RESET),
    172: Xid(_ERROR, "a memory error could not be corrected (in the card's SRAM)", _RESET),
}
_UNKNOWN = Xid(
    _WARNING, "an error that gpudeck does not know", "look it up in NVIDIA's Xid catalogue; `dmesg` tells more"
)


def xid_of(number: int) -> Xid:
    """The kind of that number; for one that is not known, what can be said of any."""
    return XIDS.get(number, _UNKNOWN)


def sentence(gpu: int, number: int) -> str:
    """The event in words."""
    kind = xid_of(number)
    return f"GPU {gpu}: Xid {number}, {kind.meaning}: {kind.fix}."
