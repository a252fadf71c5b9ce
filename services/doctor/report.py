"""What was found as the JSON document of `gpudeck doctor`, and that document's shape."""

from typing import Any

from gpudeck.services.box.shape import Field, Listing, Number, OrNull, Record, Shape, Text, Whole
from gpudeck.services.doctor.engine_environment import Versions
from gpudeck.services.doctor.examine import Examination
from gpudeck.services.host.types import HostReading

_ANY = 1 << 62
_MANY = 1 << 20
_SENTENCE = 1 << 16  # one may repeat a path, or a line of a log


def document(found: Examination) -> dict[str, Any]:
    """The document; its shape is DOCTOR_DOCUMENT."""
    return {
        "checks": [{"part": c.part, "health": c.health.value, "says": c.says} for c in found.checks],
        "versions": None if found.versions is None else _versions(found.versions),
        "host": _host(found.host),
        "accelerators": [{"address": a.address, "vendor": a.vendor, "name": a.name} for a in found.host.accelerators],
    }


def _versions(versions: Versions) -> dict[str, Any]:
    return {
        "vllm": versions.vllm,
        "torch": versions.torch,
        "cuda": versions.cuda,
        "nccl": versions.nccl,
        "python": versions.python,
    }


def _host(host: HostReading) -> dict[str, Any]:
    return {
        "cores": host.cores,
        "threads": host.threads,
        "cpu_share": host.cpu_share,
        "load": None if host.load is None else list(host.load),
        "memory_total_bytes": host.memory_total_bytes,
        "memory_available_bytes": host.memory_available_bytes,
        "swap_total_bytes": host.swap_total_bytes,
        "swap_used_bytes": host.swap_used_bytes,
        "swap_bytes_per_s": host.swap_rate,
        "shm_total_bytes": host.shm.total_bytes if host.shm else None,
        "shm_free_bytes": host.shm.free_bytes if host.shm else None,
        "open_files": host.open_files,
        "disks": [
            {
                "path": disk.path,
                "keeps": disk.keeps.value,
                "total_bytes": disk.total_bytes,
                "free_bytes": disk.free_bytes,
            }
            for disk in host.disks
        ],
    }


def _must(shape: Shape, about: str) -> Field:
    return Field(shape, about, required=True)


def _told(shape: Shape, about: str) -> Field:
    """A key that is always there, null where it is not known."""
    return Field(OrNull(shape), about, required=True)


_bytes = Whole(0, _ANY)

_CHECK = Record(
    {
        "part": _must(Text(), "what was looked at"),
        "health": _must(
            Text("ok|less|missing", "a health"),
            "ok; less: gpudeck works, with something missing; missing: something needed is not there",
        ),
        "says": _must(Text(most=_SENTENCE), "what that means and what to do"),
    }
)
_VERSIONS = Record(
    {
        "vllm": _told(Text(), "vLLM's version"),
        "torch": _told(Text(), "torch's"),
        "cuda": _told(Text(), "the CUDA that torch was built for"),
        "nccl": _told(Text(), "NCCL's, where it is a package of its own"),
        "python": _must(Text(), "Python's"),
    }
)
_DISK = Record(
    {
        "path": _must(Text(most=_SENTENCE), "a folder that lies there"),
        "keeps": _must(Text("models|downloaded models|vLLM's cache", "what is kept"), "what an engine keeps there"),
        "total_bytes": _told(_bytes, "its size; null where it does not answer"),
        "free_bytes": _told(_bytes, "free for a user who is not root"),
    }
)
_HOST = Record(
    {
        "cores": _told(Whole(1, _MANY), "physical cores that may be used"),
        "threads": _must(Whole(1, _MANY), "logical CPUs that may be used"),
        "cpu_share": _told(Number(0, 1), "busy share of all CPUs while the checks ran"),
        "load": _told(Listing(Number(0, _ANY), 3, 3), "load over 1, 5 and 15 minutes"),
        "memory_total_bytes": _must(_bytes, "memory"),
        "memory_available_bytes": _must(_bytes, "memory that can be had without swapping"),
        "swap_total_bytes": _must(_bytes, "swap"),
        "swap_used_bytes": _must(_bytes, "swap in use"),
        "swap_bytes_per_s": _told(Number(0, _ANY), "to and from swap while the checks ran"),
        "shm_total_bytes": _told(_bytes, "size of /dev/shm"),
        "shm_free_bytes": _told(_bytes, "free in /dev/shm"),
        "open_files": _told(_bytes, "hard limit of open files; null for none"),
        "disks": _must(Listing(_DISK, _MANY), "where models and caches lie"),
    }
)
_ACCELERATOR = Record(
    {
        "address": _must(Text(), "PCI address"),
        "vendor": _must(Text(), "its maker"),
        "name": _must(Text(), "its name, or vendor:device"),
    }
)
DOCTOR_DOCUMENT = Record(
    {
        "checks": _must(Listing(_CHECK, _MANY), "one a part, in the order in which they would be mended"),
        "versions": _told(_VERSIONS, "what lies in the engine's environment; null where it could not be asked"),
        "host": _must(_HOST, "the machine itself"),
        "accelerators": _must(Listing(_ACCELERATOR, _MANY), "accelerators that are no NVIDIA cards"),
    }
)
