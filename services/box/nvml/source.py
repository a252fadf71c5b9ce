"""This machine's box, read through NVML."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpudeck.services.box.accelerators import DEVICES, also_here, find_accelerators
from gpudeck.services.box.nvml.changes import lane_changes, membership_changes
from gpudeck.services.box.nvml.events import EventLog, EventWatch
from gpudeck.services.box.nvml.faults import hangs, library_error
from gpudeck.services.box.nvml.library import CARDS_FOLDER, OPEN_PATIENCE_S, Library
from gpudeck.services.box.nvml.opening import CardThread, Opened, open_cards
from gpudeck.services.box.nvml.sweep import Sweep
from gpudeck.services.box.types import Box, Demand, Gpu, Reading, Severity, Snapshot
from gpudeck.services.errors import OperatorError

REOPEN_S = 10.0  # how often the library is opened anew while a card is lost: only then a card that was reset is found
CENSUS_S = 5.0  # how often it is looked whether a card was added or removed


class NvmlSource:
    """A BoxSource over NVML.

    Facts that last are asked for once, at opening.  A card that fails carries its fault in the reading while the others
    go on; it is tried again at every read, and at times with the library opened anew.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        cards_folder: Path = CARDS_FOLDER,
        pci_devices: Path = DEVICES,
        patience: float = OPEN_PATIENCE_S,
    ) -> None:
        """`patience` is how long, in seconds, the opening waits for a card."""
        self._clock = clock
        self._cards_folder = cards_folder
        self._pci_devices = pci_devices
        self._patience = patience
        self._library: Library | None = None
        self._box: Box | None = None
        self._threads: dict[int, CardThread] = {}
        self._left: list[CardThread] = []  # cards that hung and were let go; their calls may still be under way
        self._opened = Opened()
        self._sweep = Sweep()
        self._ill: set[int] = set()  # cards whose last reading was a fault
        self._gone: dict[str, str] = {}  # a sentence for each card that the driver no longer counts, by UUID
        self._opened_at = 0.0
        self._census: tuple[int | None, tuple[str, ...]] = (None, ())
        self._census_at = 0.0
        self._log = EventLog()
        self._watch: EventWatch | None = None

    def open(self) -> Box:
        """Open the library and every card.  Raises OperatorError where there is no driver or no card."""
        self._ill, self._gone = set(), {}
        try:
            # One that hung is asked again, not opened a second time beside itself.
            self._library = self._library or Library(self._cards_folder)
            self._box = self._open_box(self._library, None)
        except OperatorError as error:
            self.close()
            # Cards of another maker are often why no NVIDIA driver answers.
            others = also_here(find_accelerators(self._pci_devices))
            raise OperatorError(f"{error} {others}" if others else str(error)) from None
        except BaseException:
            self.close()
            raise
        return self._box

    def read(self, demand: Demand = Demand.ALL) -> Snapshot:
        """Read every card.  Raises OperatorError when none answers any more."""
        assert self._box is not None, "read before open"
        self._reopen_where_it_is_time()
        at = time.time()
        readings = self._sweep.read(self._threads, demand)
        self._tell_of_faults(readings)
        if all(reading.fault for reading in readings) and not self._sweep.late:
            raise OperatorError(str(readings[0].fault))
        self._follow_lanes()
        return Snapshot(self._box, at, readings, self._log.last())

    def close(self) -> None:
        """Nothing that hangs is waited for: what it uses is left open to it."""
        self._let_go()
        self._box = None
        if self._library is not None and self._library.end():
            self._library = None

    def _let_go(self) -> None:
        """End every thread, and close the library unless a call to it hangs."""
        quiet = self._watch is None or self._watch.stop()
        self._watch = None
        threads = [*self._threads.values(), *self._left]
        for one in threads:
            one.thread.end()
        self._left = [one for one in threads if not one.thread.idle]
        self._threads = {}
        if quiet and not self._left and self._library is not None:
            self._library.close()

    def _open_box(self, library: Library, before: Box | None) -> Box:
        import psutil

        library.open()
        self._opened_at = self._census_at = self._clock()
        host_memory_bytes = psutil.virtual_memory().total
        faults = self._open_cards(library, host_memory_bytes, before)
        box = self._composed(library, host_memory_bytes, faults)
        if before is not None:
            self._tell_of_changes(before, box)
            box = replace(box, faults=(*box.faults, *self._gone.values()))
        self._census = library.census()
        handles = {index: one.card.handle for index, one in self._threads.items() if one.card.handle}
        self._watch = EventWatch(library.nvml, handles, self._log)
        self._watch.start()
        return box

    def _open_cards(self, library: Library, host_memory_bytes: int, before: Box | None) -> tuple[str, ...]:
        """Open every card; returns why some could not be opened.

        Cards that were known before stay in the box all the same, with their fault, where none has moved up.
        """
        count = library.count()
        hanging = {one.card.index for one in self._left if not one.thread.idle}
        threads = {
            index: CardThread(library.nvml, index, self._clock) for index in range(count) if index not in hanging
        }
        opened, failed = open_cards(threads, host_memory_bytes, self._patience)
        known = self._opened.cards if before is not None and len(before.gpus) == count else {}
        kept = failed.keys() & known.keys()
        opened.keep(kept, self._opened)
        for index in kept:
            threads[index].card.uuid = known[index].gpu.uuid
        self._threads = {index: threads[index] for index in sorted(opened.cards)}
        self._left += [one for index, one in threads.items() if index not in self._threads]
        self._opened = opened
        self._sweep = Sweep(late={index for index in kept if not threads[index].thread.idle})
        failed |= {index: hangs(index) for index in hanging}
        if not opened.cards:
            raise _no_card(library.nvml, failed)
        return tuple(failed[index] for index in sorted(failed.keys() - kept))

    def _composed(self, library: Library, host_memory_bytes: int, faults: tuple[str, ...]) -> Box:
        name, driver, cuda = library.identity()
        ways = self._opened.ways()
        return Box(
            gpus=ways.gpus,
            links=ways.links,
            name=name,
            driver=driver,
            cuda=cuda,
            host_memory_bytes=host_memory_bytes,
            faults=faults,
            peer_access=ways.peer_access,
            accelerators=find_accelerators(self._pci_devices),
            topology_known=ways.topology_known,
        )

    def _reopen_where_it_is_time(self) -> None:
        assert self._box is not None
        assert self._library is not None
        now = self._clock()
        busy = self._sweep.late or any(not one.thread.idle for one in self._left)
        if busy:
            return  # the library can not be closed under a call
        due = (bool(self._ill) or bool(self._left)) and now - self._opened_at >= REOPEN_S
        if not due and now - self._census_at >= CENSUS_S:
            self._census_at = now
            due = self._library.census() != self._census
        if due:
            self._reopen(self._box, self._library)

    def _reopen(self, before: Box, library: Library) -> None:
        """Open the library anew, as only then a card that was added or reset is found."""
        if self._watch is not None and not self._watch.stop():
            return  # it waits in the library
        self._let_go()
        self._box = self._open_box(library, before)

    def _tell_of_changes(self, before: Box, now: Box) -> None:
        """Cards that were added or removed."""
        added, removed = membership_changes(before, now)
        for gpu in added:
            self._gone.pop(gpu.uuid or "", None)
            self._log.tell(Severity.INFO, f"GPU {gpu.index} ({gpu.name}) was added.", gpu.index)
        for gpu in removed:
            text = _removed(gpu)
            self._gone[gpu.uuid or gpu.name] = text
            self._log.tell(Severity.WARNING, text)
        if added or removed:
            # Indices have moved.
            self._ill = {index for index, one in self._threads.items() if one.card.fault is not None}

    def _tell_of_faults(self, readings: tuple[Reading, ...]) -> None:
        for reading in readings:
            if reading.fault is not None and reading.gpu not in self._ill:
                self._ill.add(reading.gpu)
                self._log.tell(Severity.ERROR, reading.fault, reading.gpu)
            elif reading.fault is None and reading.gpu in self._ill:
                self._ill.discard(reading.gpu)
                self._log.tell(Severity.INFO, f"GPU {reading.gpu} answers again.", reading.gpu)

    def _follow_lanes(self) -> None:
        """Work the links out anew where NVLinks went up or down."""
        assert self._box is not None
        moved = {
            index: one.card.lanes
            for index, one in self._threads.items()
            if one.card.lanes and one.card.lanes != self._opened.cards[index].lanes
        }
        if not moved:
            return
        for index, lanes in moved.items():
            self._opened.cards[index] = replace(self._opened.cards[index], lanes=lanes)
        ways = self._opened.ways()
        before, self._box = self._box, replace(self._box, gpus=ways.gpus, links=ways.links)
        for gpu, severity, text in lane_changes(before, self._box):
            self._log.tell(severity, text, gpu)


def _no_card(nvml: Any, failed: dict[int, str]) -> OperatorError:
    if failed:
        return OperatorError(failed[min(failed)])
    return library_error(nvml, nvml.NVMLError(nvml.NVML_ERROR_GPU_NOT_FOUND))


def _removed(gpu: Gpu) -> str:
    where = f" at {gpu.pcie.bus}" if gpu.pcie.bus else ""
    return f"What was GPU {gpu.index} ({gpu.name}{where}) is no longer there: look for it with `lspci`."
