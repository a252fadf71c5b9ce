"""Where gpudeck keeps things: the XDG folders, and what a demo uses instead."""

import os
from pathlib import Path

import platformdirs


def state_home() -> Path:
    """What outlives a session: embedded engines, the panel's own log."""
    return Path(platformdirs.user_state_dir("gpudeck", appauthor=False))


def starts_home() -> Path:
    """How long earlier starts took, and the specs that reached ready."""
    return state_home() / "starts"


def bench_home(*, demo: bool) -> Path:
    """What was measured; what simulated engines gave is kept apart."""
    return (demo_home() if demo else state_home()) / "bench"


def demo_home() -> Path:
    """What a demo makes for itself: its model directories and the loads of its simulated engines."""
    return Path(platformdirs.user_cache_dir("gpudeck", appauthor=False)) / "demo"


def demo_loads() -> Path:
    """Where running simulated engines say which cards they load; the simulated box reads it."""
    return demo_home() / "loads"


def demo_models() -> Path:
    return demo_home() / "models"


def panel_log() -> Path:
    """Where standard error goes while the panel draws, so that no library can write over the screen."""
    return state_home() / "panel.log"


def home_relative(path: str) -> str:
    """The path as an operator would write it, with ~ for the home directory."""
    home = os.path.expanduser("~")  # noqa: PTH111 (Path.home() raises where there is no home)
    return "~" + path[len(home) :] if home != "/" and (path + "/").startswith(home + "/") else path
