"""The shape of a box file, key by key, with the limits beyond which a figure is taken for a slip of the pen."""

from gpudeck.services.box.shape import Either, Field, Listing, Number, OrNull, Record, Text, Whole

MAX_GPUS = 64
MAX_FRAMES = 20_000  # five and a half hours at one a second
MAX_INDEX = 1023
MAX_MEMORY_MIB = 16 << 20  # 16 TiB
MAX_BYTES = MAX_MEMORY_MIB << 20
MAX_NVLINKS = 36  # NVML_NVLINK_MAX_LINKS

CPU_LIST = r"(\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*)?"
BUS_ID = r"([0-9A-Fa-f]{4}|[0-9A-Fa-f]{8}):[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
LINK_KIND = rf"NV([1-9]|[12]\d|3[0-{MAX_NVLINKS % 10}])|PIX|PXB|PHB|NODE|SYS"

_index = Whole(0, MAX_INDEX)
_percent = Whole(0, 100)
_mib = Number(0, MAX_MEMORY_MIB)
_bytes = Whole(0, MAX_BYTES)
_rank = Whole(0, 65535)
_gen = Whole(1, 16)
_width = Whole(1, 64)

PCIE = Record(
    {
        "bus": Field(Text(BUS_ID, 'a PCI bus id such as "00000000:3B:00.0"'), "PCI bus id as NVML writes it"),
        "gen": Field(_gen, "widest generation that card and slot agree on"),
        "width": Field(_width, "lanes that card and slot agree on"),
    }
)

PROCESS = Record(
    {
        "pid": Field(Whole(1, 1 << 31), "process id", required=True),
        "name": Field(Text(), "process title or name", required=True),
        "memory_mib": Field(_mib, "memory held on this card, MiB"),
        "memory_bytes": Field(_bytes, "the same in bytes, as a recording writes it"),
        "user": Field(Text(), "its user"),
        "engine": Field(Text(), "the engine that it belongs to"),
        "tp_rank": Field(_rank, "tensor-parallel rank"),
        "pp_rank": Field(_rank, "pipeline stage"),
        "dp_rank": Field(_rank, "data-parallel copy"),
    },
    "A process on a card",
)

GPU = Record(
    {
        "index": Field(_index, "NVML's index (PCI order)", required=True),
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
        "power_limit_w": Field(Number(1, 100_000), "enforced power limit, W"),
        "memory_bandwidth_gbs": Field(Number(1, 1_000_000), "memory bandwidth, GB/s"),
        "used_mib": Field(_mib, "memory in use, the driver's reserve left out, MiB"),
        "processes": Field(Listing(PROCESS, 4096), "who is on the card"),
    },
    "A card",
)

LINK = Record(
    {
        "a": Field(_index, "index of one card", required=True),
        "b": Field(_index, "index of the other", required=True),
        "kind": Field(
            Text(LINK_KIND, "NV1 to NV36, PIX, PXB, PHB, NODE or SYS"), "as nvidia-smi topo -m", required=True
        ),
    },
    "How two cards reach each other; a pair that is left out is SYS",
)

READING = Record(
    {
        "gpu": Field(_index, "index of the card", required=True),
        "fault": Field(Text(), "why the card could not be read, one sentence"),
        "utilization_percent": Field(_percent, "time a kernel ran, %"),
        "memory_utilization_percent": Field(_percent, "time the memory was read or written, %"),
        "memory_used_bytes": Field(_bytes, "memory in use, the driver's reserve left out"),
        "memory_reserved_bytes": Field(_bytes, "the driver's reserve"),
        "memory_free_bytes": Field(_bytes, "memory free"),
        "temperature_c": Field(Whole(-100, 1000), "core temperature, °C"),
        "power_w": Field(Number(0, 100_000), "power drawn, W"),
        "sm_clock_mhz": Field(Whole(0, 100_000), "SM clock, MHz"),
        "fan_percent": Field(Whole(0, 1000), "fan speed, % of its maximum"),
        "pcie_gen": Field(_gen, "PCIe generation now"),
        "pcie_width": Field(_width, "PCIe lanes now"),
        "throttle_reasons": Field(Listing(Text(), 64), "why the clock is held back, in words"),
        "processes": Field(Listing(PROCESS, 4096), "who is on the card"),
    },
    "One card at one moment; what the card did not report is left out",
)

FRAME = Record(
    {
        "at": Field(Number(0, 1e9), "seconds since the recording began", required=True),
        "readings": Field(Listing(READING, MAX_GPUS), "every card once", required=True),
    },
    "One moment of a recording",
)

BOX_FILE = Record(
    {
        "name": Field(Text(), "the machine's name"),
        "driver": Field(OrNull(Text()), "driver version"),
        "cuda": Field(OrNull(Text()), "newest CUDA that the driver runs"),
        "host_memory_mib": Field(Number(1, 1 << 32), "the machine's own memory, MiB"),
        "gpus": Field(Listing(GPU, MAX_GPUS, least=1), "the cards", required=True),
        "links": Field(Listing(LINK, MAX_GPUS * MAX_GPUS), "links between the cards"),
        "recorded_at": Field(Number(0, 1e12), "when the recording began, seconds since the epoch"),
        "frames": Field(Listing(FRAME, MAX_FRAMES), "timed readings to replay, in order"),
    },
    "One box: its cards, the links between them, and, in a recording, what they read from moment to moment",
)
