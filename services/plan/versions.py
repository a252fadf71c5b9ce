"""vLLM's versions: which one is assumed, and how two are compared."""

import re
from functools import lru_cache

NEWEST_KNOWN = "0.33"  # the newest whose options and defaults the rules know; assumed where no version is told
NEWEST_MEASURED = "0.24"  # the newest whose memory was measured; its figures are told where no version is known
_RELEASE = re.compile(r"v?(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?")


def is_release(text: str) -> bool:
    """Whether the text begins as a version does."""
    return _RELEASE.match(text.strip()) is not None


@lru_cache(maxsize=64)
def release(version: str) -> tuple[int, int, int]:
    """ "0.24.0rc1+cu130" → (0, 24, 0).  What is no version counts as the newest known."""
    found = _RELEASE.match(version.strip())
    if found is None:
        return release(NEWEST_KNOWN)
    major, minor, patch = (int(part or 0) for part in found.groups())
    return major, minor, patch
