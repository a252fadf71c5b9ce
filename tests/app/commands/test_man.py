"""The manual page: what is on it, that groff warns of nothing, and that `man` finds it where it is installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpudeck.app.cli import COMMANDS
from tests.rigs.as_command import Gpudeck
from tests.rigs.terminal import Terminal

CHECKOUT = Path(__file__).parents[3]
PAGE = CHECKOUT / "docs" / "gpudeck.1"
needs_man = pytest.mark.skipif(not (shutil.which("man") and shutil.which("groff")), reason="no man or no groff here")


def read(words: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """`man` as it prints into a pipe: plain text, 80 columns."""
    variables = {**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8", "MANROFFOPT": "-ww", **environment}
    return subprocess.run(["man", *words], capture_output=True, text=True, env=variables, check=False, timeout=60)


def test_the_page_that_is_shipped_is_the_parsers(gpudeck: Gpudeck, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)  # a folder in it stands on the page
    done = gpudeck("man")
    assert (done.code, done.err) == (0, "")
    assert PAGE.read_text(encoding="utf-8") == done.out, "gpudeck man > docs/gpudeck.1 makes it anew"


@needs_man
def test_groff_shows_every_command_and_warns_of_nothing() -> None:
    done = read(["--warnings=w", "-l", str(PAGE)])
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    for command in COMMANDS:
        assert any(line.startswith(f"       gpudeck {command} [OPTIONS]") for line in lines), command
    for title in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "EXIT STATUS", "ENVIRONMENT", "FILES"):
        assert title in lines
    # A sign of the command line stays that sign, so that it can be pasted.
    assert "gpudeck install /models/qwen3-8b --stage 0,1 --name chat" in done.stdout
    assert "~/.local/state/gpudeck" in done.stdout


@needs_man
def test_man_finds_the_page_beside_the_installed_command(tmp_path: Path) -> None:
    """The wheel as pip makes and installs it into an environment of its own."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns(
        ".git", ".venv", "tests", "screenshots", "__pycache__", "*.egg-info", "build", ".*_cache"
    )
    shutil.copytree(CHECKOUT, source, symlinks=True, ignore=ignored)
    built = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(built, check=True, timeout=100, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    prefix = tmp_path / "prefix"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True, timeout=60)
    subprocess.run(
        [*pip, "--python", str(prefix / "bin" / "python"), "install", "--no-deps", "--no-index", str(wheel)],
        check=True,
        timeout=60,
        capture_output=True,
    )
    where = read(["-w", "gpudeck"], PATH=f"{prefix / 'bin'}:{os.environ['PATH']}", MANPATH="")
    assert where.stdout.strip() == str(prefix / "share" / "man" / "man1" / "gpudeck.1"), where.stderr


@needs_man
@pytest.mark.terminal
def test_on_a_terminal_it_is_read_at_once() -> None:
    with Terminal([sys.executable, "-m", "gpudeck.app", "man"], columns=100, rows=30, env={"PAGER": "cat"}) as terminal:
        assert terminal.wait_end(30) == 0
        terminal.settle()
        assert "SEE ALSO" in terminal.text()
        assert ".TH" not in terminal.text()
