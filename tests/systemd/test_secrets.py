"""Keys under the real systemd: the engine has them, and neither systemctl nor the journal nor any unit does."""

import subprocess
from pathlib import Path

import pytest

from gpudeck.app.cli import run
from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.secrets import Secrets
from tests.rigs.small_engines import engine, inside_systemd, processes, until

pytestmark = inside_systemd
AWKWARD = "k1-\"q'$HOME`x\\y%h#;="
FILE = Path("/etc/gpudeck/vllm-keyed.env")


def told(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def test_a_key_reaches_the_engine_and_nothing_else(runner: SystemdRunner, tmp_path: Path) -> None:
    got = tmp_path / "got"
    spec = engine(tmp_path, "keyed", f'printf "%s" "$VLLM_API_KEY" > {got}; echo up; exec sleep 1000')
    runner.install(spec, secrets=Secrets((("VLLM_API_KEY", AWKWARD), ("HF_TOKEN", "hf_hush"))))
    assert FILE.stat().st_mode & 0o777 == 0o600
    runner.start("keyed")
    assert until("it wrote nothing", lambda: got.exists() and got.read_text()) == AWKWARD
    assert runner.api_key("keyed") == AWKWARD
    shown = told("systemctl", "show", "vllm-keyed") + told("systemctl", "cat", "vllm-keyed")
    shown += told("journalctl", "--no-pager", "-a", "-o", "export")
    assert "up" in shown
    for secret in (AWKWARD, "k1-", "hf_hush"):
        assert secret not in shown
    # Another key without another unit: the running engine still has the old one, and that is the one that it takes.
    runner.install(spec, secrets=Secrets((("VLLM_API_KEY", "k2"),)))
    assert runner.api_key("keyed") == AWKWARD
    runner.restart("keyed")
    until("the new key is not there", lambda: got.read_text() == "k2")
    assert runner.api_key("keyed") == "k2"
    runner.remove("keyed")
    assert not FILE.exists()
    assert processes("sleep") == []


def test_a_unit_that_can_not_be_written_leaves_no_key(runner: SystemdRunner, tmp_path: Path) -> None:
    spec = engine(tmp_path, "keyed", "exit")
    folder = Path("/etc/systemd/system")
    subprocess.run(["mount", "--bind", "-o", "ro", str(folder), str(folder)], check=True)
    try:
        with pytest.raises(OperatorError, match="can not be written"):
            runner.install(spec, secrets=Secrets((("VLLM_API_KEY", "k1"),)))
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    assert not FILE.exists()


def test_install_takes_a_key_from_a_file_and_never_as_an_argument(
    runner: SystemdRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Path(__file__).parents[1] / "data" / "models" / "qwen2.5-0.5b"
    key = tmp_path / "key"
    key.write_text("k-from-a-file\n")
    words = ["install", str(model), "--demo", "--stage", "1", "--name", "keyed", "--yes"]
    assert run([*words, "--api-key-file", str(key)]) == 0
    said = capsys.readouterr().out
    file = Path("/etc/gpudeck/gpudeck-demo-keyed.env")
    try:
        assert f"VLLM_API_KEY into {file} (mode 0600)" in said
        assert "k-from-a-file" not in said
        assert 'VLLM_API_KEY="k-from-a-file"' in file.read_text()
        assert file.stat().st_mode & 0o777 == 0o600
    finally:
        assert run(["remove", "keyed", "--demo", "--yes"]) == 0
    assert not file.exists()
