"""Every entry, in the order of docs/failures.md."""

from gpudeck.services.diagnosis import gpus, kernel, memory, models, options, parallel, runtime
from gpudeck.services.diagnosis.entry import Entry

SECTIONS: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    ("Memory", memory.ENTRIES),
    ("Shape", parallel.ENTRIES),
    ("Cards and drivers", gpus.ENTRIES),
    ("Model", models.ENTRIES),
    ("Command line and surroundings", options.ENTRIES),
    ("Processes and links", runtime.ENTRIES),
    ("Kernel", kernel.ENTRIES),
)
ENTRIES = tuple(entry for _, entries in SECTIONS for entry in entries)
LONGEST = 8 << 10  # characters of a line that are looked at: a pattern's cost is bounded by it


def known_failure(text: str) -> Entry | None:
    """The first entry that knows this line (without its prefixes) as a reason to fail."""
    return next((entry for entry in ENTRIES if not entry.notice and entry.search(text[:LONGEST])), None)
