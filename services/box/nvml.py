"""This machine's cards through NVML, NVIDIA's own library, by way of pynvml."""

import socket
import time
from collections.abc import Callable
from typing import Any

from gpudeck.services.box.nvml_card import NvmlCard
from gpudeck.services.box.nvml_faults import CardError, library_error, unopened_card
from gpudeck.services.box.nvml_links import read_links
from gpudeck.services.box.processes import ProcessBook
from gpudeck.services.box.types import Box, Demand, Reading, Snapshot
from gpudeck.services.errors import OperatorError

REOPEN_S = 10.0  # how often the library is opened anew while a card is lost: only then a card that was reset is found


class NvmlSource:
    """A BoxSource over NVML.

    Facts that last are asked for once, at opening.  A card that fails carries its fault in the reading while the others
    go on; it is tried again at every read, and at times with the library opened anew.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._nvml: Any = None
        self._box: Box | None = None
        self._cards: dict[int, NvmlCard] = {}
        self._lost: dict[int, str] = {}  # cards whose handle must be asked for again, and what befell them
        self._book = ProcessBook()
        self._opened_at = 0.0

    def open(self) -> Box:
        """Open the library and every card.  Raises OperatorError where there is no driver or no card."""
        import pynvml

        self._nvml = pynvml
        self._start_library()
        try:
            self._box = self._open_cards()
        except BaseException:
            self.close()
            raise
        return self._box

    def read(self, demand: Demand = Demand.ALL) -> Snapshot:
        """Read every card.  Raises OperatorError when none answers any more."""
        assert self._box is not None, "read before open"
        if (self._lost or self._box.faults) and self._clock() - self._opened_at >= REOPEN_S:
            self._reopen()
        at = time.time()
        readings = tuple(self._read_card(index) for index in self._cards)
        if all(reading.fault for reading in readings):
            raise OperatorError(readings[0].fault)
        self._book.keep_only({process.pid for reading in readings for process in reading.processes})
        return Snapshot(self._box, at, readings)

    def close(self) -> None:
        if self._nvml is not None:
            self._stop_library()
        self._nvml = None
        self._box = None
        self._cards = {}
        self._lost = {}

    def _start_library(self) -> None:
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError as error:
            raise library_error(self._nvml, error) from None
        self._opened_at = self._clock()

    def _stop_library(self) -> None:
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError:
            return  # it was not open

    def _open_cards(self) -> Box:
        import psutil

        nvml = self._nvml
        host_memory_bytes = psutil.virtual_memory().total
        gpus, faults = [], []
        self._cards, self._lost = {}, {}
        try:
            count = nvml.nvmlDeviceGetCount()
        except nvml.NVMLError as error:
            raise library_error(nvml, error) from None
        for index in range(count):
            try:
                card = NvmlCard(nvml, index, nvml.nvmlDeviceGetHandleByIndex(index), self._book)
                gpus.append(card.facts(host_memory_bytes))
                self._cards[index] = card
            except nvml.NVMLError as error:
                faults.append(unopened_card(nvml, index, error))
            except CardError as fault:
                faults.append(str(fault))
        if not gpus:
            raise (
                OperatorError(faults[0])
                if faults
                else library_error(nvml, nvml.NVMLError(nvml.NVML_ERROR_GPU_NOT_FOUND))
            )
        return Box(
            gpus=tuple(gpus),
            links=read_links(nvml, {index: card.handle for index, card in self._cards.items()}),
            name=socket.gethostname(),
            driver=self._system(nvml.nvmlSystemGetDriverVersion),
            cuda=_cuda_version(self._system(nvml.nvmlSystemGetCudaDriverVersion_v2)),
            host_memory_bytes=host_memory_bytes,
            faults=tuple(faults),
        )

    def _system(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except self._nvml.NVMLError:
            return None

    def _read_card(self, index: int) -> Reading:
        card = self._cards[index]
        try:
            if index in self._lost:
                card.handle = self._handle_again(index)
            reading = card.read()
        except CardError as fault:
            self._lost[index] = str(fault)
            return Reading(index, fault=str(fault))
        except self._nvml.NVMLError:
            # Only asking for the handle again raises this: the card is where it was.
            return Reading(index, fault=self._lost[index])
        self._lost.pop(index, None)
        return reading

    def _handle_again(self, index: int) -> Any:
        """The handle of a card that was lost: by UUID, since indices shift when a card is missing."""
        assert self._box is not None
        gpu = self._box.gpu(index)
        if gpu is not None and gpu.uuid:
            return self._nvml.nvmlDeviceGetHandleByUUID(gpu.uuid)
        return self._nvml.nvmlDeviceGetHandleByIndex(index)

    def _reopen(self) -> None:
        """Open the library anew.  Cards known before stay in the box; those that had failed at opening may join it."""
        before, lost = self._box, self._lost
        assert before is not None
        self._stop_library()
        self._start_library()
        if before.faults:
            now = self._open_cards()
            if {gpu.uuid for gpu in before.gpus} <= {gpu.uuid for gpu in now.gpus}:
                self._box = now
                return
        self._box = before
        self._cards = {gpu.index: NvmlCard(self._nvml, gpu.index, None, self._book) for gpu in before.gpus}
        self._lost = {
            index: lost.get(index, f"GPU {index} did not come back with the driver.") for index in self._cards
        }


def _cuda_version(number: int | None) -> str | None:
    """13000 is 13.0, 12020 is 12.2."""
    return None if number is None else f"{number // 1000}.{number % 1000 // 10}"
