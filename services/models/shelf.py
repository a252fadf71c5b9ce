"""The shelf: every model that lies on this machine where models usually lie."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from gpudeck.services.errors import OperatorError
from gpudeck.services.models.fields import Fields, ModelError, read_json_object, shown
from gpudeck.services.models.gguf_parts import first_part, model_stem, part_paths
from gpudeck.services.models.hub_cache import cache_root, hub_id_of, snapshot
from gpudeck.services.models.read import MAX_CONFIG
from gpudeck.services.models.types import ShelfEntry

MAX_DEPTH = 3  # models/<owner>/<name>/, and one more for those who sort them
MAX_ENTRIES = 1000
MAX_FOLDERS = 5000  # a root that is by mistake a whole disk must not be walked to its end


def default_roots(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The folders that are searched: those of $GPUDECK_MODELS, the usual ones, and models/ here."""
    named = environment.get("GPUDECK_MODELS", "").split(os.pathsep)
    usual = (Path.home() / "models", Path("/models"), Path("/srv/models"), Path.cwd() / "models")
    return tuple(dict.fromkeys((*(Path(name).expanduser() for name in named if name), *usual)))


def find_models(
    roots: Sequence[Path] | None = None, environment: Mapping[str, str] = os.environ
) -> tuple[ShelfEntry, ...]:
    """The models under these folders (None: the default ones and the Hugging Face cache), by name.

    A model directory is one with a config.json.  Folders that can not be read are passed over, a broken model is
    listed with its problem.  Blocks on the disk: at most some thousand folders are looked at.
    """
    searched = default_roots(environment) if roots is None else tuple(roots)
    found: dict[str, ShelfEntry] = {}
    budget = [MAX_FOLDERS]
    for root in searched:
        for entry in islice(_under(root.expanduser().absolute(), MAX_DEPTH, budget), MAX_ENTRIES):
            found.setdefault(entry.path, entry)
    if roots is None:
        for entry in islice(_cached(cache_root(environment)), MAX_ENTRIES):
            found.setdefault(entry.path, entry)
    return tuple(sorted(found.values(), key=lambda entry: (entry.name.lower(), entry.path)))[:MAX_ENTRIES]


def _under(folder: Path, depth: int, budget: list[int]) -> Iterator[ShelfEntry]:
    if budget[0] <= 0:
        return
    budget[0] -= 1
    try:
        with os.scandir(folder) as scan:
            children = sorted(islice(scan, MAX_FOLDERS), key=lambda child: child.name)
    except OSError:
        return
    if any(child.name == "config.json" for child in children):
        yield _directory_entry(folder, children)
        return
    for child in children:
        if child.name.endswith(".gguf"):
            path = Path(child.path)
            if _is_file(child) and first_part(path) == path:
                yield _gguf_entry(path)
        elif depth > 0 and not child.name.startswith(".") and _is_folder(child):
            yield from _under(Path(child.path), depth - 1, budget)


def _directory_entry(folder: Path, children: list["os.DirEntry[str]"]) -> ShelfEntry:
    size = sum(_size(child) for child in children if child.name.endswith((".safetensors", ".bin", ".gguf", ".pt")))
    return ShelfEntry(folder.name or str(folder), str(folder), "directory", size or None, _config_problem(folder))


def _config_problem(folder: Path) -> str | None:
    try:
        path = folder / "config.json"
        config = Fields(read_json_object(path, MAX_CONFIG), shown(path))
        if not config.texts("architectures", 16) and not config.text("model_type"):
            return f"{shown(path)} names no architecture, so vLLM can not tell what to load."
    except OperatorError as error:
        return str(error)
    return None


def _gguf_entry(path: Path) -> ShelfEntry:
    problem = None
    size = None
    try:
        size = sum(part.stat().st_size for part in part_paths(path) if part == path or part.exists())
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                problem = f"{shown(path)} does not begin with GGUF: it is no .gguf file, or a broken one."
    except ModelError as error:
        problem = str(error)
    except OSError as error:
        problem = f"{shown(path)} can not be read ({error.strerror}): check its rights."
    return ShelfEntry(model_stem(path), str(path), "gguf", size, problem)


def _cached(root: Path) -> Iterator[ShelfEntry]:
    try:
        with os.scandir(root) as scan:
            folders = sorted(islice(scan, MAX_FOLDERS), key=lambda child: child.name)
    except OSError:
        return
    for folder in folders:
        hub_id = hub_id_of(Path(folder.path))
        if hub_id is None or not _is_folder(folder):
            continue
        name = hub_id.rsplit("/", 1)[-1]
        try:
            found = snapshot(hub_id, root)
            if found is None:
                continue
            with os.scandir(found) as scan:
                children = list(islice(scan, MAX_FOLDERS))
        except OperatorError as error:
            yield ShelfEntry(name, hub_id, "hub cache", problem=str(error))
            continue
        except OSError:
            continue
        if any(child.name == "config.json" for child in children):
            entry = _directory_entry(found, children)
            yield ShelfEntry(name, hub_id, "hub cache", entry.size_bytes, entry.problem)


def _is_folder(child: "os.DirEntry[str]") -> bool:
    try:
        return child.is_dir()
    except OSError:
        return False


def _is_file(child: "os.DirEntry[str]") -> bool:
    try:
        return stat.S_ISREG(child.stat().st_mode)
    except OSError:
        return False


def _size(child: "os.DirEntry[str]") -> int:
    try:
        return child.stat().st_size
    except OSError:
        return 0
