"""Processes tied to their engines."""

from pathlib import Path

import pytest

from gpudeck.services.engine.ownership import engine_in, engine_of, service_in


@pytest.mark.parametrize(
    ("cgroup", "engine"),
    [
        (b"0::/system.slice/vllm-coder.service\n", "coder"),
        (b"0::/user.slice/user-1000.slice/user@1000.service/app.slice/vllm-a.b_c-2.service\n", "a.b_c-2"),
        (b"0::/system.slice/gpudeck-demo-llama.service/workers\n", "llama"),
        (b"0::/system.slice/ssh.service\n", None),
        (b"12:cpu:/system.slice/vllm-old.service\n0::/init.scope\n", "old"),
        (b"", None),
    ],
)
def test_the_control_group_names_the_engine(cgroup: bytes, engine: str | None) -> None:
    assert engine_in(cgroup, b"") == engine


def test_under_the_embedded_runner_the_environment_does() -> None:
    assert engine_in(b"0::/docker/abc\n", b"PATH=/bin\0GPUDECK_UNIT=vllm-coder.service\0HOME=/") == "coder"


def test_a_process_that_is_gone_belongs_to_none(tmp_path: Path) -> None:
    assert engine_of(1, tmp_path) is None


@pytest.mark.parametrize(
    ("cgroup", "service"),
    [
        (b"0::/system.slice/qwen-prod.service\n", "qwen-prod"),
        (b"0::/system.slice/system-vllm.slice/vllm@coder.service\n", "vllm@coder"),
        (b"0::/user.slice/user-1000.slice/user@1000.service/app.slice/llm.service/workers\n", "llm"),
        (b"0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-42.scope\n", None),
        (b"0::/user.slice/user-1000.slice/session-3.scope\n", None),
        (b"0::/system.slice/ssh.service\n", None),
        (b"0::/system.slice/docker-0f1e2d.scope\n", None),
        (b"0::/\n", None),
    ],
)
def test_a_service_is_one_that_runs_what_its_unit_says(cgroup: bytes, service: str | None) -> None:
    assert service_in(cgroup) == service


class Family:
    """A folder laid out as /proc is, with the processes that a test needs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, pid: int, parent: int, command: str, cgroup: str = "/", environment: str = "") -> None:
        place = self.folder / str(pid)
        place.mkdir()
        (place / "stat").write_text(f"{pid} (a) b (c) S {parent} 1 1 0 -1\n")
        (place / "cmdline").write_text(command.replace(" ", "\0") + "\0")
        (place / "cgroup").write_text(f"0::{cgroup}\n")
        (place / "environ").write_text(environment)

    def engine(self, pid: int) -> str | None:
        return engine_of(pid, self.folder, self.folder / "docker")


@pytest.fixture
def family(tmp_path: Path) -> Family:
    return Family(tmp_path)


HAND_WRITTEN = "/system.slice/qwen-prod.service"


def test_a_worker_of_a_hand_written_unit_belongs_to_that_unit(family: Family) -> None:
    family.add(100, 1, "/opt/llm/bin/python -m vllm.entrypoints.openai.api_server --port 9001", HAND_WRITTEN)
    family.add(101, 100, "VLLM::EngineCore", HAND_WRITTEN)
    family.add(102, 101, "VLLM::Worker_TP0", HAND_WRITTEN)
    assert [family.engine(pid) for pid in (100, 101, 102)] == ["qwen-prod"] * 3


def test_a_worker_that_has_no_title_is_known_by_its_parents(family: Family) -> None:
    family.add(100, 1, "/opt/llm/bin/python /opt/llm/bin/vllm serve /models/q", HAND_WRITTEN)
    family.add(101, 100, "/opt/llm/bin/python -c from_multiprocessing.spawn_import_spawn_main", HAND_WRITTEN)
    assert family.engine(101) == "qwen-prod"


def test_what_is_no_vllm_is_no_engine_whatever_service_runs_it(family: Family) -> None:
    family.add(100, 1, "/usr/bin/python3 train.py --note vllm-serve", "/system.slice/training.service")
    assert family.engine(100) is None


def test_a_vllm_started_by_hand_belongs_to_no_service(family: Family) -> None:
    family.add(90, 1, "sshd:", "/system.slice/ssh.service")
    family.add(100, 90, "/home/ada/.venv/bin/vllm serve /models/q", "/system.slice/ssh.service")
    assert family.engine(100) is None


def test_a_worker_whose_title_covers_its_environment_is_known_by_its_parent(family: Family) -> None:
    family.add(100, 1, "python -m vllm", environment="GPUDECK_UNIT=vllm-coder.service\0")
    family.add(101, 100, "VLLM::EngineCore", environment="ngineCore\0")
    family.add(102, 101, "VLLM::Worker_TP1", environment="")
    assert family.engine(102) == "coder"


ID = "0f1e2d3c4b5a" + "69" * 26


@pytest.mark.parametrize(
    "cgroup",
    [
        f"/system.slice/docker-{ID}.scope",
        f"/docker/{ID}",
        f"/machine.slice/libpod-{ID}.scope/container",
        f"/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope",
    ],
)
def test_a_vllm_in_a_container_is_called_after_the_container(family: Family, cgroup: str) -> None:
    family.add(90, 1, f"/usr/bin/containerd-shim-runc-v2 -id {ID}", "/system.slice/containerd.service")
    family.add(100, 90, "VLLM::EngineCore", cgroup)
    family.add(101, 100, "VLLM::Worker_TP0", cgroup)
    family.add(102, 90, "python3 train.py", cgroup)
    assert [family.engine(pid) for pid in (100, 101, 102)] == ["container 0f1e2d3c4b5a"] * 2 + [None]
    described = family.folder / "docker" / ID
    described.mkdir(parents=True)
    (described / "config.v2.json").write_text('{"Name": "/gemma"}')
    assert family.engine(101) == "container gemma"
    for hostile in ("[]", "{", '{"Name": ""}', "null"):
        (described / "config.v2.json").write_text(hostile)
        assert family.engine(101) == "container 0f1e2d3c4b5a"
