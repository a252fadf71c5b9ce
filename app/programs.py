"""What runs as the engine: the vLLM of this machine, or the demo's simulated one."""

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpudeck.app import places
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.command import can_be_quiet
from gpudeck.services.plan.versions import NEWEST_KNOWN, is_release
from gpudeck.services.text import printable


@dataclass(frozen=True, slots=True)
class EngineProgram:
    """The words before `serve`, and variables that its engines need; `found` is False where no vLLM was found."""

    words: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    found: bool = True
    version: str = NEWEST_KNOWN  # vLLM's, as far as it can be told without running it
    told: bool = False  # whether that is its own version, and not what is assumed
    quiet: bool = False  # it is known that it can leave single addresses out of its access log
    cuda: str | None = None  # the one that its torch was built for: "13.0"; None where that is not known


def engine_program(*, demo: str | None) -> EngineProgram:
    """The program of new engines; `demo` names the simulated box that a simulated engine is to fit on."""
    if demo:
        from gpudeck.services.box.source import open_source

        loads = places.demo_loads()
        with suppress(OSError):
            # Where nothing can be written, cards show no loads; models can not be made there either, and that is told.
            loads.mkdir(parents=True, exist_ok=True)
        cards = ",".join(str(gpu.memory_bytes) for gpu in open_source(demo=demo).open().gpus)
        return EngineProgram(
            (sys.executable, "-m", "gpudeck.services.simulator"),
            (("GPUDECK_SIMULATED_LOADS", str(loads)), ("GPUDECK_SIMULATED_CARDS", cards)),
            told=True,
            quiet=True,
        )
    from gpudeck.services.engine.program import find_vllm

    words = find_vllm()
    return EngineProgram(("vllm",), found=False) if words is None else told_program(words)


def told_program(words: tuple[str, ...]) -> EngineProgram:
    """A program with what can be told of its vLLM from files alone."""
    from gpudeck.services.vllm.installed import installed

    engine = installed(words)
    if engine is None:
        return EngineProgram(words)
    if engine.version is None or not is_release(engine.version):
        return EngineProgram(words, cuda=engine.cuda)
    quiet = can_be_quiet(engine.version)
    return EngineProgram(words, version=engine.version, told=True, quiet=quiet, cuda=engine.cuda)


def demo_model(name: str) -> str:
    """The model that is named in a demo: its own by their bare names (they are made where they are missing), others as
    they are.  Raises OperatorError, with the demo's models listed, where there is none.
    """
    from gpudeck.services.models.hub_cache import cache_root, is_hub_id, snapshot
    from gpudeck.services.simulator.models import CONFIGS, make_models

    make_models(places.demo_models())
    if name in CONFIGS:
        return str(places.demo_models() / name)
    if "/" in name or os.path.lexists(name) or (is_hub_id(name) and snapshot(name, cache_root())):
        return name
    raise OperatorError(f"The demo has no model {printable(name[:80])}: take one of {', '.join(CONFIGS)}.")


def load_format_of(model: str) -> str | None:
    """What the model is to be loaded by in a demo: its own models have no weights."""
    return "dummy" if Path(model).parent == places.demo_models() else None


def model_roots(*, demo: bool) -> tuple[Path, ...]:
    """Where models are looked for; a demo makes some of its own, without weights, and finds them first."""
    from gpudeck.services.models.shelf import default_roots

    if not demo:
        return default_roots()
    from gpudeck.services.simulator.models import make_models

    make_models(places.demo_models())
    return (places.demo_models(), *default_roots())
