"""The shape of what a card reads, key by key: in a recording's frames, and in the documents of commands."""

from gpudeck.services.box.limits import (
    BYTES,
    BYTES_A_SECOND,
    CELSIUS,
    COUNT,
    INDEX,
    LANE,
    MAX_NVLINKS,
    MAX_PROCESSES,
    MEMORY_MIB,
    MHZ,
    PCIE_GEN,
    PCIE_WIDTH,
    PERCENT,
    RANK,
    WATTS,
)
from gpudeck.services.box.shape import Field, Listing, Number, OneOf, Record, Text, Truth, Whole

ECC = {
    "enabled": Field(Truth(), "whether ECC is on"),
    "enabled_after_reset": Field(Truth(), "whether it will be on after the next reset"),
    "volatile_corrected": Field(COUNT, "corrected errors since the driver was loaded"),
    "volatile_uncorrected": Field(COUNT, "uncorrected errors since the driver was loaded"),
    "aggregate_corrected": Field(COUNT, "corrected errors over the card's life"),
    "aggregate_uncorrected": Field(COUNT, "uncorrected errors over the card's life"),
}
ROWS = {
    "remapped_corrected": Field(COUNT, "rows remapped because of corrected errors"),
    "remapped_uncorrected": Field(COUNT, "rows remapped because of uncorrected errors"),
    "remapping_pending": Field(Truth(), "whether a row will be remapped at the next reset"),
    "remapping_failed": Field(Truth(), "whether a remapping failed: the card is to be replaced"),
    "retired_single_bit": Field(COUNT, "pages retired because of single-bit errors"),
    "retired_double_bit": Field(COUNT, "pages retired because of double-bit errors"),
    "retirement_pending": Field(Truth(), "whether a page will be retired at the next reset"),
}
MODES = {
    "compute": Field(Text(), "compute mode"),
    "persistence": Field(Truth(), "persistence mode"),
    "display_active": Field(Truth(), "whether a desktop runs on it"),
    "fabric": Field(Text(), "state of the NVSwitch fabric; CUDA needs completed"),
}
LANE_READING = {
    "tx_bytes_s": Field(BYTES_A_SECOND, "sent, bytes a second"),
    "rx_bytes_s": Field(BYTES_A_SECOND, "received, bytes a second"),
    "replays": Field(COUNT, "packets sent again"),
    "recoveries": Field(COUNT, "times that the link was trained anew"),
    "crc_errors": Field(COUNT, "packets with a wrong checksum"),
}
MIG_INSTANCE = {
    "compute_instance": Field(COUNT, "compute instance"),
    "name": Field(Text(), "its profile"),
    "uuid": Field(Text(), "its UUID"),
    "memory_bytes": Field(BYTES, "its memory"),
    "memory_used_bytes": Field(BYTES, "its memory in use"),
    "multiprocessors": Field(COUNT, "its multiprocessors"),
}

PROCESS = Record(
    {
        "pid": Field(Whole(1, 1 << 31), "process id", required=True),
        "name": Field(Text(), "process title or name", required=True),
        "memory_mib": Field(MEMORY_MIB, "memory held on this card, MiB"),
        "memory_bytes": Field(BYTES, "the same in bytes, as a recording writes it"),
        "user": Field(Text(), "its user"),
        "engine": Field(Text(), "the engine that it belongs to"),
        "tp_rank": Field(RANK, "tensor-parallel rank"),
        "pp_rank": Field(RANK, "pipeline stage"),
        "dp_rank": Field(RANK, "data-parallel copy"),
        "started_at": Field(Number(0, 1e12), "when it began, seconds since the epoch"),
        "mig": Field(COUNT, "the GPU instance that it runs in"),
        "command": Field(Text(most=4096), "its command line, without keys and passwords"),
        "container": Field(Text(), "the container that it runs in"),
    },
    "A process on a card",
)

READING = Record(
    {
        "gpu": Field(INDEX, "index of the card", required=True),
        "fault": Field(Text(), "why the card could not be read, one sentence"),
        "age_s": Field(Number(0, 1e9), "how old the reading was, where the card was slow or hung, seconds"),
        "utilization_percent": Field(PERCENT, "time a kernel ran, %"),
        "memory_utilization_percent": Field(PERCENT, "time the memory was read or written, %"),
        "encoder_percent": Field(PERCENT, "video encoder, %"),
        "decoder_percent": Field(PERCENT, "video decoder, %"),
        "memory_used_bytes": Field(BYTES, "memory in use, the driver's reserve left out"),
        "memory_reserved_bytes": Field(BYTES, "the driver's reserve"),
        "memory_free_bytes": Field(BYTES, "memory free"),
        "temperature_c": Field(CELSIUS, "core temperature, °C"),
        "memory_temperature_c": Field(CELSIUS, "memory temperature, °C"),
        "power_w": Field(WATTS, "power drawn, W"),
        "power_limit_w": Field(WATTS, "power limit enforced now, W"),
        "energy_j": Field(Number(0, 1e18), "energy since the driver was loaded, J"),
        "sm_clock_mhz": Field(MHZ, "SM clock, MHz"),
        "memory_clock_mhz": Field(MHZ, "memory clock, MHz"),
        "clock_idle": Field(Truth(), "whether the clock is low because nothing runs"),
        "throttle_reasons": Field(Listing(Text(), 64), "why the clock is held back, in words"),
        "performance_state": Field(Whole(0, 32), "P0 (fastest) to P15"),
        "fan_percent": Field(Whole(0, 1000), "fan speed, % of its maximum"),
        "pcie_gen": Field(PCIE_GEN, "PCIe generation now"),
        "pcie_width": Field(PCIE_WIDTH, "PCIe lanes now"),
        "pcie_tx_bytes_s": Field(BYTES_A_SECOND, "sent over PCIe, bytes a second"),
        "pcie_rx_bytes_s": Field(BYTES_A_SECOND, "received over PCIe, bytes a second"),
        "pcie_replays": Field(COUNT, "PCIe packets sent again"),
        "nvlink_tx_bytes_s": Field(BYTES_A_SECOND, "sent over NVLink, bytes a second"),
        "nvlink_rx_bytes_s": Field(BYTES_A_SECOND, "received over NVLink, bytes a second"),
        "lanes": Field(
            Listing(Record({"lane": Field(LANE, "its number", required=True), **LANE_READING}), MAX_NVLINKS),
            "each NVLink",
        ),
        "ecc": Field(Record(ECC), "memory errors"),
        "rows": Field(Record(ROWS), "memory put out of use"),
        "modes": Field(Record(MODES), "how the card is set up"),
        "mig_enabled": Field(Truth(), "whether the card is in MIG mode"),
        "mig": Field(
            Listing(Record({"gpu_instance": Field(COUNT, "GPU instance", required=True), **MIG_INSTANCE}), 64),
            "its MIG devices",
        ),
        "processes": Field(Listing(PROCESS, MAX_PROCESSES), "who is on the card"),
        "processes_hidden": Field(Truth(), "true where the driver does not tell who is on the card"),
    },
    "One card at one moment; what the card did not report is left out",
)

EVENT = Record(
    {
        "at": Field(Number(-1e9, 1e9), "seconds since the recording began", required=True),
        "severity": Field(OneOf(("error", "warning", "info")), "how bad it is", required=True),
        "text": Field(Text(most=4096), "what happened and the way out", required=True),
        "gpu": Field(INDEX, "the card that it befell"),
        "xid": Field(COUNT, "NVIDIA's number of a driver error"),
    },
    "Something that happened while the box was watched",
)
