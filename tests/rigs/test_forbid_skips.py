"""CI's plugin against skips, in a pytest of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "source",
    [
        "import pytest\ndef test_it(): pytest.skip('no bus')",
        "import pytest\n@pytest.mark.skipif(True, reason='no bus')\ndef test_it(): pass",
        "import pytest\npytest.skip('no bus', allow_module_level=True)",
        "import pytest\n@pytest.fixture\ndef bus(): pytest.skip('no bus')\ndef test_it(bus): pass",
    ],
    ids=["in the test", "by a mark", "the whole file", "in a fixture"],
)
def test_a_skip_fails_and_says_why(tmp_path: Path, source: str) -> None:
    file = tmp_path / "test_skipping.py"
    file.write_text(source + "\n")
    plain = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        "-c",
        "/dev/null",
        str(file),
    ]
    done = subprocess.run(
        [*plain, "-p", "tests.rigs.forbid_skips"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode not in (0, 5), done.stdout
    assert "skipped where nothing may be" in done.stdout
    assert "no bus" in done.stdout
    assert subprocess.run(plain, cwd=ROOT, capture_output=True, check=False).returncode in (0, 5)
