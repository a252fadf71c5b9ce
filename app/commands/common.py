"""What commands share: the box, the runner and the spec that their arguments name."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from itertools import count
from typing import TYPE_CHECKING

from gpudeck.app import places
from gpudeck.app.commands.keys import add_key_options
from gpudeck.app.programs import engine_program, load_format_of
from gpudeck.services.engine.types import Scope
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.extra import extra_value
from gpudeck.services.plan.secrets import API_KEY
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from gpudeck.services.plan.versions import NEWEST_KNOWN, is_release

if TYPE_CHECKING:
    from gpudeck.services.box.types import BoxSource, Snapshot
    from gpudeck.services.engine.types import Runner, UnitState
    from gpudeck.services.models.types import ModelFacts
    from gpudeck.services.rules.surroundings import Surroundings


def whole(least: int, most: int, what: str) -> Callable[[str], int]:
    """What reads a whole number of that range for argparse; `what` names it in the refusal."""

    def read(text: str) -> int:
        if text.isdecimal() and len(text) <= len(str(most)) and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text} is no {what}")

    return read


POSITIVE = whole(1, 10**9, "number from 1 on")
_PORT = whole(1, 65535, "port (1 to 65535)")


def add_box_options(parser: argparse.ArgumentParser) -> None:
    """--demo, --box and --plain, which go before the command or after it."""
    group = parser.add_argument_group("the box")
    group.add_argument(
        "--demo", metavar="BOX", default=argparse.SUPPRESS, help="a simulated box; --demo alone: --demo=mixed"
    )
    group.add_argument(
        "--box", dest="box_file", metavar="FILE", default=argparse.SUPPRESS, help="replay a recorded box"
    )
    group.add_argument(
        "--scope",
        choices=[scope.value for scope in Scope],
        default=argparse.SUPPRESS,
        help="whose engines: the system's systemd, your own, or gpudeck's embedded runner",
    )
    group.add_argument("--plain", action="store_true", default=argparse.SUPPRESS, help="no colour and no drawing")


def box_source(args: argparse.Namespace) -> "BoxSource":
    """The source that --demo and --box name; not yet opened."""
    from gpudeck.services.box.source import open_source

    return open_source(demo=args.demo, box_file=args.box_file, loads=places.demo_loads() if args.demo else None)


def read_box(args: argparse.Namespace) -> "Snapshot":
    """One snapshot of the box."""
    from gpudeck.services.box.sampler import read_once

    return read_once(box_source(args))


def box_if_read(args: argparse.Namespace) -> "Snapshot | None":
    """The same where it only makes words exact: a box that can not be read is no error then."""
    with suppress(OperatorError):
        return read_box(args)
    return None


def runner_for(args: argparse.Namespace) -> "Runner":
    """The runner of this machine's engines, or of the demo's."""
    if args.box_file:
        raise OperatorError(f"{args.box_file} is a recorded box and runs no engines: leave --box out.")
    if args.demo:
        from gpudeck.services.box.simulated import simulated_box

        simulated_box(args.demo)  # a box of that name must be there, though engines are the same on all of them
    from gpudeck.services.engine.choose import open_runner

    return open_runner(demo=bool(args.demo), scope=scope_from(args))


def scope_from(args: argparse.Namespace) -> Scope | None:
    return Scope(args.scope) if args.scope else None


def told_command(args: argparse.Namespace, words: str) -> str:
    """A command to give next, as it has to be typed: of the demo's engines only `--demo` knows."""
    scope = f" --scope {args.scope}" if args.scope else ""
    return f"gpudeck {words}{' --demo' if args.demo else ''}{scope}"


def known_engine(runner: "Runner", name: str) -> "UnitState":
    """The state of the engine of that name (its unit's name serves too), or a refusal that lists what there is."""
    bare = name.removesuffix(".service")
    for state in runner.engines():
        if bare in (state.name, state.unit.removesuffix(".service")):
            return state
    there = ", ".join(sorted(state.name for state in runner.engines()))
    raise OperatorError(
        f"No engine is called {name} here; there {'is ' + there if there else 'are none: gpudeck install makes one'}."
    )


