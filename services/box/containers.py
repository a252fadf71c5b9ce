"""What a reload of the machine's systemd may do to containers that use its cards; pure."""

from gpudeck.services.box.types import Snapshot


def containers_on(seen: Snapshot) -> dict[str, tuple[int, ...]]:
    """Each container with a process on a card, and the cards that it is on."""
    found: dict[str, set[int]] = {}
    for reading in seen.readings:
        for process in reading.processes:
            if process.container is not None:
                found.setdefault(process.container, set()).add(reading.gpu)
    return {name: tuple(sorted(cards)) for name, cards in found.items()}


def reload_risk(seen: Snapshot | None) -> str:
    """What to say before systemd reads its units anew; "" where no container is on a card.

    A reload sets the device rules of control groups as systemd knows them, and cards that a container's runtime let in
    behind systemd's back are not among them: NVML then answers "Unknown Error" in there
    (NVIDIA Container Toolkit, "Troubleshooting": containers losing access to GPUs).
    """
    found = containers_on(seen) if seen is not None else {}
    if not found:
        return ""
    who = ", ".join(f"{name} (GPU {', '.join(map(str, cards))})" for name, cards in found.items())
    them = "a container that uses" if len(found) == 1 else "containers that use"
    return (
        f"This has systemd reload its units, which can take the cards from {them} them: {who}. What runs in there then "
        "fails with “Unknown Error” until it is started anew."
    )
