"""Failures of running processes: links between ranks, hangs, time-outs, sudden deaths."""

from gpudeck.services.diagnosis.entry import Advice, Entry, Found, sign
from gpudeck.services.diagnosis.words import where

_SIGNALS = {
    4: ("an illegal instruction", "This build was made for another processor: install one for this machine."),
    6: ("an abort", "Its own last lines say why: read what stands above."),
    7: (
        "a bus error",
        "Shared memory is full or too small: `df -h /dev/shm`; for a container --shm-size or --ipc=host.",
    ),
    9: (
        "a kill",
        "Look for the kernel's OOM killer in `journalctl -k`: free host memory, or raise the unit's MemoryMax.",
    ),
    11: ("a segmentation fault", "Look for an Xid in `journalctl -k`; try --enforce-eager, or another vLLM version."),
}


def _death(found: Found) -> Advice:
    code = found.number("code")
    if code is None:
        return Advice()
    number = code if found.word("minus") else code - 128
    what, fix = _SIGNALS.get(number, ("", ""))
    if not what:
        return Advice(f"A worker ended by itself, with exit code {found.word('minus')}{code}.")
    # The name in the line is the dead worker's; who writes it is its parent.
    return Advice(f"A worker was ended by {what} (signal {number}).", fix)


def _nccl(found: Found) -> Advice:
    told = found.word("what")
    return Advice(f"The cards could not set up or use their connection{f': {told}' if told else ''}.")


def _hang(found: Found) -> Advice:
    place = where(found, otherwise="")
    return Advice(f"The ranks waited in vain for each other{f'; {place} told it' if place else ''}: one of them hangs.")


ENTRIES = (
    Entry(
        "nccl-error",
        "NCCL failed",
        (
            sign("NCCL error: ", r"NCCL error: (?P<what>[^(\n]{3,80}?)(?: \(|$)"),
            sign("NCCL error", r"NCCL error in: |DistBackendError: NCCL error"),
            sign("ncclUnhandledCudaError"),
            sign("ncclSystemError"),
            sign("ncclRemoteError"),
        ),
        "The cards could not set up or use their connection.",
        "Start once with NCCL_DEBUG=INFO; NCCL_P2P_DISABLE=1 tells whether peer access is at fault; see /dev/shm and "
        "the driver.",
        "NCCL; vllm/distributed/device_communicators/pynccl_wrapper.py",
        _nccl,
    ),
    Entry(
        "collective-timeout",
        "A rank hangs in a collective operation",
        (sign("Watchdog caught collective operation timeout"),),
        "The ranks waited in vain for each other: one of them hangs or has died.",
        "Find the rank that is silent in the log; look for an Xid; try NCCL_P2P_DISABLE=1 or "
        "--disable-custom-all-reduce.",
        "torch (ProcessGroupNCCL); vllm#6042",
        _hang,
    ),
    Entry(
        "rpc-timeout",
        "A worker does not answer",
        (sign("RPC call to", r"RPC call to \S{1,80} timed out"),),
        "A worker did not finish a step in time: it hangs, or a card does.",
        "Look for an Xid in `journalctl -k` and for the worker's last line; for slow steps raise "
        "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS.",
        "vllm/v1/executor/multiproc_executor.py",
    ),
    Entry(
        "worker-wait",
        "A worker is waited for",
        (sign("No available shared memory broadcast block found"),),
        "A worker has been busy for a minute or more: compiling, or, when it is said again and again, hanging.",
        "Wait while it compiles; if it repeats, look for an Xid and for the worker's last line.",
        "vllm/distributed/device_communicators/shm_broadcast.py",
        notice=True,
    ),
    Entry(
        "worker-died",
        "A worker ended suddenly",
        (
            sign(
                "died unexpectedly",
                r"(?:Worker proc|WorkerProc|Engine core proc) \S{1,80}.{0,40}? died unexpectedly"
                r"(?: \(exit code: (?P<minus>-?)(?P<code>\d{1,3}))?",
            ),
            # -15 is how a dying engine ends its other workers.
            sign(
                " died, exit code: ",
                r"Worker \S{1,60} pid \d{1,9} died, exit code: (?P<minus>-?)(?!15\b)(?P<code>\d{1,3})",
            ),
        ),
        "A worker process ended without a word of Python: by a signal.",
        "-9: the kernel's OOM killer; -7: /dev/shm is too small; -11: a crash in a driver or kernel. See `journalctl "
        "-k`.",
        "vllm/v1/executor/multiproc_executor.py",
        _death,
    ),
    Entry(
        "engine-died",
        "The engine core ended suddenly",
        (sign("exited unexpectedly", r"[Ee]ngine core.{0,40}exited unexpectedly"),),
        "The engine's core process ended without a word of Python: killed from outside, or by a crash.",
        "See `journalctl -k` for the OOM killer and for an Xid at that time.",
        "vllm/v1/engine/core_client.py",
    ),
    Entry(
        "engine-timeout",
        "The engine was not up in time",
        (
            sign(
                "Timed out waiting for engine core",
                r"Timed out waiting for engine core(?:.{0,160}Waited (?P<seconds>\d+)s)?",
            ),
        ),
        "Loading took longer than vLLM waits for its engine.",
        "Set VLLM_ENGINE_READY_TIMEOUT_S higher (seconds), and have the model on a faster disk.",
        "vllm/v1/engine/core_client.py",
        lambda found: Advice(
            fix=f"Wait longer: VLLM_ENGINE_READY_TIMEOUT_S={2 * seconds}, and have the model on a faster disk."
            if (seconds := found.number("seconds"))
            else None
        ),
    ),
    Entry(
        "cpu-numa",
        "More CPU ranks than NUMA nodes",
        (sign("Not enough allowed NUMA nodes to bind threads"),),
        "vLLM's CPU build gives each rank a NUMA node of its own, and there are fewer than ranks.",
        "Lower TP × PP, or name the processors of each rank in VLLM_CPU_OMP_THREADS_BIND: 0-3|4-7.",
        "vLLM's CPU build (0.32)",
    ),
    Entry(
        "cpu-attention",
        "A model that the CPU build can not attend",
        (
            sign(
                "Unsupported CPU attention configuration",
                r"Unsupported CPU attention configuration: head_dim=(?P<size>\d+)",
            ),
        ),
        "vLLM's CPU build has no attention for this model's head size, and says so at the first request.",
        "Serve this model on a GPU, or take one with heads of 32, 64, 80, 96, 112, 128, 192 or 256.",
        "vLLM's CPU build (0.32)",
    ),
)
