"""Whether a model fits a box now, and at what context."""

from pathlib import Path

from gpudeck.services.box.types import GIB
from gpudeck.services.models.read import read_model
from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.plan.fitting import fit
from gpudeck.services.simulator.models import make_models
from tests.services.box.boxes import pair


def test_a_small_model_fits_and_a_large_one_says_why_not(tmp_path: Path) -> None:
    make_models(tmp_path)
    box = pair()
    model = read_model(str(tmp_path / "demo-llama-3.1-8b"))
    empty = fit(box, model, {})
    assert empty.state is not VerdictState.BLOCKED
    assert empty.placement.gpus
    assert 8192 < empty.context <= 131072
    full = fit(box, model, {gpu.index: gpu.memory_bytes - GIB for gpu in box.gpus})
    assert full.state is VerdictState.BLOCKED
    assert not full.placement.gpus
    assert full.why
