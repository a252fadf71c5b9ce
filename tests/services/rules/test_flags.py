"""Options and variables that a version of vLLM does not take."""

import pytest

from gpudeck.services.plan.changes import apply
from gpudeck.services.plan.findings import Finding
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.rules.flags import GONE, GONE_VARIABLES
from gpudeck.services.rules.judge import judge
from gpudeck.services.rules.surroundings import Surroundings
from tests.services.rules.plans import MIXED, model, spec


def findings(engine: EngineSpec, version: str = "0.33") -> dict[str, Finding]:
    judgement = judge(MIXED, model("llama-3.2-1b"), engine, around=Surroundings(vllm_version=version))
    return {finding.rule: finding for finding in judgement.findings}


@pytest.mark.parametrize("option", [entry.option for entry in GONE])
def test_every_removed_option_is_refused_by_the_newest_and_taken_out_by_its_change(option: str) -> None:
    engine = spec((1,), extra=("--seed", "7", option, "x", "--enable-lora"))
    found = findings(engine)["option-removed"]
    assert option in found.message
    assert found.change is not None
    mended = apply(found.change, engine)
    assert mended.options.extra == ("--seed", "7", "--enable-lora")
    assert "option-removed" not in findings(mended)


@pytest.mark.parametrize(
    ("option", "version", "rule"),
    [
        ("--swap-space", "0.17.1", "option-deprecated"),
        ("--swap-space", "0.18.0", "option-removed"),
        ("--log-config-file", "0.32.0", "option-deprecated"),
        ("--log-config-file", "0.33.0", "option-removed"),
        ("--swap_space", "0.32", "option-removed"),
    ],
)
def test_the_version_decides(option: str, version: str, rule: str) -> None:
    found = findings(spec((1,), extra=(option, "4")), version)
    assert {name for name in found if name.startswith("option-")} == {rule}
    assert found[rule].severity.value == ("error" if rule == "option-removed" else "warning")


@pytest.mark.parametrize(
    ("extra", "mended"),
    [
        (("--compilation-config", "3"), ("-O3",)),
        (("--limit-mm-per-prompt", "image=2"), ("--limit-mm-per-prompt", '{"image": 2}')),
    ],
)
def test_values_of_another_form_are_rewritten(extra: tuple[str, ...], mended: tuple[str, ...]) -> None:
    engine = spec((1,), extra=extra)
    found = findings(engine)["option-form"]
    assert found.change is not None
    assert apply(found.change, engine).options.extra == mended
    assert "option-form" not in findings(spec((1,), extra=mended))


@pytest.mark.parametrize("name", sorted(GONE_VARIABLES))
def test_variables_without_effect_are_told_and_taken_out(name: str) -> None:
    engine = spec((1,), environment=((name, "1"), ("HF_HOME", "/models")))
    found = findings(engine)["environment-gone"]
    assert found.change is not None
    assert apply(found.change, engine).environment == (("HF_HOME", "/models"),)
