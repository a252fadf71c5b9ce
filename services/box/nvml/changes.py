"""What differs between a box as it was and as it is: cards that came and went, NVLinks that went up or down."""

from collections.abc import Iterator

from gpudeck.services.box.types import Box, Gpu, NvLink, Severity


def membership_changes(before: Box, now: Box) -> tuple[list[Gpu], list[Gpu]]:
    """The cards that were added, and those that are gone."""
    known, there = {_identity(gpu) for gpu in before.gpus}, {_identity(gpu) for gpu in now.gpus}
    return (
        [gpu for gpu in now.gpus if _identity(gpu) not in known],
        [gpu for gpu in before.gpus if _identity(gpu) not in there],
    )


def lane_changes(before: Box, now: Box) -> Iterator[tuple[int, Severity, str]]:
    """For each card whose NVLinks went up or down: the card, and what to tell."""
    for gpu in now.gpus:
        was = before.gpu(gpu.index)
        up = {link.lane for link in was.nvlinks if link.up} if was else set[int]()
        down = [link for link in gpu.nvlinks if not link.up and link.lane in up]
        back = [link for link in gpu.nvlinks if link.up and was and link.lane not in up]
        if down:
            yield gpu.index, Severity.ERROR, f"GPU {gpu.index}: {_named(down)} went down."
        if back:
            yield gpu.index, Severity.INFO, f"GPU {gpu.index}: {_named(back)} came up."


def _identity(gpu: Gpu) -> object:
    return gpu.uuid or gpu.pcie.bus or gpu.index


def _named(links: list[NvLink]) -> str:
    numbers = ", ".join(str(link.lane) for link in links)
    return f"NVLink {numbers}" if len(links) == 1 else f"NVLinks {numbers}"
