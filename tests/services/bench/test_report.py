"""Results beside each other, and as files."""

import csv
import io
from dataclasses import replace

from gpudeck.services.bench.compare import groups, strengths
from gpudeck.services.bench.report import (
    DIFFERENT,
    LOADS,
    as_csv,
    as_markdown,
    bar,
    comparison_lines,
    names_in,
    result_lines,
)
from gpudeck.services.bench.types import CardUse
from tests.services.bench.results import by_vllm, level, result

TP = result("tp", (1, 2), first=0.08, each=0.012)
PP = result("pp", (1,), (2,), first=0.15, each=0.03)


def test_one_model_and_workload_make_one_group_with_the_newest_of_each_placement() -> None:
    old = result("tp-before", (1, 2), at=10)
    assert [group.results for group in groups([old, PP, TP])] == [(PP, TP)]


def test_other_workloads_models_and_loads_are_never_beside_each_other() -> None:
    longer = replace(TP, workload=replace(TP.workload, input_tokens=4096))
    other = replace(TP, targets=(replace(TP.targets[0], spec=None, model="llama"),))
    assert len(groups([TP, longer, other, by_vllm(TP)])) == 4
    assert comparison_lines([TP, longer])[0] == DIFFERENT
    assert DIFFERENT not in comparison_lines([TP, PP])
    assert comparison_lines([TP, by_vllm(PP)])[:2] == [DIFFERENT, LOADS]
    assert LOADS not in comparison_lines([TP, longer])
    assert DIFFERENT in as_markdown([TP, longer])


def test_what_each_is_good_for() -> None:
    group = groups([TP, PP])[0]
    assert [each.words for each in strengths(group)] == [
        "one request's speed, a quick first token, tokens a second under load, tokens a joule, load within the limits",
        "",
    ]
    frugal = replace(
        PP, levels=tuple(replace(each, cards=tuple(CardUse(gpu, power_w=50.0) for gpu in (1, 2))) for each in PP.levels)
    )
    words = [each.words for each in strengths(groups([TP, frugal])[0])]
    assert words[1] == "tokens a joule"
    assert "another placement is as good" in "\n".join(comparison_lines([TP, PP]))


def test_nothing_is_best_where_all_are_alike_or_alone() -> None:
    assert strengths(groups([TP])[0]) == ()
    twin = result("twin", (0,), first=0.08, each=0.0121)
    assert [each.words for each in strengths(groups([TP, twin])[0])] == ["", ""]


def test_the_comparison_names_cards_and_draws_bars() -> None:
    text = "\n".join(comparison_lines([TP, PP]))
    assert "TP2 on 2 × A100-SXM4-40GB (1,2)" in text
    assert "PP2 on 2 × A100-SXM4-40GB (1,2)" in text
    for title in ("Tokens a second", "First token, p99: less is better", "Tokens a joule"):
        assert title in text
    assert "█" in text
    assert max(map(len, text.splitlines())) <= 160


def test_a_result_in_full() -> None:
    text = "\n".join(result_lines(replace(PP, partial=True)))
    for words in (
        "gemma-3-27b: PP2", "vLLM 0.32.0", "16 at once", "GPU 1 90 % busy, 30.0 GiB, 300 W", "its error",
        "first token 200 ms in the middle, 1.00 s at p99", "No stage waits long", "a note", "It was cancelled",
    ):  # fmt: skip
        assert words in text, words


def test_foreign_text_is_data_in_every_form() -> None:
    target = replace(TP.targets[0], spec=None, model="=cmd|' /C calc'!A0", url="http://a|b`\x1b[2J")
    hostile = replace(TP, targets=(target,), levels=(replace(level(1, first=0.1, each=0.02), errors={"\x1b[2J": 1}),))
    for text in ("\n".join(result_lines(hostile)), "\n".join(comparison_lines([hostile])), as_markdown([hostile])):
        assert "\x1b" not in text
    assert "a\\|b\\`" in as_markdown([hostile])
    rows = list(csv.DictReader(io.StringIO(as_csv([hostile]))))
    assert rows[0]["model"].startswith("'=cmd")
    assert "\x1b" not in as_csv([hostile])


def test_csv_has_plain_units() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv([TP, PP]))))
    assert len(rows) == 4
    assert float(rows[0]["first_token_p50"]) == 0.08
    assert rows[0]["within_limits"] == "true"
    assert float(rows[0]["estimate_error"]) < 0
    assert set(rows[0].values()) != {""}


def test_bars() -> None:
    assert [bar(share, 4) for share in (0, 0.5, 1, 7)] == ["▏", "██", "████", "████"]
    assert [bar(share, 4, plain=True) for share in (0, 0.5, 1)] == ["#", "##", "####"]
    assert "█" not in "\n".join(comparison_lines([TP, PP], plain=True))


def test_other_versions_and_machines_are_named_where_they_differ() -> None:
    newer = replace(TP, targets=(replace(TP.targets[0], vllm_version="0.33.0"),))
    assert names_in(groups([PP, newer])[0]) == [
        "PP2 on 2 × A100-SXM4-40GB (1,2), vLLM 0.32.0",
        "TP2 on 2 × A100-SXM4-40GB (1,2), vLLM 0.33.0",
    ]
    assert names_in(groups([PP, replace(TP, box="other")])[0])[1].endswith("(1,2), other")
    assert names_in(groups([PP, TP])[0])[1].endswith("(1,2)")
