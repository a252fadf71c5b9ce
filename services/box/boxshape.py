"""The shape of a box file, key by key."""

from gpudeck.services.box.limits import (
    BUS,
    CELSIUS,
    CPU_LIST,
    INDEX,
    LANE,
    LINK_KIND,
    MAX_FRAMES,
    MAX_GPUS,
    MAX_MEMORY_MIB,
    MAX_NVLINKS,
    MAX_PROCESSES,
    MEMORY_MIB,
    MHZ,
    P2P,
    PCIE_GEN,
    PCIE_WIDTH,
    REMOTE,
)
from gpudeck.services.box.readingshape import EVENT, PROCESS, READING
from gpudeck.services.box.shape import Either, Field, Listing, Number, OrNull, Record, Text, Truth, Whole

_power = Number(1, 100_000)

PCIE = Record(
    {
        "bus": Field(BUS, "PCI bus id as NVML writes it"),
        "gen": Field(PCIE_GEN, "widest generation that card and slot agree on"),
        "width": Field(PCIE_WIDTH, "lanes that card and slot agree on"),
    }
)

NVLINK = Record(
    {
        "lane": Field(LANE, "its number on the card", required=True),
        "up": Field(Truth(), "whether it works", required=True),
        "version": Field(Whole(1, 99), "NVLink version"),
        "speed_gbs": Field(Number(0, 100_000), "speed in each direction, GB/s"),
        "remote": Field(REMOTE, "what is at its other end"),
        "peer": Field(INDEX, "index of the card at its other end"),
        "bus": Field(BUS, "PCI bus id of what is at its other end"),
    },
    "One NVLink of a card",
)

GPU = Record(
    {
        "index": Field(INDEX, "NVML's index (PCI order)", required=True),
        "name": Field(Text(r"[\s\S]*\S[\s\S]*", "the card's name"), "product name", required=True),
        "memory_mib": Field(Number(1, MAX_MEMORY_MIB), "memory, MiB", required=True),
        "compute_capability": Field(
            Text(r"\d{1,2}\.\d", 'a string such as "8.9"'), "CUDA architecture number", required=True
        ),
        "uuid": Field(Text(r"\S+", "a GPU's UUID"), "UUID"),
        "pcie": Field(PCIE, "place on the bus"),
        "numa": Field(
            Either(Text(CPU_LIST, 'NUMA nodes such as "0" or "0-1"'), Whole(0, 99_999)),
            "NUMA nodes next to the card",
        ),
        "cpu_affinity": Field(Text(CPU_LIST, 'a list of CPUs such as "0-55,112-167"'), "CPUs next to the card"),
        "power_limit_w": Field(_power, "enforced power limit, W"),
        "power_default_w": Field(_power, "power limit as delivered, W"),
        "power_min_w": Field(_power, "least power limit that can be set, W"),
        "power_max_w": Field(_power, "highest power limit that can be set, W"),
        "memory_bandwidth_gbs": Field(Number(1, 1_000_000), "memory bandwidth, GB/s"),
        "memory_reserved_mib": Field(MEMORY_MIB, "the driver's reserve, MiB: CUDA's total is memory_mib without it"),
        "unified_memory": Field(Truth(), "whether its memory is the host's"),
        "sm_clock_max_mhz": Field(MHZ, "highest SM clock, MHz"),
        "memory_clock_max_mhz": Field(MHZ, "highest memory clock, MHz"),
        "slowdown_c": Field(CELSIUS, "core temperature from which the hardware slows the card down, °C"),
        "shutdown_c": Field(CELSIUS, "core temperature at which the card switches off, °C"),
        "memory_limit_c": Field(CELSIUS, "memory temperature from which the card is slowed down, °C"),
        "nvlinks": Field(Listing(NVLINK, MAX_NVLINKS), "its NVLinks"),
        "used_mib": Field(MEMORY_MIB, "memory in use, the driver's reserve left out, MiB"),
        "processes": Field(Listing(PROCESS, MAX_PROCESSES), "who is on the card"),
    },
    "A card",
)

LINK = Record(
    {
        "a": Field(INDEX, "index of one card", required=True),
        "b": Field(INDEX, "index of the other", required=True),
        "kind": Field(
            Text(LINK_KIND, "NV1 to NV36, PIX, PXB, PHB, NODE or SYS"), "as nvidia-smi topo -m", required=True
        ),
    },
    "How two cards reach each other; a pair that is left out is SYS",
)

PEER_ACCESS = Record(
    {
        "a": Field(INDEX, "index of one card", required=True),
        "b": Field(INDEX, "index of the other", required=True),
        "read": Field(P2P, "reading the other's memory, as nvidia-smi topo -p2p r"),
        "write": Field(P2P, "writing it, as nvidia-smi topo -p2p w"),
        "nvlink": Field(P2P, "over NVLink, as nvidia-smi topo -p2p n"),
        "atomics": Field(P2P, "atomic operations, as nvidia-smi topo -p2p a"),
    },
    "Whether two cards reach each other's memory straight",
)

ACCELERATOR = Record(
    {
        "address": Field(Text(), "place on the PCI bus", required=True),
        "vendor": Field(Text(), "its maker", required=True),
        "name": Field(Text(), "what it is called", required=True),
    },
    "A device that computes and is no NVIDIA card",
)

_BOX = {
    "name": Field(Text(), "the machine's name"),
    "driver": Field(OrNull(Text()), "driver version"),
    "cuda": Field(OrNull(Text()), "newest CUDA that the driver runs"),
    "host_memory_mib": Field(Number(1, 1 << 32), "the machine's own memory, MiB"),
    "gpus": Field(Listing(GPU, MAX_GPUS, least=1), "the cards", required=True),
    "links": Field(Listing(LINK, MAX_GPUS * MAX_GPUS), "links between the cards"),
    "peer_access": Field(Listing(PEER_ACCESS, MAX_GPUS * MAX_GPUS), "straight access between the cards"),
    "accelerators": Field(Listing(ACCELERATOR, MAX_GPUS), "accelerators of other makers"),
    "topology_known": Field(Truth(), "false where the driver did not tell how some cards are joined"),
    "faults": Field(Listing(Text(), MAX_GPUS), "cards that could not be opened, one sentence each"),
}

FRAME = Record(
    {
        "at": Field(Number(0, 1e9), "seconds since the recording began", required=True),
        "box": Field(
            Record(_BOX, "The box from this moment on, where it changed (a card added, a link down)"), "the changed box"
        ),
        "readings": Field(Listing(READING, MAX_GPUS), "every card once", required=True),
        "events": Field(Listing(EVENT, 4096), "what happened since the frame before"),
    },
    "One moment of a recording",
)

BOX_FILE = Record(
    {
        **_BOX,
        "recorded_at": Field(Number(0, 1e12), "when the recording began, seconds since the epoch"),
        "frames": Field(Listing(FRAME, MAX_FRAMES), "timed readings to replay, in order"),
    },
    "One box: its cards, the links between them, and, in a recording, what they read from moment to moment",
)
