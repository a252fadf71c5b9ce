"""The shapes of the JSON documents that `gpudeck box` and `gpudeck topo` print."""

from collections.abc import Mapping

from gpudeck.services.box.boxshape import ACCELERATOR, BOX_FILE, LINK, NVLINK, PEER_ACCESS
from gpudeck.services.box.limits import COUNT, LANE, MAX_GPUS, MAX_INDEX, MAX_NVLINKS, RANK
from gpudeck.services.box.readingshape import ECC, LANE_READING, MIG_INSTANCE, MODES, ROWS
from gpudeck.services.box.shape import Field, Listing, Number, OneOf, OrNull, Record, Shape, Text, Truth, Whole

_ANY = 1 << 62
_MOST_PROCESSES = 1 << 20


def _told(shape: Shape, about: str) -> Field:
    """A key that is always there, null where the card does not report it."""
    return Field(OrNull(shape), about, required=True)


def _all_told(fields: Mapping[str, Field]) -> dict[str, Field]:
    return {key: _told(field.shape, field.about) for key, field in fields.items()}


_positive = Number(0, _ANY)
_celsius = Whole(-_ANY, _ANY)

_PCIE = Record(
    {
        "bus": _told(Text(), "PCI bus id as NVML writes it"),
        "gen": _told(COUNT, "PCIe generation now"),
        "width": _told(COUNT, "PCIe lanes now"),
        "max_gen": _told(COUNT, "widest generation that card and slot agree on"),
        "max_width": _told(COUNT, "lanes that card and slot agree on"),
        "tx_bytes_s": _told(_positive, "sent, bytes a second"),
        "rx_bytes_s": _told(_positive, "received, bytes a second"),
        "replays": _told(COUNT, "packets sent again"),
    }
)

_NVLINK = Record(
    {
        "tx_bytes_s": _told(_positive, "sent over all its links, bytes a second"),
        "rx_bytes_s": _told(_positive, "received over all its links, bytes a second"),
        "links": Field(
            Listing(
                Record(
                    {
                        "lane": Field(LANE, "its number on the card", required=True),
                        "up": Field(Truth(), "whether it works", required=True),
                        **_all_told({key: NVLINK.fields[key] for key in NVLINK.fields if key not in ("lane", "up")}),
                        **_all_told(LANE_READING),
                    }
                ),
                MAX_NVLINKS,
            ),
            "each NVLink",
            required=True,
        ),
    }
)

_MIG = Record(
    {
        "enabled": _told(Truth(), "whether the card is in MIG mode"),
        "instances": Field(
            Listing(
                Record({"gpu_instance": Field(COUNT, "GPU instance", required=True), **_all_told(MIG_INSTANCE)}), 64
            ),
            "its MIG devices",
            required=True,
        ),
    }
)

_PROCESS = Record(
    {
        "pid": Field(COUNT, "process id", required=True),
        "name": Field(Text(), "process title or name", required=True),
        "command": _told(Text(most=4096), "its command line, without keys and passwords"),
        "user": _told(Text(), "its user"),
        "started_at": _told(Text(), "when it began, ISO 8601 in UTC"),
        "memory_bytes": _told(COUNT, "memory held on this card; null where NVML can not tell"),
        "mig": _told(COUNT, "the GPU instance that it runs in"),
        "container": _told(Text(), "the container that it runs in"),
        "engine": _told(Text(), "the engine that it belongs to"),
        "rank": _told(RANK, "(copy × stages + stage) × TP size + place within the stage"),
        "tp_rank": _told(RANK, "place within the stage"),
        "pp_rank": _told(RANK, "pipeline stage"),
        "dp_rank": _told(RANK, "data-parallel copy"),
    }
)

