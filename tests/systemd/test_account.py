"""An engine's own account: what it lacks is told before a unit is written, with the way out."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.errors import OperatorError
from tests.rigs.small_engines import engine, inside_systemd, until

pytestmark = inside_systemd
PLACE = Path("/run/account")


@pytest.fixture
def model() -> Path:
    """A model that everyone may read."""
    model = PLACE / "model"
    model.mkdir(parents=True, exist_ok=True)
    for path in (PLACE, model):
        path.chmod(0o755)
    (model / "config.json").write_text("{}")
    (model / "config.json").chmod(0o644)
    return model


@pytest.fixture
def account() -> Iterator[str]:
    subprocess.run(["useradd", "--system", "--create-home", "--home-dir", "/var/lib/vllm-x", "vllm-x"], check=True)
    yield "vllm-x"
    subprocess.run(["userdel", "--remove", "vllm-x"], check=True, capture_output=True)


def refusal(runner: SystemdRunner, model: Path, account: str) -> str:
    with pytest.raises(OperatorError) as refused:
        runner.install(engine(PLACE, "owned", "exec sleep 1000", model=str(model), user=account))
    assert runner.engines() == ()
    return str(refused.value)


def test_it_runs_as_the_account(account: str, runner: SystemdRunner, model: Path) -> None:
    runner.install(engine(PLACE, "owned", "exec sleep 1000", model=str(model), user=account))
    runner.start("owned")
    state = runner.state("owned")
    assert state is not None
    owner = until("it does not run", lambda: Path(f"/proc/{state.main_pid}").owner())
    assert owner == account


def test_an_account_that_is_not_there_is_told_how_to_make(runner: SystemdRunner, model: Path) -> None:
    said = refusal(runner, model, "nosuch")
    assert said.startswith("There is no account nosuch: as root, `useradd --system --create-home")
    assert runner.preview(engine(PLACE, "owned", "exit", model=str(model), user="nosuch")).text  # may be looked at


def test_what_it_can_not_read_is_named(account: str, runner: SystemdRunner, model: Path) -> None:
    weights = model / "model.safetensors"
    weights.touch()
    weights.chmod(0o600)
    assert refusal(runner, model, account).startswith(f"The account vllm-x may not read {weights}: `setfacl -R -m")
    weights.unlink()
    model.chmod(0o700)
    assert f"may not read {model}" in refusal(runner, model, account)
    model.chmod(0o755)
    spec = engine(PLACE, "owned", "exit", model=str(model), user=account)
    Path(spec.program[0]).chmod(0o700)
    with pytest.raises(OperatorError, match=r"may not run /run/account/owned\.sh"):
        runner.install(spec)


def test_no_home_for_its_caches(runner: SystemdRunner, model: Path) -> None:
    subprocess.run(["useradd", "--system", "--no-create-home", "--home-dir", "/var/lib/none", "homeless"], check=True)
    try:
        assert "`install -d -o homeless /var/lib/none` makes one" in refusal(runner, model, "homeless")
    finally:
        subprocess.run(["userdel", "homeless"], check=True)
