"""The unit's text, held to golden files; what systemd makes of it is tried in tests/systemd/test_unit_round_trip.py."""

import configparser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.engine.quoting import assignment, command, to_end_of_line, word
from gpudeck.services.engine.types import Scope
from gpudeck.services.engine.unit_text import edited, spec_of, unit_lines, unit_text
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.command import argv, environment
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement

GOLDEN = Path(__file__).with_name("units")
SECRETS = "/etc/gpudeck/vllm-x.env"

PLAIN = EngineSpec(
    name="llama-8b",
    model="/models/llama-8b",
    placement=Placement(((0,), (1,), (2,))),
    options=EngineOptions(port=8000, max_model_len=8192),
    layer_partition=(10, 11, 11),
    program=("/opt/vllm/bin/vllm",),
)
AWKWARD = EngineSpec(
    name="a.b_c-d",
    model='/models/größe 100% "q" $HOME \\x; it\'s',
    placement=Placement(((2, 0),)),
    options=EngineOptions(
        served_model_name="naïve; model",
        extra=(
            "--chat-template",
            "{{ a | b }}\\",
            "--override",
            '{"a": 1}',
            "--empty",
            "",
            ";",
            "--shutdown-timeout",
            "90",
        ),
    ),
    program=("/opt/my env$x/bin/vllm",),
    environment=(("HF_HOME", "/data/hf cache/100%"), ("EMPTY", "")),
)


def text(spec: EngineSpec, **more: object) -> str:
    arguments: dict[str, object] = {"argv": argv(spec), "environment": environment(spec), "secrets_file": SECRETS}
    return unit_text(spec, **(arguments | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("golden", "spec", "more"),
    [
        ("plain.service", PLAIN, {}),
        ("plain-257.service", replace(PLAIN, user="vllm", quiet=True), {"systemd_version": 257}),
        ("plain-user.service", replace(PLAIN, user="ignored"), {"scope": Scope.USER}),
        ("awkward.service", AWKWARD, {}),
    ],
)
def test_golden(golden: str, spec: EngineSpec, more: dict[str, object]) -> None:
    assert text(spec, **more) == (GOLDEN / golden).read_text()


@pytest.mark.parametrize("spec", [PLAIN, AWKWARD])
def test_spec_is_read_back(spec: EngineSpec) -> None:
    assert spec_of(text(spec)) == spec


@pytest.mark.parametrize("spec", [PLAIN, AWKWARD])
def test_what_gpudeck_wrote_is_not_edited(spec: EngineSpec) -> None:
    assert not edited(text(spec))


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("--port 8000", "--port 8001"),
        lambda text: f"{text}[Service]\nNice=5\n",
        lambda text: f"{text}# mine\n",
        lambda text: text.replace("Sum=", "Sum=0"),
        lambda text: "".join(line for line in text.splitlines(keepends=True) if not line.startswith("Sum=")),
    ],
)
def test_an_edit_by_hand_is_told(edit: Callable[[str], str]) -> None:
    changed = edit(text(PLAIN))
    assert spec_of(changed) == PLAIN
    assert edited(changed)


def test_a_unit_of_others_is_never_called_edited() -> None:
    assert not edited("[Service]\nExecStart=/bin/sleep 1\n")


@pytest.mark.parametrize(
    "foreign",
    [
        "",
        "[Service]\nExecStart=/bin/true\n",
        "[Service]\nSpec={}\n",
        "[X-Gpudeck]\n",
        "[X-Gpudeck]\nSpec={broken\n",
        "[X-Gpudeck]\nSpec={}\n",
        "\ufeff\0[X-Gpudeck",
    ],
)
def test_foreign_units_have_no_spec(foreign: str) -> None:
    assert spec_of(foreign) is None


def test_every_directive_says_what_it_is_for() -> None:
    lines = unit_lines(PLAIN, argv=argv(PLAIN), environment=environment(PLAIN), secrets_file=SECRETS)
    unexplained = [line.text for line in lines if "=" in line.text and not line.why]
    assert [line.partition("=")[0] for line in unexplained] == ["Description"]


