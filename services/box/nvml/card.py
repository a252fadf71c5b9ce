"""One card through NVML: opened once, then read at every beat."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpudeck.services.box.links import PciAddress
from gpudeck.services.box.nvml.ask import Asker
from gpudeck.services.box.nvml.facts import read_facts, read_memory
from gpudeck.services.box.nvml.faults import CardError, unopened_card
from gpudeck.services.box.nvml.health import Health, read_health
from gpudeck.services.box.nvml.holders import Holders
from gpudeck.services.box.nvml.lanes import Pair, ToldLane, pci_address, told_lanes, told_pairs
from gpudeck.services.box.nvml.traffic import Traffic, total
from gpudeck.services.box.processes import ProcessBook
from gpudeck.services.box.types import Demand, Gpu, LaneReading, Reading

HEALTH_S = 10.0  # between two looks at what changes seldom
LINKS_S = 30.0  # between two looks at which NVLinks are up

# nvmlClocksEventReasons, in words.  Idle (1) holds nothing back.
_IDLE = 0x1
_THROTTLE_REASONS = {
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal (software)",
    0x40: "thermal (hardware)",
    0x80: "power brake",
    0x100: "display clocks",
    0x200: "board limit",
    0x400: "reliability voltage",
}


@dataclass(frozen=True, slots=True)
class OpenedCard:
    """A card at its opening: its facts, and what the links are worked out from."""

    gpu: Gpu
    address: PciAddress | None
    lanes: tuple[ToldLane, ...]


class NvmlCard:
    """Asks one card, on one thread at a time.  What it does not support reads None and is asked for once only."""

    def __init__(self, nvml: Any, index: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.index = index
        self.handle: Any = None
        self._nvml = nvml
        self._clock = clock
        self._ask = Asker(nvml, index, None)
        self._book = ProcessBook()
        self._holders = Holders(self._ask, self._book)
        self._traffic = Traffic(self._ask)
        self._lanes_up: tuple[int, ...] = ()
        self._health: Health | None = None
        self._health_at: float | None = None
        self._mig: bool | None = None
        self._links_at = 0.0
        self._unified = False
        self.lanes: tuple[ToldLane, ...] = ()  # as they were told last
        self.uuid: str | None = None
        self.fault: str | None = None  # what ails it, while it does

    def open(self, host_memory_bytes: int) -> OpenedCard:
        """Find the card and ask for what lasts.  Raises CardError."""
        nvml = self._nvml
        try:
            self._find()
            gpu = read_facts(self._ask, host_memory_bytes)
            pci = self._ask("PCI", nvml.nvmlDeviceGetPciInfo)
            self._look_at_lanes()
        except nvml.NVMLError as error:
            raise CardError(unopened_card(nvml, self.index, error)) from error
        self.uuid, self._unified = gpu.uuid, gpu.unified_memory
        return OpenedCard(gpu, pci_address(pci) if pci else None, self.lanes)

    def pairs(self, others: Mapping[int, Any]) -> dict[int, Pair]:
        """What the driver tells of this card and each of the others (handles by index)."""
        return told_pairs(self._ask, others)

    def read(self, demand: Demand) -> Reading:
        """One reading.  Raises CardError where the card is lost, or answers nothing but errors."""
        try:
            if self.fault is not None:
                self._find_again()
            reading = self._read(demand)
        except CardError as fault:
            self.fault = str(fault)
            self._health_at = None
            raise
        self.fault = None
        return reading

    def _find(self) -> None:
        """Take the card's handle: by UUID where it is known, since indices shift when a card is missing."""
        nvml = self._nvml
        self.handle = self._ask.handle = (
            nvml.nvmlDeviceGetHandleByUUID(self.uuid) if self.uuid else nvml.nvmlDeviceGetHandleByIndex(self.index)
        )

    def _find_again(self) -> None:
        """Raises CardError, with what befell the card, where it is still gone."""
        try:
            self._find()
        except self._nvml.NVMLError as error:
            raise CardError(self.fault) from error

    def _read(self, demand: Demand) -> Reading:
        at = time.time()
        self._ask.begin()
        self._look_at_what_is_due(demand)
        reading = self._base(at)
        if Demand.DETAILS in demand:
            reading = self._with_details(reading)
        if Demand.HEALTH in demand:
            reading = self._with_health(reading)
        if Demand.TRAFFIC in demand:
            reading = self._with_traffic(reading)
        else:
            self._traffic.pause()
        self._ask.refuse_silence()
        self._book.keep_only({process.pid for process in reading.processes})
        return reading

    def _look_at_what_is_due(self, demand: Demand) -> None:
        now = self._clock()
        if self.lanes and now - self._links_at >= LINKS_S:
            self._look_at_lanes()
        if self._health_at is None or now - self._health_at >= HEALTH_S:
            self._health_at = now
            self._look_at_mig()
            self._health = None
        if Demand.HEALTH in demand and self._health is None:
            self._health = read_health(self._ask, self._lanes_up)

    def _look_at_lanes(self) -> None:
        self.lanes = told_lanes(self._ask)
        self._lanes_up = tuple(told.lane.number for told in self.lanes if told.lane.up)
        self._links_at = self._clock()

    def _look_at_mig(self) -> None:
        mode = self._ask("MIG mode", self._nvml.nvmlDeviceGetMigMode)
        enabled = None if mode is None else mode[0] == self._nvml.NVML_DEVICE_MIG_ENABLE
        if self._mig is not None and enabled != self._mig:
            # In MIG mode a card does not support much of what it does otherwise, and the other way round.
            self._ask.forget()
        self._mig = enabled

    def _base(self, at: float) -> Reading:
        nvml, ask = self._nvml, self._ask
        busy = ask("utilization", nvml.nvmlDeviceGetUtilizationRates)
        reasons = self._clock_reasons()
        used, reserved, free = self._memory()
        return Reading(
            gpu=self.index,
            at=at,
            utilization_percent=busy.gpu if busy else None,
            memory_utilization_percent=busy.memory if busy else None,
            memory_used_bytes=used,
            memory_reserved_bytes=reserved,
            memory_free_bytes=free,
            temperature_c=self._temperature(),
            power_w=self._power(),
            sm_clock_mhz=ask("SM clock", lambda handle: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            clock_idle=None if reasons is None else bool(reasons & _IDLE),
            throttle_reasons=_words(reasons or 0),
            processes=self._holders.processes(),
            processes_hidden=self._holders.hidden,
            mig_enabled=self._mig,
            mig=self._holders.mig_devices() if self._mig else (),
        )

    def _with_details(self, reading: Reading) -> Reading:
        nvml, ask = self._nvml, self._ask
        encoder, decoder = (
            ask("encoder", nvml.nvmlDeviceGetEncoderUtilization),
            ask("decoder", nvml.nvmlDeviceGetDecoderUtilization),
        )
        limit_mw = ask("power limit", nvml.nvmlDeviceGetEnforcedPowerLimit)
        memory_temperature = ask.fields([(nvml.NVML_FI_DEV_MEMORY_TEMP, 0)])
        return replace(
            reading,
            encoder_percent=encoder[0] if encoder else None,
            decoder_percent=decoder[0] if decoder else None,
            memory_temperature_c=next((int(celsius) for celsius in memory_temperature.values()), None),
            power_limit_w=None if limit_mw is None else limit_mw / 1000,
            memory_clock_mhz=ask(
                "memory clock", lambda handle: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)
            ),
            performance_state=self._performance_state(),
            fan_percent=ask("fan", nvml.nvmlDeviceGetFanSpeed),
            pcie_gen=ask("PCIe now", nvml.nvmlDeviceGetCurrPcieLinkGeneration),
            pcie_width=ask("PCIe width now", nvml.nvmlDeviceGetCurrPcieLinkWidth),
        )

    def _with_health(self, reading: Reading) -> Reading:
        health = self._health
        if health is None:
            return reading
        return replace(
            reading,
            ecc=health.ecc,
            rows=health.rows,
            modes=health.modes,
            pcie_replays=health.pcie_replays,
            energy_j=health.energy_j,
            lanes=health.lane_errors,
        )

    def _with_traffic(self, reading: Reading) -> Reading:
        traffic = self._traffic.nvlink(self._lanes_up)
        sent, received = self._traffic.pcie()
        return replace(
            reading,
            pcie_tx_bytes_s=sent,
            pcie_rx_bytes_s=received,
            nvlink_tx_bytes_s=total(traffic, "tx_bytes_s"),
            nvlink_rx_bytes_s=total(traffic, "rx_bytes_s"),
            lanes=_together(traffic, reading.lanes),
        )

    def _memory(self) -> tuple[int | None, int | None, int | None]:
        """Used, reserved and free bytes."""
        if self._unified:
            import psutil

            host = psutil.virtual_memory()
            return host.total - host.available, None, host.available
        memory = read_memory(self._ask)
        return (memory.used, getattr(memory, "reserved", None), memory.free) if memory else (None, None, None)

    def _temperature(self) -> int | None:
        nvml, core = self._nvml, self._nvml.NVML_TEMPERATURE_GPU
        celsius: int | None = self._ask("temperature", lambda handle: nvml.nvmlDeviceGetTemperature(handle, core))
        if celsius is None:
            # CUDA 14 removes the call above in favour of this one.
            celsius = self._ask("temperature, new", lambda handle: nvml.nvmlDeviceGetTemperatureV(handle, core))
        return celsius

    def _power(self) -> float | None:
        nvml = self._nvml
        milliwatts: float | None = self._ask("power", nvml.nvmlDeviceGetPowerUsage)
        if milliwatts is None:
            # The call above goes in CUDA 14; this field stays.
            milliwatts = next(iter(self._ask.fields([(nvml.NVML_FI_DEV_POWER_INSTANT, 0)]).values()), None)
        return None if milliwatts is None else milliwatts / 1000

    def _performance_state(self) -> int | None:
        state: int | None = self._ask("performance state", self._nvml.nvmlDeviceGetPerformanceState)
        return None if state == self._nvml.NVML_PSTATE_UNKNOWN else state

    def _clock_reasons(self) -> int | None:
        nvml = self._nvml
        bits: int | None = self._ask("event reasons", nvml.nvmlDeviceGetCurrentClocksEventReasons)
        if bits is None:
            # The name that the same call had in drivers before 535.
            bits = self._ask("throttle reasons", nvml.nvmlDeviceGetCurrentClocksThrottleReasons)
        return bits


def _words(bits: int) -> tuple[str, ...]:
    """The reasons why a clock is held back; one that is newer than this table by its number."""
    known = sum(_THROTTLE_REASONS) | _IDLE
    return tuple(
        [words for bit, words in _THROTTLE_REASONS.items() if bits & bit]
        + ([hex(bits & ~known)] if bits & ~known else [])
    )


def _together(traffic: tuple[LaneReading, ...], errors: tuple[LaneReading, ...]) -> tuple[LaneReading, ...]:
    """The traffic and the errors of each lane as one."""
    of_lane = {lane.lane: lane for lane in errors}
    return (
        tuple(
            replace(of_lane.get(lane.lane) or lane, tx_bytes_s=lane.tx_bytes_s, rx_bytes_s=lane.rx_bytes_s)
            for lane in traffic
        )
        or errors
    )
