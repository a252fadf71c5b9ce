"""Downloads that are not whole in the Hugging Face cache: what is missing is named, with the way out."""

import json
import os
import struct
from pathlib import Path

import pytest

from gpudeck.services.errors import OperatorError
from gpudeck.services.models.read import read_model
from tests.services.models.files import tiny_tensors, write_config, write_safetensors

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cached(tmp_path: Path) -> Path:
    """The snapshot's folder of owner/tiny, as huggingface_hub lays it out."""
    folder = tmp_path / "models--owner--tiny"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(COMMIT)
    (folder / "blobs").mkdir()
    return write_config(folder / "snapshots" / COMMIT)


def read(cached: Path) -> object:
    return read_model("owner/tiny", {"HF_HUB_CACHE": str(cached.parents[2])})


def refused(cached: Path) -> str:
    with pytest.raises(OperatorError) as caught:
        read(cached)
    return str(caught.value)


def test_weights_are_read_through_the_links_of_the_cache(cached: Path) -> None:
    blob = cached.parents[1] / "blobs" / "abc"
    write_safetensors(blob, tiny_tensors())
    (cached / "model.safetensors").symlink_to(blob)
    assert read(cached)


def test_a_blob_that_is_gone(cached: Path) -> None:
    (cached / "model.safetensors").symlink_to(cached.parents[1] / "blobs" / "gone")
    assert "model.safetensors can not be read" in refused(cached)
    (cached / "model.safetensors").rename(cached / "pytorch_model.bin")
    assert "pytorch_model.bin can not be read" in refused(cached)


def test_a_download_that_was_broken_off(cached: Path) -> None:
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (cached / "model.safetensors.index.json").write_text(json.dumps(index))
    (cached / "model-00001-of-00002.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}")
    assert "model-00002-of-00002.safetensors is named by" in refused(cached)
    (cached / "config.json").unlink()
    assert "has no config.json" in refused(cached)


def test_references_that_lead_nowhere(cached: Path) -> None:
    reference = cached.parents[1] / "refs" / "main"
    for text in ("", "../../../etc", "f" * 40, "\x1b[2J"):
        reference.write_text(text)
        assert "download owner/tiny again" in refused(cached)
    reference.unlink()
    assert "main is not there" in refused(cached)
    os.mkfifo(reference)
    assert "no regular file" in refused(cached)
    reference.unlink()
    reference.symlink_to(reference)
    assert "main can not be read" in refused(cached)


def test_a_folder_of_gguf_files_says_to_name_one(tmp_path: Path) -> None:
    (tmp_path / "big-00002-of-00002.gguf").write_bytes(b"GGUF")
    with pytest.raises(OperatorError, match=r"give the \.gguf file itself, .*big-00001-of-00002\.gguf"):
        read_model(str(tmp_path))
