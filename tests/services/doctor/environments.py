"""Python environments with the packages that a test needs, as pip would leave them: real ones, made by venv."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def environment(folder: Path, packages: dict[str, str], cuda: str | None = None, pins: Sequence[str] = ()) -> Path:
    """Make one and return its `vllm` program.  `pins` are what vllm asks for; `cuda` is what torch was built for."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name, version in packages.items():
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        asked = "".join(f"Requires-Dist: {pin}\n" for pin in pins) if name == "vllm" else ""
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{asked}")
    if "torch" in packages:
        (site / "torch").mkdir()
        # Loading it would be noticed.
        (site / "torch" / "__init__.py").write_text("raise SystemExit('torch was imported')\n")
        told = ("debug = False", f"cuda: Optional[str] = {cuda!r}", "hip: Optional[str] = None")
        (site / "torch" / "version.py").write_text("\n".join(told) + "\n")
    program = folder / "bin" / "vllm"
    program.write_text(f"#!{folder}/bin/python\nimport sys\n")
    program.chmod(0o755)
    return program
