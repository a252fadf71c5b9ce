"""The models that lie on this machine."""

import os
from pathlib import Path

import pytest

from gpudeck.services.errors import OperatorError
from gpudeck.services.models.hub_cache import cache_root, is_hub_id
from gpudeck.services.models.read import read_model
from gpudeck.services.models.shelf import default_roots, find_models
from tests.services.models.files import gguf_header, write_config

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def cached(root: Path, owner: str, name: str) -> Path:
    folder = root / f"models--{owner}--{name}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(COMMIT)
    return write_config(folder / "snapshots" / COMMIT)


def test_directories_and_gguf_files_are_found_and_broken_ones_say_why(tmp_path: Path) -> None:
    write_config(tmp_path / "zeta")
    write_config(tmp_path / "owner" / "alpha")
    (tmp_path / "zeta" / "model.safetensors").write_bytes(bytes(1000))
    (tmp_path / "gguf").mkdir()
    (tmp_path / "gguf" / "small.gguf").write_bytes(gguf_header([], []))
    (tmp_path / "gguf" / "fake.gguf").write_bytes(b"not one")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{")
    (tmp_path / "empty").mkdir()
    found = {entry.name: entry for entry in find_models([tmp_path])}
    assert list(found) == ["alpha", "broken", "fake", "small", "zeta"]
    assert (found["zeta"].origin, found["zeta"].size_bytes, found["zeta"].problem) == ("directory", 1000, None)
    assert found["alpha"].path == str(tmp_path / "owner" / "alpha")
    assert found["small"].origin == "gguf"
    assert "no valid JSON" in (found["broken"].problem or "")
    assert "does not begin with GGUF" in (found["fake"].problem or "")


def test_a_shelf_that_is_not_there_or_a_circle_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.gguf")
    assert find_models([tmp_path / "absent", tmp_path]) == ()


def test_the_search_goes_only_so_deep(tmp_path: Path) -> None:
    write_config(tmp_path / "a" / "b" / "c")
    write_config(tmp_path / "a" / "b" / "d" / "e" / "f")
    assert [entry.name for entry in find_models([tmp_path])] == ["c"]


def test_the_hub_cache_is_on_the_shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / "hf" / "hub"
    cached(root, "meta-llama", "Llama-Tiny")
    (root / "models--gone--model" / "refs").mkdir(parents=True)
    (root / "models--gone--model" / "refs" / "main").write_text(COMMIT)
    (root / "datasets--a--b").mkdir()
    environment = {"HF_HOME": str(tmp_path / "hf")}
    entries = {entry.path: entry for entry in find_models(environment=environment) if entry.origin == "hub cache"}
    assert set(entries) == {"meta-llama/Llama-Tiny", "gone/model"}
    assert entries["meta-llama/Llama-Tiny"].problem is None
    assert "is not there" in (entries["gone/model"].problem or "")


def test_a_cached_hub_id_is_read_and_stays_one(tmp_path: Path) -> None:
    environment = {"HF_HUB_CACHE": str(tmp_path)}
    cached(tmp_path, "meta-llama", "Llama-Tiny")
    read = read_model("meta-llama/Llama-Tiny", environment)
    assert (read.path, read.name, read.layers) == ("meta-llama/Llama-Tiny", "Llama-Tiny", 2)
    with pytest.raises(OperatorError, match="hf download meta-llama/Other"):
        read_model("meta-llama/Other", environment)
    (tmp_path / "models--meta-llama--Llama-Tiny" / "refs" / "main").write_text("../../../etc")
    with pytest.raises(OperatorError, match="names no commit"):
        read_model("meta-llama/Llama-Tiny", environment)


@pytest.mark.parametrize(
    ("text", "is_id"),
    [
        ("gpt2", True),
        ("a/b", True),
        ("a/b/c", False),
        ("../a", False),
        ("a--b/c", False),
        ("a b", False),
        ("/a", False),
    ],
)
def test_hub_ids(text: str, is_id: bool) -> None:
    assert is_hub_id(text) is is_id


def test_where_models_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    roots = default_roots({"GPUDECK_MODELS": f"/one{os.pathsep}/two"})
    assert roots[:2] == (Path("/one"), Path("/two"))
    assert tmp_path / "models" in roots
    assert cache_root({}) == tmp_path / ".cache" / "huggingface" / "hub"
    assert cache_root({"XDG_CACHE_HOME": "/cache"}) == Path("/cache/huggingface/hub")


def test_the_parts_of_a_split_model_are_one(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"big-0000{number}-of-00003.gguf").write_bytes(gguf_header([], []))
    (found,) = find_models([tmp_path])
    assert (found.name, found.path) == ("big", str(tmp_path / "big-00001-of-00003.gguf"))
    assert found.size_bytes == 3 * len(gguf_header([], []))
