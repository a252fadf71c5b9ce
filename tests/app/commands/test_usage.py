"""What --help shows, and what a shell completes."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gpudeck.app.cli import COMMANDS, GROUPS
from tests.rigs.as_command import Gpudeck
from tests.rigs.terminal import Terminal


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


# What is typed, and what is offered for its last word.
COMPLETED = [
    (("st",), {"start", "status", "stop"}),
    (("start", ""), {"llama", "qwen"}),
    (("start", "q"), {"qwen"}),
    (("--demo", "stop", ""), {"demo-one"}),
    (("stop", "--demo", ""), {"demo-one"}),
    (("completions", ""), {"bash", "zsh", "fish"}),
    (("plan", "--kv"), {"--kv-cache-dtype"}),
]


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """A folder for PATH with a gpudeck that only tells the names of engines, since there are none here."""
    program = tmp_path / "bin" / "gpudeck"
    program.parent.mkdir()
    program.write_text(STAND_IN)
    program.chmod(0o755)
    return program.parent


@pytest.mark.parametrize(("words", "offered"), COMPLETED)
def test_bash_completes(gpudeck: Gpudeck, bin_folder: Path, words: tuple[str, ...], offered: set[str]) -> None:
    script = bin_folder.parent / "gpudeck.bash"
    script.write_text(gpudeck("completions", "bash").out)
    ask = (
        f'PATH={bin_folder}:$PATH; source {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_gpudeck; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", ask, "bash", "gpudeck", *words], capture_output=True, text=True, timeout=30, check=False
    )
    assert set(done.stdout.split()) == offered, done.stderr


@pytest.mark.skipif(not shutil.which("fish"), reason="no fish here")
@pytest.mark.parametrize(("words", "offered"), COMPLETED)
def test_fish_completes(gpudeck: Gpudeck, bin_folder: Path, words: tuple[str, ...], offered: set[str]) -> None:
    script = bin_folder.parent / "gpudeck.fish"
    script.write_text(gpudeck("completions", "fish").out)
    ask = f"set -p PATH {bin_folder}; source {script}; complete -C '{' '.join(('gpudeck', *words))}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", ask],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={**os.environ, "HOME": str(bin_folder.parent)},
    )
    assert {line.split("\t")[0] for line in done.stdout.splitlines() if line} == offered, done.stderr


@pytest.mark.terminal
@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh here")
@pytest.mark.parametrize(("words", "offered"), COMPLETED)
def test_zsh_completes(gpudeck: Gpudeck, bin_folder: Path, words: tuple[str, ...], offered: set[str]) -> None:
    """zsh completes only where it is typed at; what it offers stands on the screen."""
    (bin_folder.parent / "_gpudeck").write_text(gpudeck("completions", "zsh").out)
    with Terminal(["zsh", "-f", "-i"], columns=100, rows=30, env={"HOME": str(bin_folder.parent)}) as terminal:
        terminal.send(f"PS1='at''> ' fpath=({bin_folder.parent} $fpath) path=({bin_folder} $path)\r")
        terminal.wait_for("at> ")
        terminal.send("autoload -Uz compinit && compinit -u -D && clear && echo set''tled\r")
        terminal.wait_for("settled")
        terminal.send(" ".join(("gpudeck", *words)) + "\t\t")
        terminal.wait_until(lambda screen: offered <= set(screen.split()), f"{offered} offered")
        offers = set(COMMANDS) | {"llama", "qwen", "demo-one", "bash", "zsh", "fish"}
        typed = {word for word in words if word in offers}
        assert set(terminal.text().split()) & offers == (offered & offers) | typed


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
