"""The fake NVML for tests: compiled once a session, played by this process or by a subprocess.

`fake_nvml(box)` puts a box behind the real pynvml:

    playing = fake_nvml(box)                      # this process: pynvml.nvmlInit() finds it
    playing.change({"gpu.1.fault": "!GPU_IS_LOST"})
    subprocess.run([…], env=playing.environment)  # another process
"""

import ctypes
import hashlib
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpudeck.services.box.types import Box, Reading
from tests.rigs.fakenvml.description import Keys, describe, write

LIBRARY = "libnvidia-ml.so.1"
_SOURCES = Path(__file__).parent / "src"
_FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-Wno-format-nonliteral", "-shared", "-fPIC", f"-Wl,-soname,{LIBRARY}")


def library_folder() -> Path:
    """The folder that holds the compiled library; compiles it where these sources were not compiled before."""
    sources = sorted(_SOURCES.iterdir())
    mark = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpudeck-tests" / f"fakenvml-{mark}"
    library = cache / LIBRARY
    if not library.exists():
        cache.mkdir(parents=True, exist_ok=True)
        new = cache / f"{LIBRARY}.{os.getpid()}"
        subprocess.run(
            ["gcc", *_FLAGS, "-o", new, *(str(source) for source in sources if source.suffix == ".c")], check=True
        )
        new.replace(library)
    return cache


@dataclass
class PlayedBox:
    """A box that is being played; `keys` is its description as it stands in the file."""

    path: Path
    folder: Path
    keys: Keys = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """What a subprocess needs to find the fake library and this box."""
        return {**os.environ, "LD_LIBRARY_PATH": str(self.folder), "GPUDECK_FAKE_NVML": str(self.path)}

    def play(self, box: Box, readings: Iterable[Reading] = ()) -> None:
        """From now on it is this box."""
        self.keys = describe(box, readings)
        write(self.path, self.keys)

    def change(self, keys: Mapping[str, str | None]) -> None:
        """Replace these keys, or take away those given as None, all at once."""
        self.keys |= {key: value for key, value in keys.items() if value is not None}
        for key in [key for key, value in keys.items() if value is None]:
            self.keys.pop(key, None)
        write(self.path, self.keys)


FakeNvml = Callable[..., PlayedBox]


@pytest.fixture(scope="session")
def nvml_folder() -> Path:
    """The folder with the fake library, for LD_LIBRARY_PATH."""
    return library_folder()


@pytest.fixture
def fake_nvml(nvml_folder: Path, tmp_path: Path) -> Iterator[FakeNvml]:
    """Plays one box in this process; called again, another."""
    # pynvml opens the library by its name once in a process and finds this one, since it is loaded already.
    library = ctypes.CDLL(str(nvml_folder / LIBRARY))
    library.fakenvml_play.argtypes = [ctypes.c_char_p]
    library.fakenvml_play.restype = None
    playing = PlayedBox(tmp_path / "box.nvml", nvml_folder)

    def play(box: Box, readings: Iterable[Reading] = (), **keys: str) -> PlayedBox:
        playing.play(box, readings)
        if keys:
            playing.change(keys)
        library.fakenvml_play(str(playing.path).encode())
        return playing

    yield play
    library.fakenvml_play(None)
