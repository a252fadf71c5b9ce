"""What the kernel's log says of cards."""

from gpudeck.services.box.nvml.xid import xid_of
from gpudeck.services.diagnosis.entry import Advice, Entry, Found, sign
from gpudeck.services.diagnosis.words import card

XID = "xid"


def _bus(text: str) -> tuple[int, int, int]:
    """Domain, bus and device of "0000:3b:00" or "00000000:3B:00.0"."""
    domain, bus, device = text.split(":")[:3]
    return int(domain, 16), int(bus, 16), int(device.split(".")[0], 16)


def _xid(found: Found) -> Advice:
    number, bus, snapshot = found.number("xid"), found.word("bus"), found.around.snapshot
    if number is None:
        return Advice()
    gpu = None
    if snapshot is not None and bus:
        gpu = next((each for each in snapshot.box.gpus if each.pcie.bus and _bus(each.pcie.bus) == _bus(bus)), None)
    place = card(gpu) if gpu is not None else f"the card at PCI {bus}" if bus else "a card"
    known = xid_of(number)
    return Advice(f"Xid {number} on {place}: {known.meaning}.", f"{known.fix[0].upper()}{known.fix[1:]}.")


ENTRIES = (
    Entry(
        XID,
        "The driver reports an error of a card (Xid)",
        (
            sign(
                "NVRM: Xid",
                r"NVRM: Xid \((?:PCI:)?(?P<bus>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})?[^)]{0,40}\): "
                r"(?P<xid>\d{1,4})",
            ),
            sign("fallen off the bus"),
        ),
        "The driver reports an error of a card by its number: 79 off the bus, 48, 94 and 95 memory errors, 31 a "
        "fault of a "
        "program, 119 the card's own processor.",
        "Find the number in NVIDIA's Xid catalogue; stop what runs on the card, reset it, and watch whether it "
        "returns.",
        "the kernel's log (NVRM)",
        _xid,
    ),
)
