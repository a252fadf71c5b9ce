"""The library as a whole: opened and closed on a thread of its own, since a driver that is ill hangs there first."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from gpudeck.services.box.nvml.faults import library_error
from gpudeck.services.box.own_thread import OwnThread, StillBusyError
from gpudeck.services.errors import OperatorError

T = TypeVar("T")

OPEN_PATIENCE_S = 15.0  # without persistence mode the driver initialises every card at the first opening
_PATIENCE_S = 1.0
CARDS_FOLDER = Path("/proc/driver/nvidia/gpus")  # one entry for each card that the driver serves at this moment


class Library:
    """pynvml, and the questions that concern no single card."""

    def __init__(self, cards_folder: Path = CARDS_FOLDER) -> None:
        import pynvml

        self.nvml: Any = pynvml
        self._thread: OwnThread[Any] = OwnThread("gpudeck-nvml")
        self._cards_folder = cards_folder
        self._open = False

    def open(self) -> None:
        """Raises OperatorError where there is no driver to be read, or one that does not answer."""
        self._do(self.nvml.nvmlInit, OPEN_PATIENCE_S)
        self._open = True

    def close(self) -> None:
        """Close it.  One that hangs is left open."""
        if self._open:
            self._open = False
            try:
                self._do(self.nvml.nvmlShutdown, _PATIENCE_S)
            except OperatorError:
                return  # it was closed under us, or hangs

    def end(self) -> bool:
        """End its thread; False where a call hangs, and the thread must be asked again."""
        if self._thread.idle:
            self._thread.end()
        return self._thread.idle

    def count(self) -> int:
        """How many cards the driver counts.  Raises OperatorError."""
        count: int = self._do(self.nvml.nvmlDeviceGetCount, OPEN_PATIENCE_S)
        return count

    def census(self) -> tuple[int | None, tuple[str, ...]]:
        """What tells that a card was added or removed: the count, and the bus ids that the driver serves now.

        The count is fixed while the library is open; the folder is not, and is missing on WSL.
        """
        try:
            names = tuple(sorted(entry.name for entry in self._cards_folder.iterdir()))
        except OSError:
            names = ()
        try:
            return self._do(self.nvml.nvmlDeviceGetCount, _PATIENCE_S), names
        except OperatorError:
            return None, names

    def identity(self) -> tuple[str, str | None, str | None]:
        """The machine's name, the driver's version, and the newest CUDA that it runs."""
        driver = self._told(self.nvml.nvmlSystemGetDriverVersion)
        return socket.gethostname(), driver, _cuda_version(self._told(self.nvml.nvmlSystemGetCudaDriverVersion_v2))

    def _told(self, call: Callable[[], Any]) -> Any:
        try:
            return self._do(call, OPEN_PATIENCE_S)
        except OperatorError:
            return None

    def _do(self, call: Callable[[], T], patience: float) -> T:
        try:
            told: T = self._thread.do(call, patience)
        except StillBusyError:
            raise OperatorError(
                "The NVIDIA driver does not answer, a call to it hangs: look for an Xid in `dmesg`; reboot if it stays."
            ) from None
        except self.nvml.NVMLError as error:
            raise library_error(self.nvml, error) from None
        return told


def _cuda_version(number: int | None) -> str | None:
    """13000 is 13.0, 12020 is 12.2."""
    return None if number is None else f"{number // 1000}.{number % 1000 // 10}"
