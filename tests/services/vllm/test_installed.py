"""Finding the engine's Python and its versions by files alone."""

from pathlib import Path

import pytest

from gpudeck.services.vllm.installed import engine_python, installed


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """An environment's folder as pip leaves it."""
    root = tmp_path / "engine"
    python = program(root / "bin" / "python", "#!/bin/sh\n")
    program(root / "bin" / "vllm", f"#!{python}\nimport sys\n")
    site = root / "lib" / "python3.12" / "site-packages"
    info = site / "vllm-0.24.0+cu129.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.24.0+cu129\n")
    (site / "torch").mkdir()
    (site / "torch" / "version.py").write_text("cuda: Optional[str] = '12.9'\nhip: Optional[str] = None\n")
    return root


def test_versions_are_read_beside_the_python(engine: Path) -> None:
    found = installed((str(engine / "bin" / "vllm"),))
    assert found is not None
    assert (found.python, found.version, found.cuda) == (engine / "bin" / "python", "0.24.0", "12.9")


def test_a_torch_without_cuda(engine: Path) -> None:
    (engine / "lib/python3.12/site-packages/torch/version.py").write_text("cuda: Optional[str] = None\n")
    found = installed((str(engine / "bin" / "vllm"),))
    assert found is not None
    assert found.cuda is None


def test_wrappers_and_links_lead_to_the_same_python(engine: Path, tmp_path: Path) -> None:
    python = engine / "bin" / "python"
    real = engine / "bin" / "vllm"
    wrapper = program(tmp_path / "wrapper", f"#!/bin/sh\nexport A='0|1'\nexec {real} \"$@\"\n")
    long_path = program(tmp_path / "long", f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\nimport re\n")
    link = tmp_path / "link"
    link.symlink_to(real)
    for words in ((str(wrapper),), (str(long_path),), (str(link),), (str(python), "-m", "vllm.entrypoints.cli.main")):
        assert engine_python(words) == python


def test_what_has_no_python_of_its_own(tmp_path: Path) -> None:
    container = program(tmp_path / "vllm", '#!/bin/sh\nexec docker run vllm/vllm-openai "$@"\n')
    binary = tmp_path / "binary"
    binary.write_bytes(b"\x7fELF\0\0")
    binary.chmod(0o755)
    itself = tmp_path / "itself" / "vllm"
    program(itself, f"#!/bin/sh\nexec {itself}\n")
    for words in ((str(container),), (str(binary),), (str(itself),), ("/no/such/vllm",), ()):
        assert engine_python(words) is None
