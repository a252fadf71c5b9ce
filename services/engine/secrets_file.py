"""The file of variables that only the engine may read, in the language of systemd's EnvironmentFile=."""

import re
from pathlib import Path

from gpudeck.services.adoption.syntax import environment_file
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.extra import extra_value
from gpudeck.services.plan.secrets import API_KEY, Secrets

MODE = 0o600
_HEAD = "# Keys of one engine, written by gpudeck; other variables may stand here too.\n"
_QUOTED = re.compile(r'(["\\`$])')  # what a backslash stands before between double quotes: systemd's env-file.c
_LARGEST = 1 << 20


def text_of(variables: dict[str, str]) -> str:
    quoted = {name: _QUOTED.sub(r"\\\1", value) for name, value in variables.items()}
    return _HEAD + "".join(f'{name}="{value}"\n' for name, value in quoted.items())


def read(path: Path) -> dict[str, str]:
    """Its variables; none where there is no such file.  Raises OperatorError where it can not be read."""
    try:
        with path.open("rb") as file:
            return environment_file(file.read(_LARGEST).decode("utf-8", "replace"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise OperatorError(f"{path} can not be read ({error.strerror}): run gpudeck as who owns it.") from None


def changed_text(path: Path, secrets: Secrets) -> str | None:
    """The file with these values in it, and what it holds besides; None where nothing would be left in it."""
    variables = read(path) | dict(secrets.values)
    kept = {name: value for name, value in variables.items() if value or name not in secrets.names}
    return text_of(kept) if kept else None


def api_key(pid: int | None, path: Path) -> str | None:
    """The key that the engine was started with, or will be: the running process knows best, then its file.

    None where it has none, or none that we may read.
    """
    if pid is not None and (found := _of_process(Path("/proc", str(pid)))):
        return found
    try:
        return read(path).get(API_KEY) or None
    except OperatorError:
        return None


def _of_process(process: Path) -> str | None:
    try:
        words = process.joinpath("cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        if key := extra_value(words, "--api-key"):
            return key
        variables = process.joinpath("environ").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return None
    prefix = f"{API_KEY}="
    return next((each.removeprefix(prefix) for each in variables if each.startswith(prefix)), None) or None
