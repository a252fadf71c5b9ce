"""Where an engine keeps what is large: the folders whose disks are watched."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpudeck.services.host.types import Keeps
from gpudeck.services.models.hub_cache import cache_root
from gpudeck.services.models.shelf import default_roots


def kept(
    roots: Sequence[Path] | None = None, environment: Mapping[str, str] = os.environ
) -> tuple[tuple[Path, Keeps], ...]:
    """The folders of models (`roots`, or the usual ones) and caches, as this user's engines would use them."""
    models = default_roots(environment) if roots is None else roots
    return (
        (cache_root(environment), Keeps.DOWNLOADS),
        *((folder, Keeps.MODELS) for folder in models),
        (vllm_cache(environment), Keeps.VLLM_CACHE),
    )


def vllm_cache(environment: Mapping[str, str] = os.environ) -> Path:
    """$VLLM_CACHE_ROOT, else ~/.cache/vllm (vllm.envs)."""
    if environment.get("VLLM_CACHE_ROOT"):
        return Path(environment["VLLM_CACHE_ROOT"]).expanduser()
    cache = environment.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "vllm"
