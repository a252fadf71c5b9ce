"""Processes tied to their engines."""

from pathlib import Path

import pytest

from gpudeck.services.engine.ownership import engine_in, engine_of


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
