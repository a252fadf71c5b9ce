"""What a measured run needs to know beforehand: its engines, their cards, what their plans promise."""

import argparse
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from gpudeck.app.commands.common import read_box
from gpudeck.app.commands.reaching import is_url, reached
from gpudeck.services.bench.cards import CardMeter
from gpudeck.services.bench.estimate import estimates
from gpudeck.services.bench.run import Aim, Around
from gpudeck.services.bench.types import CardFacts, Generator, Workload
from gpudeck.services.bench.vllm_load import has_bench
from gpudeck.services.errors import OperatorError
from gpudeck.services.memory.partition import partition_of
from gpudeck.services.models.read import read_model
from gpudeck.services.plan.secrets import API_KEY
from gpudeck.services.rules.judge import judge

if TYPE_CHECKING:
    from gpudeck.services.box.types import Snapshot
    from gpudeck.services.engine.types import Runner
    from gpudeck.services.models.types import ModelFacts


def aims_from(args: argparse.Namespace, runner: "Runner | None", targets: Sequence[str]) -> tuple[Aim, ...]:
    """The engines by name and by address; without a target the only one that runs.  Raises OperatorError."""
    if len(set(targets)) < len(targets):
        raise OperatorError("An engine is named twice: name each once.")
    return tuple(_aim(args, runner, target) for target in targets or (None,))


def _aim(args: argparse.Namespace, runner: "Runner | None", target: str | None) -> Aim:
    if target is not None and is_url(target):
        return Aim(target, target, os.environ.get(API_KEY), args.model)
    assert runner is not None, "a name needs a runner"
    engine = reached(args, runner, target)
    model = _model_of(engine.spec.model)
    return Aim(
        engine.state.name,
        engine.url,
        engine.key,
        args.model or engine.spec.options.served_model_name,
        engine.spec,
        partition_of(engine.spec, model.layers) if model is not None else (),
        model.vocab_size if model is not None else None,
    )


def generator_for(aims: Sequence[Aim], asked: str) -> Generator:
    """Who makes the load.  Raises OperatorError where vLLM's own is asked for and can not."""
    alone = len(aims) == 1 and aims[0].spec is not None and has_bench(aims[0].spec.program)
    if asked == "own" or (asked == "auto" and not alone):
        return Generator.OWN
    if len(aims) > 1:
        raise OperatorError("vllm bench serve loads one engine: take --load own for several at the same time.")
    if not alone:
        raise OperatorError("There is no vllm bench serve in that engine's environment: take --load own.")
    return Generator.VLLM


def around(args: argparse.Namespace, aims: Sequence[Aim], workload: Workload) -> Around:
    """The machine around its own engines; nothing is known of others, nor of a box that can not be read."""
    gpus = [gpu for aim in aims if aim.spec is not None for gpu in aim.spec.placement.gpus]
    if not gpus:
        return Around()
    try:
        snapshot = read_box(args)
    except OperatorError:
        return Around()
    box = snapshot.box
    name = " ".join(filter(None, (box.name, f"driver {box.driver}" if box.driver else "")))
    cards = tuple(CardFacts(gpu.index, gpu.name, gpu.memory_bytes) for gpu in box.gpus if gpu.index in gpus)
    return Around(name, cards, CardMeter(gpus), _estimates(snapshot, aims, workload))


def _estimates(snapshot: "Snapshot", aims: Sequence[Aim], workload: Workload) -> dict[float, float]:
    """By level; of several engines the mean, since each has its share of the requests."""
    each = []
    for aim in aims:
        model = _model_of(aim.spec.model) if aim.spec is not None else None
        if aim.spec is None or model is None:
            return {}
        memory = judge(snapshot.box, model, replace(aim.spec, name="")).memory
        if memory is None:
            return {}
        each.append(estimates(snapshot.box, model, aim.spec, memory, workload, len(aims)))
    return {
        level: sum(told[level] for told in each) / len(each) for level in each[0] if all(level in told for told in each)
    }


def _model_of(path: str) -> "ModelFacts | None":
    with suppress(OperatorError):
        return read_model(path)
    return None
