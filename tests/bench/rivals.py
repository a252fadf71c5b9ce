"""The programs that gpudeck is measured beside."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NVITOP = "1.7.2"


def nvitop(mode: str) -> list[str]:
    """nvitop at one reading a second, from an environment of its own; the first call makes that, which takes PyPI.

    `mode` "full" has histories, "auto" is what it chooses itself: in 50 rows no history and every process.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpudeck-tests" / f"nvitop-{NVITOP}"
    whole = cache / "whole"
    if not whole.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", cache], check=True)
        subprocess.run([cache / "bin" / "pip", "install", "--quiet", f"nvitop=={NVITOP}"], check=True)
        whole.touch()
    return [str(cache / "bin" / "python"), "-m", "nvitop", "--monitor", mode, "--interval", "1"]


def nvtop() -> list[str] | None:
    """nvtop at one reading a second; None where it is not installed (Debian has it, in contrib)."""
    found = shutil.which("nvtop")
    return None if found is None else [found, "-d", "10"]
