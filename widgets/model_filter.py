"""Which models a typed text finds, and when it is itself the name of one.  Pure."""

import re
from collections.abc import Mapping, Sequence

from gpudeck.services.models.types import ShelfEntry
from gpudeck.services.plan.fit import Fit

ORDERS = ("name", "context", "size")

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.\-]*/[A-Za-z0-9][\w.\-]*")


def matching(entries: Sequence[ShelfEntry], typed: str) -> list[ShelfEntry]:
    """The entries whose name or path holds every word of `typed`, usable ones first; case does not count."""
    words = typed.lower().split()
    found = [entry for entry in entries if all(word in f"{entry.name} {entry.path}".lower() for word in words)]
    return sorted(found, key=lambda entry: entry.problem is not None)


def in_order(entries: Sequence[ShelfEntry], order: str, fits: Mapping[str, Fit]) -> list[ShelfEntry]:
    """The entries by name, by the context that they hold here, or by size, largest first; unusable ones stay last."""

    def key(entry: ShelfEntry) -> tuple[bool, int]:
        found = fits.get(entry.path)
        by = {"context": found.context if found is not None else -1, "size": entry.size_bytes or 0}
        return entry.problem is not None, -by.get(order, 0)

    return sorted(entries, key=key)


def named_model(typed: str) -> str | None:
    """`typed` where it names a model by itself: a path, a .gguf file or a hub id (owner/name); else None."""
    text = typed.strip()
    if text.startswith(("/", "~/", "./", "../")) and text.isprintable():
        return text
    if (text.endswith(".gguf") and " " not in text and text.isprintable()) or _HUB_ID.fullmatch(text):
        return text
    return None


def size_in_words(size: int | None) -> str:
    """A model's size on disk: "23.4 GB", in powers of ten as file managers and the hub give it."""
    if size is None:
        return ""
    return f"{size / 1e9:.1f} GB" if size >= 50_000_000 else f"{size / 1e6:.1f} MB"
