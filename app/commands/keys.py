"""Keys on their way in: from a file, from standard input, or typed without being shown; never as an argument."""

import argparse
import getpass
import os
import sys
from pathlib import Path

from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.secrets import API_KEY, HF_TOKEN, Secrets, checked_secret
from gpudeck.services.text import printable

_MOST = 1 << 16  # characters that are read of a file that is to hold one key
_OPTIONS = {"api_key_file": ("--api-key-file", API_KEY), "hf_token_file": ("--hf-token-file", HF_TOKEN)}


def add_key_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("keys (kept in a file that only its owner reads)")
    group.add_argument(
        "--api-key-file",
        metavar="PATH",
        help="the key that requests must carry; - reads standard input, or asks without showing it",
    )
    group.add_argument("--hf-token-file", metavar="PATH", help="the Hugging Face token, in the same way")
    group.add_argument(
        "--keys-from-env", action="store_true", help=f"take {API_KEY} and {HF_TOKEN} from gpudeck's own environment"
    )


def secrets_from(args: argparse.Namespace) -> Secrets:
    """The keys that the arguments name.  Raises OperatorError, which never tells a key."""
    found: dict[str, str] = {}
    if args.keys_from_env:
        found = {name: checked_secret(name, os.environ[name]) for name in (API_KEY, HF_TOKEN) if os.environ.get(name)}
        if not found:
            raise OperatorError(f"--keys-from-env finds neither {API_KEY} nor {HF_TOKEN} in the environment.")
    for attribute, (option, name) in _OPTIONS.items():
        place = getattr(args, attribute)
        if place is not None:
            found[name] = checked_secret(name, _read(option, place, name))
    return Secrets(tuple(found.items()))


def _read(option: str, place: str, name: str) -> str:
    if place != "-":
        try:
            with Path(place).open(encoding="utf-8", errors="replace") as file:
                return file.read(_MOST)
        except OSError as error:
            raise OperatorError(
                f"{option}: {printable(place)} can not be read ({error.strerror}): give a file that holds the key."
            ) from None
    if sys.stdin.isatty():
        return getpass.getpass(f"{name} (not shown): ")
    return sys.stdin.readline(_MOST)
