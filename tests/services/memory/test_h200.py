"""The memory model against real runs on an H200; `python -m tests.services.memory.h200` prints the table."""

import pytest

from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.rules.judge import judge
from tests.services.memory.h200 import BOX, Case, cases

CASES = cases()
# Failures that no plan can foresee: the port, an unknown flag, missing weights, a signal, a wrong model class.
NOT_THE_PLAN = {"n-port-in-use", "n-unknown-flag", "F-no-weights", "T-term-during-import", "granite-4.0-h-tiny-e"}


def ids(case: Case) -> str:
    return case.id


@pytest.mark.parametrize("case", [case for case in CASES if case.ready and case.tokens], ids=ids)
def test_kv_tokens_within_1_percent(case: Case) -> None:
    assert case.tokens is not None
    assert case.detail().plan.kv_cache_tokens == pytest.approx(case.tokens, rel=0.01)


@pytest.mark.parametrize("case", [case for case in CASES if case.ready and case.tokens], ids=ids)
def test_the_same_where_nobody_tells_the_version(case: Case) -> None:
    told = judge(BOX, case.model, case.spec, used=case.used)
    assert told.memory is not None
    assert told.memory.kv_cache_tokens == pytest.approx(case.tokens, rel=0.01)
    # What a later version would hold is then said, and blocks nothing.
    windows = case.model.sliding_window is not None
    assert windows or not {finding.rule for finding in told.findings} & {"max-model-len-version", "kv-cache-version"}
    assert told.state is case.judgement().state


@pytest.mark.parametrize("case", [case for case in CASES if case.id not in NOT_THE_PLAN], ids=ids)
def test_whether_it_starts(case: Case) -> None:
    blocked = case.judgement().state is VerdictState.BLOCKED
    assert blocked is not case.ready, case.judgement().findings


def test_the_longest_that_fits_is_the_one_that_vllm_names() -> None:
    """vLLM's own words in this run: "the estimated maximum model length is 39856"."""
    case = next(case for case in CASES if case.id == "F-llama-8b-kv-small")
    assert case.detail().longest == pytest.approx(39856, rel=0.005)
