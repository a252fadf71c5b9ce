"""Which vLLM is there, and of which version."""

from pathlib import Path

import pytest

from gpudeck.app.programs import engine_program
from gpudeck.services.plan.versions import NEWEST_KNOWN
from tests.services.vllm.test_installed import program


def test_the_installed_version_is_what_is_judged_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = program(tmp_path / "bin" / "python", "#!/bin/sh\n")
    vllm = program(tmp_path / "bin" / "vllm", f"#!{python}\n")
    monkeypatch.setenv("GPUDECK_VLLM", str(vllm))
    assert engine_program(demo=None).version == NEWEST_KNOWN
    info = tmp_path / "lib" / "python3.12" / "site-packages" / "vllm-0.24.0.dist-info"
    info.mkdir(parents=True)
    metadata = info / "METADATA"
    metadata.write_text("Name: vllm\nVersion: 0.24.0\n")
    assert engine_program(demo=None).version == "0.24.0"
    assert engine_program(demo=None).cuda is None
    torch = info.parent / "torch" / "version.py"
    torch.parent.mkdir()
    torch.write_text("cuda: Optional[str] = '13.0'\n")
    assert engine_program(demo=None).cuda == "13.0"
    metadata.write_text("Name: vllm\nVersion: dev\n")
    assert engine_program(demo=None).version == NEWEST_KNOWN


def test_the_demos_engine_is_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUDECK_VLLM", "/no/such/vllm")
    assert engine_program(demo="mixed").version == NEWEST_KNOWN
