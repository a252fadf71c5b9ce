"""The processes beside the API server: vLLM has an EngineCore and a worker for each card, and so has its simulation.

They do nothing but exist: a runner that stops an engine has as many processes to end as with the real one.
"""

import ctypes
import os
import signal
from contextlib import suppress
from dataclasses import dataclass

from gpudeck.services.simulator.options import Options

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15


@dataclass(frozen=True, slots=True)
class Worker:
    name: str  # as in the log: "EngineCore", "Worker_PP0_TP1"
    pid: int

    @property
    def title(self) -> str:
        """As vLLM titles the process, and as NVML shows it."""
        return f"VLLM::{self.name}"


@dataclass(frozen=True, slots=True)
class Family:
    cores: tuple[Worker, ...]  # one for each data-parallel copy
    ranks: tuple[Worker, ...]  # who holds each rank's card, in rank order

    def end(self) -> None:
        for pid in {worker.pid for worker in (*self.cores, *self.ranks)}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def start(options: Options) -> Family:
    """Fork them; to be called before there is any thread.

    With one card vLLM has no worker of its own: the EngineCore holds it (its "uni" executor).  The parts of a worker's
    name appear only where that size is above 1 (vllm/v1/executor/multiproc_executor.py).
    """
    cores: list[Worker] = []
    ranks: list[Worker] = []
    for replica in range(options.data_parallel_size):
        copy = f"_DP{replica}" if options.data_parallel_size > 1 else ""
        cores.append(_fork(f"EngineCore{copy}"))
        if options.tensor_parallel_size * options.pipeline_parallel_size == 1:
            ranks.append(cores[-1])
            continue
        for stage in range(options.pipeline_parallel_size):
            for place in range(options.tensor_parallel_size):
                pp = f"_PP{stage}" if options.pipeline_parallel_size > 1 else ""
                tp = f"_TP{place}" if options.tensor_parallel_size > 1 else ""
                ranks.append(_fork(f"Worker{copy}{pp}{tp}"))
    return Family(tuple(cores), tuple(ranks))


def _fork(name: str) -> Worker:
    libc = ctypes.CDLL(None)
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return Worker(name, pid)
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.closerange(3, 64)  # the server's socket is not theirs
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_PR_SET_NAME, f"VLLM::{name}".encode(), 0, 0, 0)
        while os.getppid() == parent:
            signal.pause()
    finally:
        os._exit(0)
