from dataclasses import replace
from pathlib import Path

import pytest

from gpudeck.services.box.types import GIB, GpuProcess, Reading, Snapshot
from gpudeck.services.engine.starts.standstill import check_words, five_checks
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from gpudeck.services.plan.versions import NEWEST_KNOWN
from tests.services.box.boxes import pair

MODELS = Path("tests/data/models")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model directory that is whole but for its weights."""
    folder = tmp_path / "llama"
    folder.mkdir()
    (folder / "config.json").write_text((MODELS / "llama-3.2-1b" / "config.json").read_text())
    (folder / "tokenizer.json").write_text("{}")
    return folder


def spec(model: Path, **options: object) -> EngineSpec:
    return EngineSpec("chat", str(model), Placement(((0,),)), EngineOptions(**options))  # type: ignore[arg-type]


def box(*processes: GpuProcess, used: int = GIB // 2) -> Snapshot:
    return Snapshot(pair(), 0.0, (Reading(0, memory_used_bytes=used, processes=processes), Reading(1)))


def held(spec: EngineSpec, seen: Snapshot | None) -> dict[str, bool | None]:
    return {check.what: check.holds for check in five_checks(spec, seen, NEWEST_KNOWN)}


def test_all_five_hold_of_a_plan_that_fits(model: Path) -> None:
    assert held(spec(model), box()) == dict.fromkeys(
        ("model path", "tokenizer path", "memory", "max-model-len", "max-num-seqs"), True
    )


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    checks = five_checks(spec(tmp_path / "gone"), box(), NEWEST_KNOWN)
    assert [check.holds for check in checks] == [False, False, None, None, None]
    assert f"{tmp_path / 'gone'} is not there" in checks[0].found


def test_a_tokenizer_that_is_not_there(model: Path, tmp_path: Path) -> None:
    (model / "tokenizer.json").unlink()
    assert held(spec(model), box())["tokenizer path"] is False
    assert held(spec(model, extra=("--tokenizer", str(tmp_path / "none"))), box())["tokenizer path"] is False
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "tokenizer.model").write_text("")
    assert held(spec(model, extra=("--tokenizer", str(tmp_path / "other"))), box())["tokenizer path"] is True


def test_memory_that_others_hold_is_told_and_its_own_is_not(model: Path) -> None:
    other = GpuProcess(7, "python", memory_bytes=30 * GIB)
    own = replace(other, engine="chat")
    assert held(spec(model), box(other, used=30 * GIB))["memory"] is False
    assert held(spec(model), box(own, used=30 * GIB))["memory"] is True


def test_a_length_beyond_the_models_own(model: Path) -> None:
    checks = {check.what: check for check in five_checks(spec(model, max_model_len=999_999), box(), NEWEST_KNOWN)}
    assert checks["max-model-len"].holds is False
    assert "131" in checks["max-model-len"].found


def test_more_sequences_than_tokens_a_step(model: Path) -> None:
    assert held(spec(model, max_num_seqs=512, max_num_batched_tokens=256), box())["max-num-seqs"] is False


def test_where_the_cards_can_not_be_read_what_they_decide_is_not_known(model: Path) -> None:
    told = held(spec(model, max_model_len=4096), None)
    assert told == {
        "model path": True,
        "tokenizer path": True,
        "memory": None,
        "max-model-len": None,
        "max-num-seqs": None,
    }


def test_a_check_in_words(model: Path) -> None:
    first = five_checks(spec(model), box(), NEWEST_KNOWN)[0]
    assert check_words(first) == f"holds: model path. {model} is there and can be read."
