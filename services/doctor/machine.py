"""The machine as gpudeck needs it: driver, rights, who runs engines, their log, the terminal."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from gpudeck.services.box.types import Box
from gpudeck.services.doctor.check import Check, Health
from gpudeck.services.engine.types import Scope

DEVICES = Path("/dev")
LINGER = Path("/var/lib/systemd/linger")


def driver(box: Box) -> Check:
    cards = f"{len(box.gpus)} card{'' if len(box.gpus) == 1 else 's'}"
    told = f"{cards}, driver {box.driver or 'unknown'}, CUDA {box.cuda or 'unknown'}."
    if box.faults:
        return Check("driver", Health.LESS, f"{told[:-1]}; {' '.join(box.faults)}")
    return Check("driver", Health.FINE, told)


def rights(devices: Path = DEVICES) -> Check | None:
    """Whether this user may open the cards; None where there are no device files (no driver, a container's own way)."""
    files = sorted(file for file in devices.glob("nvidia*") if file.name == "nvidiactl" or file.name[6:].isdigit())
    shut = [str(file) for file in files if not os.access(file, os.R_OK | os.W_OK)]
    if not files:
        return None
    if shut:
        groups = "/".join(sorted({file.group() for file in files if str(file) in shut}))
        return Check(
            "rights",
            Health.MISSING,
            f"You may not open {', '.join(shut)}: have yourself added to the group {groups}, and log in again.",
        )
    return Check("rights", Health.FINE, "You may open every card.")


def runner(*, demo: bool) -> Check:
    from gpudeck.services.engine.choose import open_runner

    opened = open_runner(demo=demo)
    try:
        engines, told = len(opened.engines()), opened.description.rstrip(".")
    finally:
        opened.close()
    health = Health.LESS if opened.scope is Scope.EMBEDDED else Health.FINE
    counted = f"{engines} engine{'' if engines == 1 else 's'}"
    return Check("engine runner", health, f"{told}; {counted}.")


def linger(folder: Path = LINGER) -> Check | None:
    """Whether a plain user's engines outlive the login; None for root, and where no systemd runs."""
    if os.geteuid() == 0 or not Path("/run/systemd/system").is_dir():
        return None
    user = pwd.getpwuid(os.geteuid()).pw_name
    if (folder / user).exists():
        return Check("linger", Health.FINE, "Your engines outlive your login and start at boot.")
    return Check(
        "linger", Health.LESS, f"Your engines end when you log out: sudo loginctl enable-linger {user} keeps them."
    )


def journal() -> Check:
    """Whether the system's journal can be read: journalctl says on standard error what is hidden from a plain user."""
    if shutil.which("journalctl") is None:
        return Check("journal", Health.LESS, "There is no journalctl: engines log to files of gpudeck's own.")
    try:
        asked = subprocess.run(
            ["journalctl", "-n", "1", "-o", "cat", "--no-pager"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("journal", Health.LESS, f"journalctl does not answer ({error}).")
    if "systemd-journal" in asked.stderr or asked.returncode:
        return Check(
            "journal",
            Health.LESS,
            "Only your own units' logs can be read: join the group systemd-journal and log in again to see the rest.",
        )
    return Check("journal", Health.FINE, "The journal can be read.")


def terminal(*, unicode: bool) -> Check:
    term = os.environ.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        return Check("terminal", Health.LESS, f"TERM={term} can not show the panel; the commands work.")
    if not unicode:
        return Check(
            "terminal",
            Health.LESS,
            f"The panel is drawn in ASCII: TERM={term} has few signs, or the locale is not UTF-8 (set LANG=C.UTF-8).",
        )
    return Check("terminal", Health.FINE, f"{term}, UTF-8.")
