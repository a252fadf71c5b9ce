"""Unit files as systemd reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.adoption import syntax


def test_continuations_comments_and_sections() -> None:
    unit = "[Unit]\nExecStart=no\n[Install]\nExecStart=no\n[Service]\nUser = llm \n; gone\n"
    found = syntax.service_section([unit + "ExecStart=/bin/a \\\n# between\n  --b c \\\n  d\n"])
    assert found["User"] == ["llm"]
    assert [value.split() for value in found["ExecStart"]] == [["/bin/a", "--b", "c", "d"]]


def test_a_drop_in_clears_a_list_and_adds_to_it() -> None:
    found = syntax.service_section(
        ["[Service]\nExecStart=/bin/a\nEnvironment=A=1\n", "[Service]\nExecStart=\nExecStart=/bin/b\nEnvironment=B=2\n"]
    )
    assert found["ExecStart"] == ["/bin/b"]
    assert found["Environment"] == ["A=1", "B=2"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("a  b\tc", ["a", "b", "c"]),
        ("\"a b\" 'c d'", ["a b", "c d"]),
        (r'"a \"b\"" c\x20d e\\f', ['a "b"', "c d", "e\\f"]),
        ("'\"device=0,1\"'", ['"device=0,1"']),
        ('a="b c"', ['a="b', 'c"']),
        ("''", [""]),
        ("", []),
        ("unclosed 'quote here", ["unclosed", "quote here"]),
    ],
)
def test_words(value: str, words: list[str]) -> None:
    assert syntax.words(value) == words


def test_specifiers_of_an_instance() -> None:
    assert syntax.specified("%i %p %n %N 100%% %h", "vllm@coder-a.service") == (
        "coder-a vllm vllm@coder-a.service vllm@coder-a 100% %h"
    )
    assert syntax.specified("/m/%I", r"vllm@a-b\x2dc.service") == "/m/a/b-c"


def test_variables_in_a_command() -> None:
    variables = {"MODEL": "/m/a b", "MORE": "--x 1 --y"}
    value = "-/bin/v ${MODEL} $MORE $$HOME pre${MODEL} $NONE"
    assert syntax.command_words(value, "v.service", variables) == [
        "/bin/v", "/m/a b", "--x", "1", "--y", "$HOME", "pre/m/a b",
    ]  # fmt: skip
    assert syntax.command_words(":/bin/v ${MODEL}", "v.service", variables) == ["/bin/v", "${MODEL}"]
    assert syntax.command_words("@/bin/v called x", "v.service", variables) == ["/bin/v", "x"]


def test_an_environment_file() -> None:
    text = "# key\nA=1\nexport B='two words'\nC=\"x\"\n\n; no\nD=a \\\n b\n1X=no\nE\n"
    assert syntax.environment_file(text) == {"A": "1", "B": "two words", "C": "x", "D": "a  b"}


@given(st.text(max_size=200))
def test_any_text_is_survived(text: str) -> None:
    syntax.service_section(["[Service]\n" + text])
    syntax.command_words(text, "a@b.service", {})
    syntax.environment_file(text)
