"""`gpudeck metrics` and `gpudeck grafana`."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from gpudeck.app import cli
from gpudeck.services.errors import OperatorError


def test_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["metrics", "--demo", "--once"]) == 0
    assert 'gpudeck_gpu_memory_total_bytes{gpu="0"}' in capsys.readouterr().out


def test_served_until_it_is_ended() -> None:
    command = [sys.executable, "-m", "gpudeck.app", "--demo", "metrics", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[1]
        answer = httpx.get(url, trust_env=False)
        server.send_signal(signal.SIGTERM)
        assert server.wait(10) == 0
    assert "gpudeck_build_info" in answer.text


@pytest.mark.parametrize("address", ["9837", "127.0.0.1:", "127.0.0.1:99999", ":9837", "127.0.0.1:http"])
def test_a_wrong_address(address: str) -> None:
    with pytest.raises(OperatorError, match="--listen"):
        cli.run(["metrics", "--demo", "--listen", address])


def test_other_machines_need_a_token() -> None:
    with pytest.raises(OperatorError, match="--token-file"):
        cli.run(["metrics", "--demo", "--listen", "0.0.0.0:0"])


def test_a_token_that_others_may_read_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret-word\n")
    os.chmod(token, 0o644)  # noqa: PTH101 - what a umask leaves
    with pytest.raises(OperatorError, match="chmod 600"):
        cli.run(["metrics", "--demo", "--token-file", str(token)])


@pytest.mark.parametrize("content", [b"", b"two words\n", b"\xff\n", b"a\x1bb"])
def test_a_token_that_no_header_carries(tmp_path: Path, content: bytes) -> None:
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_bytes(content)
    with pytest.raises(OperatorError, match="no token"):
        cli.run(["metrics", "--demo", "--token-file", str(token)])


def test_the_dashboard_is_one_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["grafana", "dashboard"]) == 0
    document = json.loads(capsys.readouterr().out)
    ids = [panel["id"] for panel in document["panels"]]
    assert len(set(ids)) == len(ids) > 10