def add_spec_options(parser: argparse.ArgumentParser) -> None:
    """MODEL, the placement, and vLLM's options under vLLM's own names."""
    parser.add_argument("model", metavar="MODEL", help="a model directory, a .gguf file or a cached hub id")
    place = parser.add_argument_group("placement")
    place.add_argument("--stage", action="append", metavar="0,1", help="the cards of one pipeline stage, in rank order")
    place.add_argument(
        "--replicas", type=POSITIVE, metavar="N", help="copies (data parallelism); without it, as many as serve best"
    )
    place.add_argument("--layer-partition", metavar="14,18", help="layers of each stage (default: vLLM's even split)")
    place.add_argument("--share", metavar="0,1", help="cards that this engine shares on purpose with others")
    engine = parser.add_argument_group("engine options (vLLM's own)")
    engine.add_argument("--host", default=EngineOptions().host)
    engine.add_argument(
        "--port", type=_PORT, help=f"default: {EngineOptions().port}, or the next that no other engine has"
    )
    engine.add_argument("--served-model-name", metavar="NAME")
    engine.add_argument("--max-model-len", type=_length, metavar="TOKENS", help="a number, or 8k, 128K")
    engine.add_argument("--gpu-memory-utilization", type=_share, metavar="0..1")
    engine.add_argument("--max-num-seqs", type=POSITIVE, metavar="N")
    engine.add_argument("--max-num-batched-tokens", type=_length, metavar="TOKENS")
    engine.add_argument("--kv-cache-dtype", metavar="DTYPE")
    engine.add_argument("--quantization", "-q", metavar="METHOD")
    engine.add_argument("--dtype", metavar="DTYPE")
    engine.add_argument("--load-format", metavar="FORMAT")
    engine.add_argument("--enforce-eager", action="store_true")
    parser.add_argument(
        "--user-account", metavar="NAME", help="the account that its unit runs as, at system scope (default: root)"
    )
    parser.add_argument(
        "--vllm-version",
        type=_version,
        metavar="V",
        help=f"judge for this vLLM (default: the installed one, else {NEWEST_KNOWN})",
    )
    engine.add_argument("--tensor-parallel-size", "-tp", type=POSITIVE, metavar="N")
    engine.add_argument("--pipeline-parallel-size", "-pp", type=POSITIVE, metavar="N")
    add_key_options(parser)
    parser.epilog = "Options behind -- are passed to vLLM as they are: gpudeck plan MODEL -- --enable-prefix-caching"


def options_from(args: argparse.Namespace) -> EngineOptions:
    return EngineOptions(
        host=args.host,
        port=args.port or EngineOptions().port,
        served_model_name=args.served_model_name,
        max_model_len=args.max_model_len,
        gpu_memory_utilization=args.gpu_memory_utilization,
        max_num_seqs=args.max_num_seqs,
        max_num_batched_tokens=args.max_num_batched_tokens,
        kv_cache_dtype=args.kv_cache_dtype,
        quantization=args.quantization,
        dtype=args.dtype,
        load_format=args.load_format or (load_format_of(args.model) if args.demo else None),
        enforce_eager=args.enforce_eager,
        extra=tuple(args.extra),
    )


def placement_from(args: argparse.Namespace) -> Placement | None:
    """The placement that --stage gives; None where none is given and one is to be proposed."""
    if not args.stage:
        return None
    stages = tuple(_cards("--stage", text) for text in args.stage)
    replicas = args.replicas or 1
    if len(stages) % replicas:
        raise OperatorError(
            f"--replicas {replicas} needs a multiple of {replicas} stages, copy by copy; {len(stages)} given."
        )
    return Placement(stages, replicas)


