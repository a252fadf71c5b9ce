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
