"""Keys under the embedded runner: in a file of their own, in the engine's environment, and nowhere else."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpudeck.services.engine.embedded import EmbeddedRunner
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.secrets import Secrets
from tests.rigs.small_engines import engine

KEYS = Secrets((("VLLM_API_KEY", 'a"b$c\\d'), ("HF_TOKEN", "hf_1")))


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedRunner]:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    runner = EmbeddedRunner(home=tmp_path / "engines")
    yield runner
    for state in runner.engines():
        runner.remove(state.name)
    runner.close()


def test_the_engine_gets_them_and_no_other_file_has_them(runner: EmbeddedRunner, tmp_path: Path) -> None:
    said = tmp_path / "said"
    spec = engine(tmp_path, "keyed", f'printf "%s %s" "$VLLM_API_KEY" "$HF_TOKEN" > {said}; exec sleep 1000')
    runner.install(spec, secrets=KEYS)
    runner.start("keyed")
    end = time.monotonic() + 20
    while not (said.exists() and said.read_text()):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert said.read_text() == 'a"b$c\\d hf_1'
    assert runner.api_key("keyed") == 'a"b$c\\d'
    folder = tmp_path / "engines" / "vllm-keyed.service"
    assert [path.name for path in folder.iterdir() if "hf_1" in path.read_text()] == ["secrets.env"]
    assert (folder / "secrets.env").stat().st_mode & 0o777 == 0o600
    runner.remove("keyed")
    assert not folder.exists()


def test_a_key_in_the_spec_is_refused(runner: EmbeddedRunner, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="--api-key-file"):
        runner.install(engine(tmp_path, "open", "exit", environment=(("VLLM_API_KEY", "hush"),)))
    assert runner.engines() == ()
