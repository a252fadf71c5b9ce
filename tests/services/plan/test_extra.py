"""Options that gpudeck passes on are found in every spelling that vLLM takes."""

import pytest

from gpudeck.services.plan.extra import extra_value, extra_whole, has_option, options_in, without_options


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        (("--seed", "7"), "7"),
        (("--seed=7",), "7"),
        (("--seed", "1", "--seed", "7"), "7"),
        (("--seed", "-7"), "-7"),
        (("--seed", "--other"), None),
        (("seed", "7"), None),
    ],
)
def test_a_value(extra: tuple[str, ...], expected: str | None) -> None:
    assert extra_value(extra, "--seed") == expected


def test_underscores_name_the_same_option() -> None:
    assert extra_whole(("--block_size", "32"), "--block-size") == 32
    assert list(options_in(("--swap_space=4", "-tp", "2", "--eager"))) == [
        ("--swap-space", "4"), ("-tp", "2"), ("--eager", None),
    ]  # fmt: skip


def test_an_option_goes_with_its_value_and_nothing_else() -> None:
    extra = ("--a", "1", "--drop", "x", "--b", "--drop=y", "--c", "-1", "--drop")
    assert without_options(extra, {"--drop"}) == ("--a", "1", "--b", "--c", "-1")
    assert without_options(("--drop", '{"a": 1}', "z"), {"--drop"}) == ("z",)
    assert has_option(("--no-a", "--a"), "--a")
    assert not has_option(("--a", "--no-a"), "--a")
    assert not has_option(("--no-a", "--a"), "--no-a")
    assert not has_option(without_options(extra, {"--drop"}), "--drop")