_GPU = Record(
    {
        "index": Field(Whole(0, MAX_INDEX), "NVML's index (PCI order)", required=True),
        "uuid": _told(Text(), "UUID"),
        "name": Field(Text(), "product name", required=True),
        "compute_capability": Field(Text(r"\d+\.\d+"), "CUDA architecture number", required=True),
        "fault": _told(Text(), "why the card could not be read, one sentence"),
        "age_seconds": Field(_positive, "how old its reading is, where it is slow or hangs", required=True),
        "memory_total_bytes": Field(COUNT, "memory of the card", required=True),
        "memory_used_bytes": _told(COUNT, "memory in use, the driver's reserve left out"),
        "memory_reserved_bytes": _told(COUNT, "the driver's reserve"),
        "memory_free_bytes": _told(COUNT, "memory free"),
        "memory_bandwidth_gbs": _told(_positive, "memory bandwidth, GB/s"),
        "unified_memory": Field(Truth(), "whether its memory is the host's", required=True),
        "gpu_utilization_percent": _told(COUNT, "time a kernel ran, %"),
        "memory_utilization_percent": _told(COUNT, "time the memory was read or written, %"),
        "encoder_percent": _told(COUNT, "video encoder, %"),
        "decoder_percent": _told(COUNT, "video decoder, %"),
        "power_watts": _told(_positive, "power drawn"),
        "power_limit_watts": _told(_positive, "enforced power limit"),
        "power_default_watts": _told(_positive, "power limit as delivered"),
        "energy_joules": _told(_positive, "energy since the driver was loaded"),
        "temperature_celsius": _told(_celsius, "core temperature"),
        "memory_temperature_celsius": _told(_celsius, "memory temperature"),
        "slowdown_celsius": _told(_celsius, "core temperature from which the hardware slows the card down"),
        "shutdown_celsius": _told(_celsius, "core temperature at which the card switches off"),
        "memory_limit_celsius": _told(_celsius, "memory temperature from which the card is slowed down"),
        "sm_clock_mhz": _told(COUNT, "SM clock"),
        "sm_clock_max_mhz": _told(COUNT, "highest SM clock"),
        "memory_clock_mhz": _told(COUNT, "memory clock"),
        "memory_clock_max_mhz": _told(COUNT, "highest memory clock"),
        "clock_idle": _told(Truth(), "whether the clock is low because nothing runs"),
        "throttle_reasons": _told(
            Listing(Text(), 64), "why the clock is held back, in words; null where the card does not tell"
        ),
        "performance_state": _told(COUNT, "P0 (fastest) to P15"),
        "fan_percent": _told(COUNT, "fan speed, % of its maximum"),
        "pcie": Field(_PCIE, "place on the bus, and the connection", required=True),
        "nvlink": Field(_NVLINK, "its NVLinks", required=True),
        "numa": _told(Text(), "NUMA nodes next to the card"),
        "cpu_affinity": _told(Text(), "CPUs next to the card"),
        "ecc": _told(Record(_all_told(ECC)), "memory errors"),
        "rows": _told(Record(_all_told(ROWS)), "memory put out of use"),
        "modes": _told(Record(_all_told(MODES)), "how the card is set up"),
        "mig": Field(_MIG, "its MIG devices", required=True),
        "processes_hidden": Field(Truth(), "true where the driver does not tell who is on the card", required=True),
        "processes": Field(Listing(_PROCESS, _MOST_PROCESSES), "who is on the card", required=True),
    }
)

_EVENT = Record(
    {
        "at": Field(Text(), "when, ISO 8601 in UTC", required=True),
        "severity": Field(OneOf(("error", "warning", "info")), "how bad it is", required=True),
        "text": Field(Text(most=4096), "what happened and the way out", required=True),
        "gpu": _told(COUNT, "the card that it befell"),
        "xid": _told(COUNT, "NVIDIA's number of a driver error"),
    }
)

BOX_DOCUMENT = Record(
    {
        "name": Field(Text(), "the machine's name", required=True),
        "driver": _told(Text(), "driver version"),
        "cuda": _told(Text(), "newest CUDA that the driver runs"),
        "host_memory_bytes": _told(COUNT, "the machine's own memory"),
        "at": Field(Text(), "when it was read, ISO 8601 in UTC", required=True),
        "gpus": Field(Listing(_GPU, MAX_GPUS), "the cards", required=True),
        "links": Field(Listing(LINK, MAX_GPUS * MAX_GPUS), "the link of every pair", required=True),
        "topology_known": Field(
            Truth(), "false where the driver does not tell how some cards are joined, and SYS is assumed", required=True
        ),
        "peer_access": Field(
            Listing(
                Record(
                    {
                        "a": PEER_ACCESS.fields["a"],
                        "b": PEER_ACCESS.fields["b"],
                        **_all_told({key: PEER_ACCESS.fields[key] for key in ("read", "write", "nvlink", "atomics")}),
                    }
                ),
                MAX_GPUS * MAX_GPUS,
            ),
            "straight access between the cards, in the words of nvidia-smi topo -p2p",
            required=True,
        ),
        "events": Field(Listing(_EVENT, 4096), "what happened while the box was watched", required=True),
        "accelerators": Field(
            Listing(ACCELERATOR, MAX_GPUS), "accelerators of other makers, which gpudeck leaves alone", required=True
        ),
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
