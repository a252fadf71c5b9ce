"""The Hugging Face cache on this machine: hub ids and the snapshots that lie there."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from gpudeck.services.models.fields import ModelError, read_regular, shown

# owner/name or name: what huggingface_hub accepts as a repository's id.
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?\Z", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{6,64}\Z")
_FOLDER = "models--"


def is_hub_id(text: str) -> bool:
    return _ID.match(text) is not None and "--" not in text and ".." not in text


def cache_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Where huggingface_hub keeps models: HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environment.get(variable):
            return Path(environment[variable]).expanduser()
    if environment.get("HF_HOME"):
        return Path(environment["HF_HOME"]).expanduser() / "hub"
    cache = environment.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "huggingface" / "hub"


def snapshot(hub_id: str, root: Path) -> Path | None:
    """The snapshot that refs/main names; None where the model is not in the cache.

    Raises ModelError for a cache entry that names no snapshot, or one that is not there.
    """
    folder = root / (_FOLDER + hub_id.replace("/", "--"))
    if not folder.is_dir():
        return None
    reference = folder / "refs" / "main"
    commit = read_regular(reference, 4096).decode("ascii", "replace").strip()
    if not _COMMIT.match(commit):
        raise ModelError(f"{shown(reference)} names no commit: download {hub_id} again.")
    found = folder / "snapshots" / commit
    if not found.is_dir():
        raise ModelError(f"{shown(found)} is not there: download {hub_id} again.")
    return found


def hub_id_of(folder: Path) -> str | None:
    """The hub id that a folder of the cache stands for; None for other folders."""
    if not folder.name.startswith(_FOLDER):
        return None
    hub_id = folder.name.removeprefix(_FOLDER).replace("--", "/", 1)
    return hub_id if is_hub_id(hub_id) else None
