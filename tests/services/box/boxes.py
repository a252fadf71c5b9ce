"""Small boxes for tests."""

from gpudeck.services.box.types import (
    GIB,
    Box,
    ComputeCapability,
    Ecc,
    Gpu,
    GpuProcess,
    Link,
    Modes,
    Pcie,
    Reading,
    Rows,
)

A100 = "NVIDIA A100-SXM4-40GB"


def card(index: int, name: str = A100, **facts: object) -> Gpu:
    given: dict[str, object] = {
        "memory_bytes": 40 * GIB,
        "memory_reserved_bytes": GIB // 2,
        "compute_capability": ComputeCapability(8, 0),
        "uuid": f"GPU-{index:08x}-0000-4000-8000-{index:012x}",
        "pcie": Pcie(f"00000000:{0x10 + index:02X}:00.0", 4, 16),
        "numa": "0",
        "cpu_affinity": "0-31,64-95",
        "power_limit_w": 400.0,
        "power_default_w": 400.0,
        "power_min_w": 100.0,
        "power_max_w": 400.0,
        "memory_bandwidth_gbs": 1555.2,
        "sm_clock_max_mhz": 1410,
        "memory_clock_max_mhz": 1215,
        "slowdown_c": 89,
        "shutdown_c": 92,
        "memory_limit_c": 95,
    }
    return Gpu(index=index, name=name, **(given | facts))  # type: ignore[arg-type]


def pair() -> Box:
    """Two A100s joined by 12 lanes."""
    return Box((card(0), card(1)), (Link(0, 1, "NV12"),), name="pair", driver="580.95.05", cuda="13.0")


def busy(gpu: int, *processes: GpuProcess) -> Reading:
    """Everything that an A100 tells, but for the traffic over its NVLinks."""
    return Reading(
        gpu=gpu,
        utilization_percent=87,
        memory_utilization_percent=40,
        memory_used_bytes=30 * GIB,
        memory_reserved_bytes=GIB // 2,
        memory_free_bytes=40 * GIB - 30 * GIB - GIB // 2,
        temperature_c=61,
        power_w=312.5,
        sm_clock_mhz=1410,
        pcie_gen=4,
        pcie_width=16,
        processes=processes,
        clock_idle=False,
        mig_enabled=False,
        encoder_percent=0,
        decoder_percent=3,
        memory_temperature_c=70,
        power_limit_w=400.0,
        memory_clock_mhz=1215,
        performance_state=0,
        pcie_tx_bytes_s=842_732_000.0,
        pcie_rx_bytes_s=3_465_832_000.0,
        ecc=Ecc(True, True, 0, 0, 2, 0),
        rows=Rows(1, 0, False, False),
        modes=Modes("default", True, False),
        pcie_replays=3,
        energy_j=47_186.656,
    )