@pytest.mark.parametrize("character", ["\n", "\r", "\0", "\x1b", "\x7f", "\x85", "\ud800", "\ufdd0", "\U0001ffff"])
@pytest.mark.parametrize("place", ["model", "option", "variable"])
def test_what_no_unit_can_carry_is_refused(character: str, place: str) -> None:
    value = f"a{character}b"
    spec = EngineSpec(
        "x",
        value if place == "model" else "/m",
        Placement(((0,),)),
        EngineOptions(extra=("--o", value) if place == "option" else ()),
        program=("/bin/vllm",),
        environment=(("A", value),) if place == "variable" else (),
    )
    with pytest.raises(OperatorError, match=rf"The character U\+{ord(character):04X} in '.*' can not stand in a unit"):
        text(spec)


def test_a_newline_can_not_smuggle_a_directive_in() -> None:
    with pytest.raises(OperatorError):
        text(EngineSpec("x", "/m\nExecStartPre=/bin/evil", Placement(((0,),)), program=("/bin/vllm",)))


@pytest.mark.parametrize("name", ["1A", "A B", "A=B", "", "Ä"])
def test_a_variables_name_is_checked(name: str) -> None:
    with pytest.raises(OperatorError, match="can not be a variable's name"):
        assignment(name, "x")


def test_secrets_are_refused_with_the_way_out() -> None:
    spec = EngineSpec("x", "/m", Placement(((0,),)), program=("/bin/vllm",), environment=(("HF_TOKEN", "hf_secret"),))
    with pytest.raises(OperatorError) as refusal:
        text(spec)
    assert SECRETS in str(refusal.value)
    assert "hf_secret" not in str(refusal.value)
    for extra in (("--api-key", "k1"), ("--api-key=k1",)):
        with pytest.raises(OperatorError) as refusal:
            text(EngineSpec("x", "/m", Placement(((0,),)), EngineOptions(extra=extra), program=("/bin/vllm",)))
        assert "k1" not in str(refusal.value)


def test_a_relative_program_is_refused() -> None:
    with pytest.raises(OperatorError, match="no absolute path"):
        command(("vllm", "serve"))


@pytest.mark.parametrize("character", list("\"'\\"))
def test_a_program_that_systemd_never_runs_is_refused(character: str) -> None:
    with pytest.raises(OperatorError, match="make a symbolic link"):
        command((f"/opt/{character}/vllm", "serve"))


def test_a_line_that_systemd_would_not_read_is_refused() -> None:
    with pytest.raises(OperatorError, match="longer than systemd reads"):
        command(("/bin/vllm", "x" * (1 << 20)))


@pytest.mark.parametrize(
    ("extra", "seconds"), [((), 60), (("--shutdown-timeout", "10"), 60), (("--shutdown-timeout=90",), 120)]
)
def test_a_stop_waits_for_the_drain(extra: tuple[str, ...], seconds: int) -> None:
    spec = EngineSpec("x", "/m", Placement(((0,),)), EngineOptions(extra=extra), program=("/bin/vllm",))
    assert f"\nTimeoutStopSec={seconds}s\n" in text(spec)


@given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Cn"))))
def test_a_word_is_one_line_and_balanced(value: str) -> None:
    written = word(value)
    assert "\n" not in written
    assert written == value or (written[0] == written[-1] == '"' and len(written) >= 2)
    if written != value:
        inner = written[1:-1].replace("\\\\", "").replace('\\"', "")
        assert '"' not in inner
        assert "\\" not in inner
    assert "%" not in written.replace("%%", "")


@given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Cn"))))
def test_an_unquoted_value_never_joins_the_next_line(value: str) -> None:
    assert not to_end_of_line(value).endswith("\\")


def test_sections_are_those_of_a_service() -> None:
    parser = configparser.RawConfigParser(strict=False, delimiters="=", comment_prefixes="#")
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text(PLAIN))
    assert parser.sections() == ["Unit", "Service", "Install", "X-Gpudeck"]
