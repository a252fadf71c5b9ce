"""Reading a model: a directory, a .gguf file, or a hub id that lies in the local cache."""

import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from gpudeck.services.models.checkpoint import lay_out, total_bytes
from gpudeck.services.models.config import ConfigFacts, facts_from_config, short_name
from gpudeck.services.models.families import FAMILIES
from gpudeck.services.models.fields import Fields, ModelError, read_json_object, shown
from gpudeck.services.models.gguf_model import facts_from_gguf
from gpudeck.services.models.gguf_parts import first_part
from gpudeck.services.models.hub_cache import cache_root, is_hub_id, snapshot
from gpudeck.services.models.safetensors import MAX_FILES, all_parts, read_tensors, weight_files
from gpudeck.services.models.types import LayerWeights, ModelFacts, WeightLayout, Weights
from gpudeck.services.text import printable

MAX_CONFIG = 4 << 20


def read_model(path: str, environment: Mapping[str, str] = os.environ) -> ModelFacts:
    """The facts of the model that vLLM would be given as `path`; reads headers, never the weights' contents.

    A local path is made absolute, since the engine starts in another directory; a hub id stays one.
    Raises ModelError (an OperatorError) with a sentence that names the file and the field.
    """
    if not path or path.startswith("-") or printable(path) != path:
        raise ModelError(f"{shown(repr(path[:80]))} is no model: give a directory, a .gguf file or a hub id.")
    local = _expanded(path)
    try:
        if local.is_dir():
            return read_directory(local.absolute())
        if local.exists():
            return _read_file(local.absolute())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no path"
        raise ModelError(f"{shown(path)} can not be read ({reason}): check the path and its rights.") from None
    if is_hub_id(path):
        root = cache_root(environment)
        found = snapshot(path, root)
        if found is not None:
            facts = read_directory(found)
            return replace(facts, name=path.rsplit("/", 1)[-1], path=path)
        raise ModelError(
            f"{path} is neither here nor in the Hugging Face cache {shown(root)}: download it first, for instance with "
            f"`hf download {path}`."
        )
    raise ModelError(f"{shown(path)} is not there: give a model directory, a .gguf file or a hub id.")


def read_directory(directory: Path) -> ModelFacts:
    """The facts of an existing model directory: config.json, and the weights' headers where there are any."""
    config_path = directory / "config.json"
    if not os.path.lexists(config_path):
        way_out = "give the one that holds it"
        if gguf := next(directory.glob("*.gguf"), None):
            way_out = f"give the .gguf file itself, {shown(first_part(gguf))}"
        raise ModelError(f"{shown(directory)} has no config.json, so it is no model directory: {way_out}.")
    config = Fields(read_json_object(config_path, MAX_CONFIG), shown(config_path))
    read = facts_from_config(config, short_name(str(directory)), str(directory))
    files = weight_files(directory)
    if files:
        return _with_tensors(read, files)
    total = _pickled_bytes(directory)
    return read.facts if total is None else _scaled(read, total)


def _read_file(path: Path) -> ModelFacts:
    if path.suffix.lower() == ".gguf":
        return facts_from_gguf(path)
    raise ModelError(f"{shown(path)} is a file, but no .gguf file: give the directory that holds config.json.")


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except (RuntimeError, ValueError):
        return Path(path)


def _with_tensors(read: ConfigFacts, files: tuple[Path, ...]) -> ModelFacts:
    layout = lay_out(read_tensors(files), read.shape)
    _check_whole(read, layout, files[0].parent)
    return replace(read.facts, weights=layout, weight_bytes=total_bytes(layout, 2))


def _check_whole(read: ConfigFacts, layout: WeightLayout, directory: Path) -> None:
    """Raise ModelError where the files lack what config.json tells of: too few weights would be judged as fitting.

    Only for families whose tensors' names are known.
    """
    if read.facts.model_type not in FAMILIES:
        return
    there = [layer != LayerWeights() for layer in layout.layers]
    if not all(there):
        where = f"of layer {there.index(False)} of {len(there)}" if any(there) else "of any layer"
        raise ModelError(
            f"{shown(directory)}: the weight files hold no tensor {where} (num_hidden_layers in config.json): download "
            "the model again."
        )


def _pickled_bytes(directory: Path) -> int | None:
    """The size of PyTorch's own weight files (older checkpoints); None without any."""
    files = tuple(islice(directory.glob("pytorch_model*.bin"), MAX_FILES))
    all_parts(files)
    total = 0
    for path in files:
        try:
            status = path.stat()
        except OSError as error:
            raise ModelError(f"{shown(path)} can not be read ({error.strerror}): download the model again.") from None
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
            raise ModelError(f"{shown(path)} is empty or no regular file: put the model's own file there.")
        total += status.st_size
    return total if files else None


def _scaled(read: ConfigFacts, total: int) -> ModelFacts:
    """The architecture's layout, sized so that it adds up to what the files hold.

    Their elements' type is not known without unpickling; it is taken to be the config's.
    """
    facts, layout = read.facts, read.facts.weights
    if layout is None:
        return replace(facts, weight_bytes=total)
    if facts.dtype == "float32" and facts.quantization is None:
        total //= 2  # vLLM loads float32 checkpoints in a 16-bit type
    scale = total / max(total_bytes(layout, 2), 1)
    return replace(facts, weight_bytes=total, weights=_times(layout, scale))


def _times(layout: WeightLayout, scale: float) -> WeightLayout:
    def times(weights: Weights) -> Weights:
        return Weights(int(weights.elements * scale), int(weights.packed * scale))

    layers = tuple(LayerWeights(times(layer.split), times(layer.kv), times(layer.whole)) for layer in layout.layers)
    return WeightLayout(
        layers, times(layout.embedding), times(layout.lm_head), times(layout.first_whole), times(layout.last_whole)
    )
