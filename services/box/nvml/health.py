"""What changes seldom on a card: memory errors, rows put out of use, link errors, modes, energy."""

from dataclasses import dataclass
from typing import Any

from gpudeck.services.box.nvml.ask import Asker
from gpudeck.services.box.types import Ecc, LaneReading, Modes, Rows

_COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
_FABRIC_STATES = {1: "not started", 2: "in progress", 3: "completed"}


@dataclass(frozen=True, slots=True)
class Health:
    """One look at all of it."""

    ecc: Ecc | None
    rows: Rows | None
    modes: Modes
    lane_errors: tuple[LaneReading, ...]
    pcie_replays: int | None
    energy_j: float | None


def read_health(ask: Asker, lanes: tuple[int, ...]) -> Health:
    """Ask for it; `lanes` are the card's NVLinks.  Raises CardError."""
    nvml = ask.nvml
    millijoules = ask("energy", nvml.nvmlDeviceGetTotalEnergyConsumption)
    return Health(
        ecc=_ecc(ask),
        rows=_rows(ask),
        modes=_modes(ask),
        lane_errors=_lane_errors(ask, lanes),
        pcie_replays=ask("PCIe replays", nvml.nvmlDeviceGetPcieReplayCounter),
        energy_j=None if millijoules is None else millijoules / 1000,
    )


def _ecc(ask: Asker) -> Ecc | None:
    """None for a card without ECC.  One on which it is off counts nothing."""
    nvml = ask.nvml
    mode = ask("ECC mode", nvml.nvmlDeviceGetEccMode)
    if mode is None:
        return None
    counts = [
        ask(
            f"ECC errors {kind} {counter}",
            lambda handle, kind=kind, counter=counter: nvml.nvmlDeviceGetTotalEccErrors(handle, kind, counter),  # type: ignore[misc]
        )
        for counter in (nvml.NVML_VOLATILE_ECC, nvml.NVML_AGGREGATE_ECC)
        for kind in (nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED)
    ]
    return Ecc(bool(mode[0]), bool(mode[1]), *counts)


def _rows(ask: Asker) -> Rows | None:
    nvml = ask.nvml
    remapped = ask("remapped rows", nvml.nvmlDeviceGetRemappedRows)
    if remapped is not None:
        return Rows(remapped[0], remapped[1], bool(remapped[2]), bool(remapped[3]))
    ids = [(nvml.NVML_FI_DEV_RETIRED_SBE, 0), (nvml.NVML_FI_DEV_RETIRED_DBE, 0), (nvml.NVML_FI_DEV_RETIRED_PENDING, 0)]
    retired = ask.fields(ids)
    if not retired:
        return None
    single, double, pending = (retired.get(field) for field in ids)
    return Rows(
        retired_single_bit=_whole(single),
        retired_double_bit=_whole(double),
        retirement_pending=None if pending is None else bool(pending),
    )


def _modes(ask: Asker) -> Modes:
    nvml = ask.nvml
    compute = ask("compute mode", nvml.nvmlDeviceGetComputeMode)
    return Modes(
        compute=None if compute is None else _COMPUTE_MODES.get(compute, str(compute)),
        persistence=_yes(ask("persistence", nvml.nvmlDeviceGetPersistenceMode)),
        display_active=_yes(ask("display", nvml.nvmlDeviceGetDisplayActive)),
        fabric=_FABRIC_STATES.get(ask("fabric", lambda handle: _fabric_state(nvml, handle)) or 0),
    )


def _fabric_state(nvml: Any, handle: Any) -> int:
    """State 0 is that of a card without an NVSwitch."""
    import ctypes

    fabric = nvml.c_nvmlGpuFabricInfoV_t()
    nvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(fabric))
    state: int = fabric.state
    return state


def _lane_errors(ask: Asker, lanes: tuple[int, ...]) -> tuple[LaneReading, ...]:
    """The errors of each lane, from the fields of Ampere and later or the counters before."""
    nvml = ask.nvml
    fields = (
        nvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY,
        nvml.NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY,
        nvml.NVML_FI_DEV_NVLINK_ERROR_DL_CRC,
    )
    counters = (
        nvml.NVML_NVLINK_ERROR_DL_REPLAY,
        nvml.NVML_NVLINK_ERROR_DL_RECOVERY,
        nvml.NVML_NVLINK_ERROR_DL_CRC_FLIT,
    )
    told = ask.fields([(field, lane) for lane in lanes for field in fields])

    def count(lane: int, kind: int) -> int | None:
        if (fields[kind], lane) in told:
            return _whole(told[fields[kind], lane])
        return ask(
            f"lane {lane} errors {kind}",
            lambda handle: nvml.nvmlDeviceGetNvLinkErrorCounter(handle, lane, counters[kind]),
        )

    readings = (
        LaneReading(lane, replays=count(lane, 0), recoveries=count(lane, 1), crc_errors=count(lane, 2))
        for lane in lanes
    )
    return tuple(reading for reading in readings if reading != LaneReading(reading.lane))


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _yes(value: int | None) -> bool | None:
    return None if value is None else bool(value)
