"""Whether a model fits a box now, and at what context."""

from pathlib import Path

from gpudeck.services.box.types import GIB
from gpudeck.services.models.read import read_model
from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.plan.fitting import fit
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from gpudeck.services.rules.surroundings import Surroundings
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


def test_cards_of_other_engines_are_left_out_and_their_ports_are_no_hindrance(tmp_path: Path) -> None:
    make_models(tmp_path)
    box = pair()
    model = read_model(str(tmp_path / "demo-llama-3.1-8b"))
    neighbour = EngineSpec("coder", "/m", Placement(((0,),)), EngineOptions(port=8000))
    found = fit(box, model, {}, Surroundings(neighbours=(neighbour,)))
    assert found.state is not VerdictState.BLOCKED
    assert found.placement.gpus == (1,)
