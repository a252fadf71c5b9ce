"""Lines as other tools hand a log on: what journalctl, dmesg, docker and kubectl put around them is taken off."""

import json
import re

from gpudeck.services.engine.journal import lines_of

# The short formats of journalctl: a time as "Dec 01 02:07:08", "2026-12-01T02:07:08+0000" or "[   12.345678]" (and two
# more), the host, and the program with its number; the kernel has none.
_WHO = r"\S{1,255} (?:kernel|[^\s:\[\]]{1,255}\[\d{1,9}\]|systemd\[\d+\]): "
_JOURNAL = re.compile(
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})?"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)"
    r"|[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})? [A-Z0-9+:-]{1,6}"
    r"|\d{9,11}\.\d{6}"
    r"|\[ {0,12}\d{1,9}\.\d{6}\]) " + _WHO,
    re.ASCII,
)
# dmesg: "[12345.678901] ", with -T "[Tue Dec  1 02:07:08 2026] ", with -x "kern  :err   : [ 12.345678] ".
_DMESG = re.compile(
    r"(?:[a-z]{2,8} *:[a-z]{3,6} *: )?"
    r"\[(?: {0,12}\d{1,9}\.\d{6}|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\] ",
    re.ASCII,
)
# `docker logs -t`, and a container runtime's own files: "2026-12-01T02:07:08.123456789Z stderr F ".
_DOCKER = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )?", re.ASCII)
# docker compose: "vllm-1  | "; kubectl --prefix: "[pod/vllm-0/vllm] ".
_COMPOSE = re.compile(r"[A-Za-z0-9][\w.-]{0,60} +\| |\[pod/[\w.-]{1,255}/[\w.-]{1,255}\] ", re.ASCII)
_FIELD = re.compile(r"\s{0,8}MESSAGE=", re.ASCII)  # journalctl -o verbose and export
_LAYERS = 4  # a container's log in a journal in a file


def unwrapped(text: str) -> tuple[str, ...]:
    """The lines of the log itself that a line of a file holds: one, or several in an entry of JSON."""
    # A bar's strokes come first in a line that docker or journalctl began.
    stripped = text.lstrip("\x1e")  # json-seq
    if stripped.startswith(("{", "data: {")) and stripped.rstrip().endswith("}"):
        inner = _from_json(stripped.removeprefix("data: "))
        if inner is not None:
            return inner
    for _ in range(_LAYERS):
        shorter = _one_less(text)
        if shorter is text:
            break
        text = shorter
    return (text,)


def _one_less(text: str) -> str:
    """Whitespace is kept: it tells a traceback's code from its end."""
    for layer in (_JOURNAL, _DMESG, _DOCKER, _COMPOSE, _FIELD):
        if found := layer.match(text):
            return text[found.end() :]
    return text


def _from_json(text: str) -> tuple[str, ...] | None:
    """journalctl -o json, or docker's json-file; None for other JSON, which is a line like any other."""
    entries = lines_of(text.encode("utf-8", "surrogatepass"))
    if entries:
        return tuple(entry.text for entry in entries)
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    for name in ("MESSAGE", "log"):
        if isinstance(said := fields.get(name), str):
            return tuple(said.rstrip("\n").split("\n"))
    return None
