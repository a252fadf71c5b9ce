"""A real vLLM (CPU build) under the unit that gpudeck writes: hardened, keyed, quiet; as root and as an own account.

Only the cards are missing: vLLM's CPU build asks for none.
"""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpudeck.app.cli import run
from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.engine.types import Scope
from gpudeck.services.plan.command import can_be_quiet
from gpudeck.services.plan.secrets import Secrets
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from gpudeck.services.vllm.installed import installed
from tests.rigs import tiny_model
from tests.rigs.at_the_panel import free_port
from tests.rigs.small_engines import until

pytestmark = [
    pytest.mark.engine,
    pytest.mark.systemd,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not os.environ.get("WITH_SYSTEMD"), reason="run by tests/rigs/with_systemd"),
    pytest.mark.skipif(not os.environ.get("GPUDECK_ENGINE_ENV"), reason="no engine environment: tests/run --all"),
]

KEY, TOKEN = "k-hush-4711", "hf_hush_4711"
SETTINGS = (
    ("VLLM_CPU_KVCACHE_SPACE", "1"),
    ("VLLM_CPU_OMP_THREADS_BIND", "0"),
    ("HF_HUB_OFFLINE", "1"),
    ("VLLM_NO_USAGE_STATS", "1"),
)


@contextmanager
def let_in(*paths: Path) -> Iterator[None]:
    """Let every account reach these paths: of a closed folder on the way (root's home) nothing else is left."""
    closed = next((each for each in reversed(paths[0].parents) if not each.stat().st_mode & 0o001), None)
    if closed is None:
        yield
        return
    held = Path("/run/held")
    held.mkdir(exist_ok=True)
    subprocess.run(["mount", "--rbind", str(closed), str(held)], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(closed)], check=True)
    for path in paths:
        if path.is_relative_to(closed):
            path.mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "--bind", str(held / path.relative_to(closed)), str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-R", str(closed)], check=True)
        subprocess.run(["umount", "-R", "-l", str(held)], check=True)


@pytest.fixture(params=[None, "vllm-test"], ids=["root", "account"])
def account(request: pytest.FixtureRequest) -> Iterator[str | None]:
    name: str | None = request.param
    if name is None:
        yield None
        return
    home = f"/var/lib/{name}"
    subprocess.run(["useradd", "--system", "--create-home", "--home-dir", home, name], check=True)
    with let_in(Path(os.environ["GPUDECK_ENGINE_ENV"]), Path.cwd()):
        yield name
    subprocess.run(["userdel", "--remove", name], check=True, capture_output=True)


def asked(port: int, path: str, key: str | None = None) -> int:
    """The status that the engine answers with; 0 where nothing answers yet."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers), timeout=10
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def told(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def test_the_unit_carries_a_real_vllm(account: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    vllm = Path(os.environ["GPUDECK_ENGINE_ENV"]) / "bin" / "vllm"
    found = installed((str(vllm),))
    assert found is not None
    assert found.version is not None
    assert can_be_quiet(found.version)
    model = Path("/run/real-unit/tiny")
    tiny_model.make(model)
    port = free_port()
    spec = EngineSpec(
        "real-unit",
        str(model),
        Placement(((0,),)),
        EngineOptions(port=port, served_model_name="tiny", max_model_len=512, load_format="dummy", enforce_eager=True),
        program=(str(vllm),),
        environment=SETTINGS,
        user=account,
        quiet=True,
    )
    runner = SystemdRunner(Scope.SYSTEM)
    try:
        runner.install(spec, secrets=Secrets((("VLLM_API_KEY", KEY), ("HF_TOKEN", TOKEN))))
        runner.start("real-unit")
        until("it never answered", lambda: asked(port, "/health") == 200, 300)
        assert (asked(port, "/v1/models"), asked(port, "/v1/models", KEY)) == (401, 200)
        for _ in range(20):
            assert asked(port, "/health") == asked(port, "/metrics") == asked(port, "/v1/models", KEY) == 200
        assert asked(port, "/version") == 200

        # gpudeck's own commands know the key and have it nowhere in what they say.
        assert run(["status", "real-unit"]) == 0
        assert run(["chat", "real-unit", "Say something.", "--max-tokens", "8"]) == 0
        said = capsys.readouterr()
        assert "and answers" in said.out
        assert "key  " not in said.out
        until("no line of the access log", lambda: '"GET /version' in journal(), 20)
        lines = journal()
        assert not [line for line in lines.splitlines() if "GET /health" in line or "GET /metrics" in line]
        assert "GET /v1/models" not in lines
        assert '"POST /v1/chat/completions HTTP/1.1" 200' in lines
        everything = lines + told("systemctl", "show", "vllm-real-unit") + told("systemctl", "cat", "vllm-real-unit")
        everything += json.dumps(said.out + said.err)
        assert KEY not in everything
        assert TOKEN not in everything

        state = runner.state("real-unit")
        assert state is not None
        lines_of_status = Path(f"/proc/{state.main_pid}/status").read_text().splitlines()
        status = dict(line.split(":\t", 1) for line in lines_of_status if "\t" in line)
        uid = int(told("id", "-u", account or "root"))
        assert status["Uid"].split()[0] == str(uid)
        assert status["NoNewPrivs"] == ("1" if account is None else "0")
        # What ProtectSystem= and ProtectControlGroups= made read-only in its own mount namespace.
        mounts = Path(f"/proc/{state.main_pid}/mounts").read_text().splitlines()
        options = {words[1]: words[3].split(",") for words in map(str.split, mounts)}
        assert all("ro" in options[place] for place in ("/usr", "/etc", "/sys/fs/cgroup"))
        began = time.monotonic()
        runner.stop("real-unit")
        assert time.monotonic() - began < 60  # it left by itself, before systemd's time-out
        stopped = runner.state("real-unit")
        assert stopped is not None
        assert (stopped.active, stopped.result) == ("inactive", "success")
    finally:
        runner.remove("real-unit")
        runner.close()
    assert not Path("/etc/gpudeck/vllm-real-unit.env").exists()


def journal() -> str:
    return told("journalctl", "--no-pager", "-a", "-o", "cat", "-u", "vllm-real-unit")
