"""The machine that the tests run on, read; what is read is held against the kernel's own words."""

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import psutil

from gpudeck.services.host.disks import Answer, Disks
from gpudeck.services.host.places import kept, vllm_cache
from gpudeck.services.host.reader import HostReader
from gpudeck.services.host.types import Disk, Keeps


def test_readings_are_the_kernels(tmp_path: Path) -> None:
    reader = HostReader([(tmp_path, Keeps.MODELS)])
    first = reader.read()
    assert (first.cpu_share, first.swap_rate) == (None, None)
    assert first.memory_total_bytes == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < first.memory_available_bytes <= first.memory_total_bytes
    assert first.threads == len(os.sched_getaffinity(0))
    assert first.swap_used_bytes <= first.swap_total_bytes
    told = os.statvfs("/dev/shm")
    assert first.shm is not None
    assert first.shm.total_bytes == told.f_frsize * told.f_blocks
    assert [disk.path for disk in first.disks] == [str(tmp_path)]


def test_the_cpus_are_as_busy_as_somebody_keeps_them() -> None:
    """One process that spins keeps at least most of one CPU busy, whatever else runs."""
    spin = "print('up', flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            reader = HostReader([])
            reader.read()
            begun = psutil.Process(process.pid).cpu_times().user
            while psutil.Process(process.pid).cpu_times().user - begun < 0.5:
                os.sched_yield()
            share = reader.read().cpu_share
        finally:
            process.kill()
    assert share is not None
    assert 0.5 / (os.cpu_count() or 1) < share <= 1


def test_the_limit_of_open_files_is_the_hard_one() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        assert HostReader([]).read().open_files == (None if hard == resource.RLIM_INFINITY else hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_folders_on_one_file_system_are_one_disk_for_each_thing_kept(tmp_path: Path) -> None:
    folders = [
        (tmp_path / name, keeps) for name, keeps in (("a", Keeps.MODELS), ("b", Keeps.MODELS), ("c", Keeps.DOWNLOADS))
    ]
    for folder, _ in folders[:2]:
        folder.mkdir()
    disks = Disks(folders).read()
    assert [(disk.path, disk.keeps) for disk in disks] == [
        (str(tmp_path / "a"), Keeps.MODELS),
        (str(tmp_path / "c"), Keeps.DOWNLOADS),  # not there yet: where it will be made
    ]
    told = os.statvfs(tmp_path)
    assert {disk.total_bytes for disk in disks} == {told.f_frsize * told.f_blocks}


def test_a_folder_of_models_that_is_not_there_is_not_told(tmp_path: Path) -> None:
    assert Disks([(tmp_path / "none", Keeps.MODELS)]).read() == ()


def test_a_mount_that_hangs_is_told_without_figures_and_asked_once() -> None:
    answers, asked = threading.Event(), []

    def hangs(path: Path, keeps: Keeps) -> Answer:  # as statvfs does on a mount whose server is gone
        asked.append(path)
        answers.wait()
        return 1, Disk(str(path), keeps, 2, 1)

    disks = Disks([(Path("/net"), Keeps.MODELS)], patience=0.01, ask=hangs)
    assert disks.read() == disks.read() == (Disk("/net", Keeps.MODELS),)
    assert asked == [Path("/net")]
    answers.set()
    patient = Disks([(Path("/net"), Keeps.MODELS)], ask=hangs)
    assert patient.read() == (Disk("/net", Keeps.MODELS, 2, 1),)


def test_where_engines_keep_things_is_where_their_variables_say(tmp_path: Path) -> None:
    environment = {
        "HF_HOME": str(tmp_path / "hf"),
        "VLLM_CACHE_ROOT": str(tmp_path / "vllm"),
        "GPUDECK_MODELS": "/data/m",
    }
    folders = kept(environment=environment)
    assert (tmp_path / "hf" / "hub", Keeps.DOWNLOADS) in folders
    assert (Path("/data/m"), Keeps.MODELS) in folders
    assert (tmp_path / "vllm", Keeps.VLLM_CACHE) in folders
    assert vllm_cache({}) == Path.home() / ".cache" / "vllm"
    assert kept([tmp_path], {})[1:-1] == ((tmp_path, Keeps.MODELS),)
