"""The account that an engine is to run as: there, with a home for its caches, and let to read what it serves."""

import os
import pwd
import subprocess
from pathlib import Path

from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

_SECONDS = 20  # a model on a network's disk may be slow to look through


def check_account(name: str, *, program: str, model: str) -> None:
    """Raise OperatorError, with the way out, where an engine would fail for what this account lacks.

    `model` is a path or a hub id.  What the account may read can only be tried as root; others are told no more than
    that it is there.
    """
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        raise OperatorError(
            f"There is no account {printable(name)}: as root, `useradd --system --create-home "
            f"--home-dir /var/lib/{printable(name)} --shell /usr/sbin/nologin {printable(name)}` makes one."
        ) from None
    if not Path(account.pw_dir).is_dir():
        raise OperatorError(
            f"The account {name} has no home directory ({printable(account.pw_dir)} is not there), and vLLM keeps its "
            f"caches in it: as root, `install -d -o {name} {printable(account.pw_dir)}` makes one."
        )
    if os.geteuid() != 0:
        return
    if not _passes(account, ["test", "-x", program]):
        raise OperatorError(
            f"The account {name} may not run {printable(program)}: move vLLM's environment to where it may (/opt), "
            "or give it the right to its folders."
        )
    if model.startswith("/") and Path(model).exists() and (closed := _closed(account, model)):
        raise OperatorError(
            f"The account {name} may not read {printable(closed)}: `setfacl -R -m u:{name}:rX {printable(model)}` lets "
            "it read the model, and each folder above it must let it pass (x)."
        )


def _closed(account: pwd.struct_passwd, model: str) -> str:
    """What of a model the account may not read; "" where it may read all."""
    found = _as(account, ["find", "-L", model, "-maxdepth", "1", "-not", "-readable", "-print", "-quit"])
    return found.stdout.strip() or (model if found.returncode else "")


def _passes(account: pwd.struct_passwd, words: list[str]) -> bool:
    return _as(account, words).returncode == 0


def _as(account: pwd.struct_passwd, words: list[str]) -> "subprocess.CompletedProcess[str]":
    groups = os.getgrouplist(account.pw_name, account.pw_gid)
    try:
        return subprocess.run(
            words,
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=groups,
            cwd="/",
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OperatorError(
            f"What the account {account.pw_name} may read can not be tried ({printable(str(error))}): try again."
        ) from None
