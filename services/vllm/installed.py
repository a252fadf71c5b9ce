"""The vLLM that is installed: its Python, its version and its CUDA, read from files without running any of it."""

import re
import shutil
from collections.abc import Iterator, Sequence
from importlib.metadata import DistributionFinder, MetadataPathFinder
from pathlib import Path

from gpudeck.services.vllm.answer import Installed

# Scripts of pip, pipx and uv, and wrappers that people write, are some lines long; a binary is none of them.
_MAX_SCRIPT = 1 << 16
_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?\Z")
_WORD = re.compile(r"""[^\s"'=;()]+""")
_CUDA = re.compile(r"^cuda\b[^=]*=\s*['\"]([\d.]+)['\"]", re.MULTILINE)


def installed(program: Sequence[str]) -> Installed | None:
    """What `program` (the words before `serve`) would run; None where its Python can not be told.

    Reads a script and some metadata: a millisecond, and no import of vLLM or torch.
    """
    python = engine_python(program)
    if python is None:
        return None
    places = tuple(_site_packages(python))
    return Installed(python, _version(places), _torch_cuda(places))


def file_of(program: Sequence[str], path: str) -> Path | None:
    """A file of the packages that `program` would run with ("vllm/benchmarks/serve.py"); None where it has none."""
    python = engine_python(program)
    found = (place / path for place in _site_packages(python)) if python is not None else ()
    return next((file for file in found if file.is_file()), None)


def engine_python(program: Sequence[str]) -> Path | None:
    """The Python that the program runs in: itself, the one of its first line, or what a shell wrapper calls."""
    if not program:
        return None
    return _python_of(program[0], steps=3)


def _python_of(word: str, steps: int) -> Path | None:
    found = shutil.which(word)
    if found is None or steps < 1:
        return None
    path = Path(found).absolute()
    if _PYTHON.match(path.name):
        return path
    script = _script(path)
    if script is None:
        return None
    first, _, rest = script.partition("\n")
    words = first.removeprefix("#!").split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
    if words and _PYTHON.match(Path(words[0]).name):
        return _python_of(words[0], steps - 1)
    # A shell script: pip's own form for long paths ('''exec' /long/python), or a wrapper that ends in a real vllm.
    for called in _WORD.findall(rest):
        if called.startswith("/") and (_PYTHON.match(Path(called).name) or Path(called).name == "vllm"):
            deeper = _python_of(called, steps - 1)
            if deeper is not None:
                return deeper
    return None


def _script(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            if file.read(2) != b"#!":
                return None
            return "#!" + file.read(_MAX_SCRIPT).decode("utf-8", "replace")
    except OSError:
        return None


def _site_packages(python: Path) -> Iterator[Path]:
    """Where that Python keeps packages.  Its path is not resolved: an environment's python is a link out of it."""
    prefix = python.parent.parent
    for pattern in ("lib/python3*/site-packages", "lib64/python3*/site-packages", "lib/python3*/dist-packages"):
        yield from sorted(prefix.glob(pattern))
    if prefix == Path("/usr"):
        yield from sorted(Path("/usr/local").glob("lib/python3*/dist-packages"))
        yield from sorted(Path.home().glob(".local/lib/python3*/site-packages"))


def _version(places: tuple[Path, ...]) -> str | None:
    context = DistributionFinder.Context(name="vllm", path=[str(place) for place in places])
    for distribution in MetadataPathFinder.find_distributions(context):
        version = distribution.metadata["Version"]
        if version:
            return version.partition("+")[0]
    return None


def _torch_cuda(places: tuple[Path, ...]) -> str | None:
    for place in places:
        try:
            with (place / "torch" / "version.py").open(encoding="utf-8", errors="replace") as file:
                found = _CUDA.search(file.read(_MAX_SCRIPT))
        except OSError:
            continue
        if found is not None:
            return found.group(1)
    return None
