"""What a figure of a box may be; beyond it, it is taken for a slip of the pen."""

from gpudeck.services.box.shape import Number, OneOf, Text, Whole

MAX_GPUS = 64
MAX_FRAMES = 20_000  # five and a half hours at one a second
MAX_INDEX = 1023
MAX_MEMORY_MIB = 16 << 20  # 16 TiB
MAX_BYTES = MAX_MEMORY_MIB << 20
MAX_NVLINKS = 36  # NVML_NVLINK_MAX_LINKS
MAX_PROCESSES = 4096
MAX_COUNT = 1 << 62

CPU_LIST = r"(\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*)?"
BUS_ID = r"([0-9A-Fa-f]{4}|[0-9A-Fa-f]{8}):[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
LINK_KIND = rf"NV([1-9]|[12]\d|3[0-{MAX_NVLINKS % 10}])|PIX|PXB|PHB|NODE|SYS"

INDEX = Whole(0, MAX_INDEX)
PERCENT = Whole(0, 100)
MEMORY_MIB = Number(0, MAX_MEMORY_MIB)
BYTES = Whole(0, MAX_BYTES)
RANK = Whole(0, 65535)
COUNT = Whole(0, MAX_COUNT)
WATTS = Number(0, 100_000)
MHZ = Whole(0, 100_000)
CELSIUS = Whole(-100, 1000)
BYTES_A_SECOND = Number(0, 1e15)
LANE = Whole(0, MAX_NVLINKS - 1)
PCIE_GEN = Whole(1, 16)
PCIE_WIDTH = Whole(1, 64)
BUS = Text(BUS_ID, 'a PCI bus id such as "00000000:3B:00.0"')
P2P = OneOf(("OK", "CNS", "GNS", "TNS", "DR", "NS", "U"))
REMOTE = OneOf(("gpu", "switch", "cpu", "other"))
