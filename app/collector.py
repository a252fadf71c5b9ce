"""Python's collector of cycles, kept from holding up the screen."""

import gc
import threading

_SETTLED_S = 2.0  # by which the first screen stands
# Of objects made and not freed.  With the defaults a flood of log lines has all that lives looked through many times a
# minute, a tenth of a second each time.
_THRESHOLDS = (5_000, 20, 50)


def settle_soon() -> None:
    """Leave what the panel is made of out of later collections; only for a process that is the panel's own."""
    timer = threading.Timer(_SETTLED_S, _settle)
    timer.daemon = True
    timer.start()


def _settle() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
