"""The shapes of the JSON documents that `gpudeck box` and `gpudeck topo` print."""

from gpudeck.services.box.boxshape import BOX_FILE, LINK, MAX_GPUS, MAX_INDEX
from gpudeck.services.box.shape import Field, Listing, Number, OrNull, Record, Shape, Text, Whole

_ANY = 1 << 62


def _told(shape: Shape, about: str) -> Field:
    """A key that is always there, null where the card does not report it."""
    return Field(OrNull(shape), about, required=True)


_count = Whole(0, _ANY)
_rank = Whole(0, 65535)

_PCIE = Record(
    {
        "bus": _told(Text(), "PCI bus id as NVML writes it"),
        "gen": _told(_count, "PCIe generation now"),
        "width": _told(_count, "PCIe lanes now"),
        "max_gen": _told(_count, "widest generation that card and slot agree on"),
        "max_width": _told(_count, "lanes that card and slot agree on"),
    }
)

_PROCESS = Record(
    {
        "pid": Field(_count, "process id", required=True),
        "name": Field(Text(), "process title or name", required=True),
        "user": _told(Text(), "its user"),
        "memory_bytes": _told(_count, "memory held on this card; null where NVML can not tell"),
        "engine": _told(Text(), "the engine that it belongs to"),
        "rank": _told(_rank, "(copy × stages + stage) × TP size + place within the stage"),
        "tp_rank": _told(_rank, "place within the stage"),
        "pp_rank": _told(_rank, "pipeline stage"),
        "dp_rank": _told(_rank, "data-parallel copy"),
    }
)

_GPU = Record(
    {
        "index": Field(Whole(0, MAX_INDEX), "NVML's index (PCI order)", required=True),
        "uuid": _told(Text(), "UUID"),
        "name": Field(Text(), "product name", required=True),
        "compute_capability": Field(Text(r"\d+\.\d+"), "CUDA architecture number", required=True),
        "fault": _told(Text(), "why the card could not be read, one sentence"),
        "memory_total_bytes": Field(_count, "memory of the card", required=True),
        "memory_used_bytes": _told(_count, "memory in use, the driver's reserve left out"),
        "memory_reserved_bytes": _told(_count, "the driver's reserve"),
        "memory_free_bytes": _told(_count, "memory free"),
        "memory_bandwidth_gbs": _told(Number(0, _ANY), "memory bandwidth, GB/s"),
        "gpu_utilization_percent": _told(_count, "time a kernel ran, %"),
        "memory_utilization_percent": _told(_count, "time the memory was read or written, %"),
        "power_watts": _told(Number(0, _ANY), "power drawn"),
        "power_limit_watts": _told(Number(0, _ANY), "enforced power limit"),
        "temperature_celsius": _told(Whole(-_ANY, _ANY), "core temperature"),
        "sm_clock_mhz": _told(_count, "SM clock"),
        "fan_percent": _told(_count, "fan speed, % of its maximum"),
        "pcie": Field(_PCIE, "place on the bus, and the connection", required=True),
        "numa": _told(Text(), "NUMA nodes next to the card"),
        "cpu_affinity": _told(Text(), "CPUs next to the card"),
        "throttle_reasons": Field(Listing(Text(), 64), "why the clock is held back, in words", required=True),
        "processes": Field(Listing(_PROCESS, 1 << 20), "who is on the card", required=True),
    }
)

BOX_DOCUMENT = Record(
    {
        "name": Field(Text(), "the machine's name", required=True),
        "driver": _told(Text(), "driver version"),
        "cuda": _told(Text(), "newest CUDA that the driver runs"),
        "host_memory_bytes": _told(_count, "the machine's own memory"),
        "at": Field(Text(), "when it was read, ISO 8601 in UTC", required=True),
        "gpus": Field(Listing(_GPU, MAX_GPUS), "the cards", required=True),
        "links": Field(Listing(LINK, MAX_GPUS * MAX_GPUS), "the link of every pair", required=True),
        "faults": Field(Listing(Text(), MAX_GPUS), "cards that could not be opened, a sentence each", required=True),
    }
)

TOPO_DOCUMENT = Record(
    {
        "gpus": Field(Listing(Whole(0, MAX_INDEX), MAX_GPUS), "indices of the cards", required=True),
        "matrix": Field(
            Listing(Listing(Text(r"X|NV\d+|PIX|PXB|PHB|NODE|SYS", "a link"), MAX_GPUS), MAX_GPUS),
            "the links, rows and columns in the order of gpus",
            required=True,
        ),
    }
)

# What docs/ publishes: file name → shape and title.
PUBLISHED: dict[str, tuple[Shape, str]] = {
    "box.schema.json": (BOX_FILE, "A box file"),
    "box-command.schema.json": (BOX_DOCUMENT, "gpudeck box --json"),
    "topo-command.schema.json": (TOPO_DOCUMENT, "gpudeck topo --json"),
}
