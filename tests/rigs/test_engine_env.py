"""The builder of the engine's environment, as far as it goes without building one; the engine tests do the rest."""

import os
import subprocess
from pathlib import Path

BUILDER = Path(__file__).with_name("engine_env")


def build(folder: Path) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"GPUDECK_ENGINE_ENV": str(folder)}
    return subprocess.run([BUILDER], env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    precious = tmp_path / "mine" / "precious"
    precious.parent.mkdir()
    precious.write_text("kept")
    done = build(precious.parent)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        f"engine_env: {precious.parent} holds other files than an engine's: name another in GPUDECK_ENGINE_ENV\n"
    )
    assert list(precious.parent.iterdir()) == [precious]
    assert precious.read_text() == "kept"


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = build(tmp_path / "file" / "engine")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"{tmp_path / 'file' / 'engine'} cannot be written" in done.stderr
    assert "GPUDECK_ENGINE_ENV" in done.stderr
