"""`gpudeck man`: the manual page, read at once on a terminal and printed elsewhere."""

import argparse
import shutil
import subprocess
import sys


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Where it is installed `man gpudeck` shows the same; gpudeck man > FILE writes it."


def run(_args: argparse.Namespace) -> int:
    from gpudeck.app.man_page import man_page

    page = man_page()
    reader = shutil.which("man") if sys.stdout.isatty() else None
    if reader is None:
        sys.stdout.write(page)
        return 0
    return subprocess.run([reader, "-l", "-"], input=page, text=True, check=False).returncode