def spec_from(args: argparse.Namespace, model: "ModelFacts", placement: Placement, name: str) -> EngineSpec:
    """The spec that the arguments name, for the demo's simulated engine where --demo is given."""
    program = engine_program(demo=args.demo)
    return EngineSpec(
        name=name,
        model=model.path,
        placement=placement,
        options=options_from(args),
        layer_partition=_partition(args.layer_partition) if args.layer_partition else None,
        program=program.words,
        environment=program.environment,
        shared_gpus=_cards("--share", args.share) if args.share else (),
        user=args.user_account,
        quiet=program.quiet,
    )


def surroundings(args: argparse.Namespace, snapshot: "Snapshot", name: str) -> "Surroundings":
    """What stands around the plan of the engine `name`: the other engines too, where a runner answers.

    Where no port was asked for, `args` gets the engine's own, or else one that none of the others has.
    """
    from gpudeck.services.rules.surroundings import Surroundings

    neighbours: tuple[EngineSpec, ...] = ()
    key_set = args.api_key_file is not None or (args.keys_from_env and bool(os.environ.get(API_KEY)))
    if not args.box_file:
        with suppress(OperatorError), closing(runner_for(args)) as runner:
            key_set = key_set or runner.api_key(name) is not None
            engines = runner.engines()
            neighbours = tuple(state.spec for state in engines if state.spec is not None and state.name != name)
            if args.port is None:
                own = next((state.spec.options.port for state in engines if state.spec and state.name == name), None)
                args.port = own or _port_beside(neighbours)
    program = engine_program(demo=args.demo)
    return Surroundings(
        vllm_version=args.vllm_version or program.version,
        version_told=args.vllm_version is not None or program.told,
        # Of a vLLM that is only named, the build is not known.
        engine_cuda=program.cuda if args.vllm_version in (None, program.version) else None,
        neighbours=neighbours,
        readings=snapshot.readings,
        events=snapshot.events,
        tokenizer_tokens=_tokenizer_tokens(args.extra),
        key_set=key_set,
    )


def _port_beside(neighbours: Sequence[EngineSpec]) -> int:
    """The first port from vLLM's usual one on that is no other engine's."""
    taken = {neighbour.options.port for neighbour in neighbours}
    return next(port for port in count(EngineOptions().port) if port not in taken)


def _tokenizer_tokens(extra: Sequence[str]) -> int | None:
    """The size of another tokenizer than the model's own, where one is given and lies here."""
    from gpudeck.services.models.tokenizer import tokenizer_tokens

    given = extra_value(extra, "--tokenizer")
    return tokenizer_tokens(given) if given is not None else None


def used_memory(snapshot: "Snapshot") -> dict[int, int]:
    """Bytes that are taken on each card already, the driver's reserve left out."""
    return {reading.gpu: reading.memory_used_bytes or 0 for reading in snapshot.readings}


def print_json(document: object) -> None:
    json.dump(document, sys.stdout, indent=2, ensure_ascii=True)
    sys.stdout.write("\n")


def _cards(option: str, text: str) -> tuple[int, ...]:
    try:
        cards = tuple(int(word) for word in text.split(","))
    except ValueError:
        raise OperatorError(f"{option} {text} is no list of card numbers: write it like {option} 0,1.") from None
    if any(card < 0 for card in cards):
        raise OperatorError(f"{option} {text} names a card below 0: cards are counted from 0.")
    return cards


def _partition(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise OperatorError(f"--layer-partition {text} is no list of numbers: write it like 14,18.") from None


def _share(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is no share of the card's memory (above 0, at most 1)")
    return number


def _version(text: str) -> str:
    if not is_release(text):
        raise argparse.ArgumentTypeError(f"{text} is no version of vLLM (0.24, 0.32.1)")
    return text


def _length(text: str) -> int:
    """vLLM's own spelling of lengths: 8k is 8,000 and 8K is 8,192 (vllm.engine.arg_utils.human_readable_int)."""
    units = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
    unit = units.get(text[-1:], 1)
    try:
        number = float(text[:-1]) * unit if unit > 1 else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no number of tokens (8192, 8k, 128K)") from None
    if not 1 <= number <= 10**9 or number != int(number):
        raise argparse.ArgumentTypeError(f"{text} is no number of tokens from 1 on")
    return int(number)
