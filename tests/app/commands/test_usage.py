"""What --help shows, and what a shell completes."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gpudeck.app.cli import COMMANDS, GROUPS
from tests.rigs.as_command import Gpudeck


def test_the_commands_stand_in_groups_below_a_short_usage(gpudeck: Gpudeck, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = gpudeck("--help").out.splitlines()
    assert lines[0] == "usage: gpudeck [OPTIONS] [COMMAND …]"
    assert all(len(line) <= 80 for line in lines)
    for group, commands in GROUPS.items():
        assert f"  {group}:" in lines
        for name, summary in commands.items():
            (line,) = [line for line in lines if line.startswith(f"    {name} ")]
            assert line.index(summary.split()[0], 4 + len(name)) == 17


@pytest.mark.parametrize("words", [(), *((name,) for name in COMMANDS)])
def test_the_demos_box_may_be_left_out(gpudeck: Gpudeck, words: tuple[str, ...]) -> None:
    told = gpudeck(*words, "--help").out
    assert "  --demo[=BOX]  " in told
    assert "--demo BOX" not in told


def test_wrong_usage_names_what_must_be_given_in_two_lines(gpudeck: Gpudeck) -> None:
    done = gpudeck("plan")
    assert done.err == (
        "usage: gpudeck plan [OPTIONS] MODEL\ngpudeck plan: error: the following arguments are required: MODEL\n"
    )


STAND_IN = """#!/bin/sh
[ "$1 $2" = "engines --names" ] || exit 9
case $3 in --demo) echo demo-one ;; *) echo llama; echo qwen ;; esac
"""


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("st",), {"start", "status", "stop"}),
        (("start", ""), {"llama", "qwen"}),
        (("start", "q"), {"qwen"}),
        (("--demo", "stop", ""), {"demo-one"}),
        (("completions", ""), {"bash", "zsh", "fish"}),
        (("plan", "--kv"), {"--kv-cache-dtype"}),
    ],
)
def test_bash_completes(gpudeck: Gpudeck, tmp_path: Path, words: tuple[str, ...], offered: set[str]) -> None:
    """The script in a real bash; only the gpudeck that it asks for names is a stand-in, since there are no engines."""
    script = tmp_path / "gpudeck.bash"
    script.write_text(gpudeck("completions", "bash").out)
    program = tmp_path / "gpudeck"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    ask = (
        f'PATH={tmp_path}:$PATH; source {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_gpudeck; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", ask, "bash", "gpudeck", *words], capture_output=True, text=True, timeout=30, check=False
    )
    assert set(done.stdout.split()) == offered, done.stderr


@pytest.mark.parametrize(("shell", "asks"), [("zsh", "compadd -a found"), ("fish", "function _gpudeck_engines")])
def test_the_other_shells_scripts_are_whole(gpudeck: Gpudeck, tmp_path: Path, shell: str, asks: str) -> None:
    done = gpudeck("completions", shell)
    assert (done.code, done.err) == (0, "")
    assert asks in done.out
    assert all(name in done.out for name in COMMANDS)
    if shutil.which(shell):
        script = tmp_path / "script"
        script.write_text(done.out)
        subprocess.run([shell, "-n", str(script)], check=True)


def test_the_names_of_engines_alone(gpudeck: Gpudeck) -> None:
    assert gpudeck("engines", "--names", "--demo").out == ""


def test_polkit_prints_the_rule_for_a_group(gpudeck: Gpudeck) -> None:
    assert 'subject.isInGroup("gpudeck")' in gpudeck("polkit").out
    told = gpudeck("polkit", "--group", "llmops").out
    assert 'subject.isInGroup("llmops")' in told
    assert "gpudeck polkit --group llmops > /etc/polkit-1/rules.d/50-gpudeck.rules" in told
    assert gpudeck("polkit", "--group", 'x")||("').refused
