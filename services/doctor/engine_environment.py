"""The Python environment that vLLM runs in: which versions lie there, asked without loading any of them."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

_SECONDS = 15.0  # a cold disk over a network; it takes a tenth of a second else
_LONGEST = 1 << 20

# Run by that environment's Python.  torch itself is not loaded, which would take seconds and a gigabyte: what CUDA it
# was built for stands in the file torch/version.py.
_QUESTION = r"""
import json, re, sys
from importlib import metadata, util

def version(*names):
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            pass

def requirements(name):
    try:
        texts = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return
    try:
        from packaging.requirements import Requirement
        asked = [Requirement(text) for text in texts]
        asked = [one for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})]
        texts = [f"{one.name}{one.specifier}" for one in asked]
    except ImportError:
        texts = [text for text in texts if ";" not in text]
    for text in texts:
        match = re.fullmatch(r"([\w.-]+)(?:\[[^]]*\])?==([\w.+!]+)", text.replace(" ", ""))
        if match:
            yield match[1], match[2]

cuda = None
spec = util.find_spec("torch")
if spec and spec.origin:
    try:
        with open(spec.origin.replace("__init__.py", "version.py")) as file:
            match = re.search(r"^cuda\b[^=]*= *['\"]([\d.]+)['\"]", file.read(), re.M)
            cuda = match and match[1]
    except OSError:
        pass
print(json.dumps({
    "python": sys.version.split()[0],
    "vllm": version("vllm"),
    "torch": version("torch"),
    "cuda": cuda,
    "nccl": version("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11"),
    "pins": [[of, name, wanted, version(name)] for of in ("vllm", "torch") for name, wanted in requirements(of)],
}))
"""


@dataclass(frozen=True, slots=True)
class Pin:
    """A version that one package asks for by `==`, and the one that is there; None where it is not installed."""

    of: str
    name: str
    wanted: str
    found: str | None

    @property
    def kept(self) -> bool:
        """A build's own mark (+cu128, +cpu) does not count where none is asked for."""
        found = self.found
        if found is not None and "+" not in self.wanted:
            found = found.partition("+")[0]
        return found == self.wanted


@dataclass(frozen=True, slots=True)
class Versions:
    """What lies in an engine's environment; None for what does not."""

    python: str
    vllm: str | None
    torch: str | None
    cuda: str | None  # the CUDA that torch was built for: "12.8"; None for a build without
    nccl: str | None
    pins: tuple[Pin, ...] = ()


def ask(program: Sequence[str], seconds: float = _SECONDS) -> Versions:
    """The versions beside the program that stands before `serve`.  Raises OperatorError where they can not be told."""
    python = python_of(program)
    try:
        done = subprocess.run(
            [*python, "-c", _QUESTION], capture_output=True, text=True, timeout=seconds, cwd="/", check=False
        )
    except subprocess.TimeoutExpired:
        raise OperatorError(f"{python[0]} did not tell its versions within {seconds:g} s: see to its disk.") from None
    except OSError as error:
        raise OperatorError(f"{python[0]} can not be run ({error.strerror}): set up vLLM's environment anew.") from None
    try:
        answer: dict[str, Any] = json.loads(done.stdout[:_LONGEST])
        pins = tuple(Pin(*pin) for pin in answer.pop("pins"))
        return Versions(**answer, pins=pins)
    except (ValueError, RecursionError, AttributeError, TypeError, KeyError):
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise OperatorError(f"{python[0]} does not tell its versions ({printable(last[:200])}).") from None


def python_of(program: Sequence[str]) -> tuple[str, ...]:
    """The interpreter that runs the program: named itself, or by the first lines of the script.

    pip and uv write `#!/path/python`, or, where the path is too long for the kernel, a line for sh that execs it.
    Raises OperatorError where the program is no such script.
    """
    path = Path(program[0])
    if path.name.startswith("python"):
        return (str(path),)
    try:
        with path.open("rb") as file:
            lines = file.read(4096).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise OperatorError(f"{path} can not be read ({error.strerror}): check its rights.") from None
    words = lines[0][2:].split() if lines and lines[0].startswith("#!") else []
    if words and Path(words[0]).name == "env":
        found = shutil.which(words[-1])
        words = [found] if found else []
    elif words and Path(words[0]).name == "sh" and len(lines) > 1 and lines[1].startswith("'''exec' "):
        words = [lines[1].removeprefix("'''exec' ").split(' "$0"')[0].strip('"')]
    if words and Path(words[0]).name.startswith("python") and os.access(words[0], os.X_OK):
        return (words[0],)
    raise OperatorError(f"{path} is no Python script, so its versions can not be told: run `{path} --version`.")
