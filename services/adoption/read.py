"""A unit file read back into what it runs."""

from collections.abc import Callable
from dataclasses import replace

from gpudeck.services.adoption import syntax
from gpudeck.services.adoption.container import tag_version
from gpudeck.services.adoption.launch import Launch, find_launch
from gpudeck.services.adoption.options import read_arguments
from gpudeck.services.adoption.types import Adopted, UnitFiles
from gpudeck.services.box.types import Box
from gpudeck.services.plan.naming import name_for, valid_name
from gpudeck.services.plan.types import EngineSpec, Placement

ReadText = Callable[[str], str | None]  # a file's text; None where it is not there or may not be read
# What the placement says, and what gpudeck sets itself.
_PLACEMENT = ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "VLLM_PP_LAYER_PARTITION", "PYTHONUNBUFFERED")


def read_unit(files: UnitFiles, read_text: ReadText, box: Box | None = None) -> Adopted | None:
    """What a unit runs; None where that is no vLLM.  `box` knows cards by their UUIDs."""
    service = syntax.service_section(files.texts)
    variables = syntax.assignments(service.get("Environment", ()), files.unit)
    missing = []
    for value in service.get("EnvironmentFile", ()):
        path = syntax.specified(value.removeprefix("-"), files.unit)
        text = read_text(path)
        if text is None:
            missing.append(path)
        else:
            variables |= syntax.environment_file(text)
    launch = None
    for command in service.get("ExecStart", ()):
        launch = launch or find_launch(syntax.command_words(command, files.unit, variables), variables)
    if launch is None:
        return None
    if launch.container is None:
        variables |= launch.environment
    else:
        variables = dict(launch.environment)  # the unit's own reach only docker's client
    return _adopted(files, launch, variables, tuple(missing), service.get("User", [""])[-1] or None, box)


def _adopted(
    files: UnitFiles,
    launch: Launch,
    variables: dict[str, str],
    missing: tuple[str, ...],
    user: str | None,
    box: Box | None,
) -> Adopted:
    asked = read_arguments(launch.arguments)
    tp, pp, dp = asked.sizes
    options, model = asked.options, asked.model
    if launch.published:
        host, port = launch.published.get(options.port, (options.host, options.port))
        options = replace(options, host=host, port=port)
    for inside, outside in launch.mounts.items():
        if model == inside or model.startswith(f"{inside}/"):
            model = outside + model[len(inside) :]
    cards = _cards(launch, variables, box)
    spec = EngineSpec(
        name=engine_name(files.unit),
        model=model,
        placement=_placement(cards, (tp, pp, dp), box),
        options=options,
        layer_partition=_partition(variables.get("VLLM_PP_LAYER_PARTITION")),
        program=launch.program,
        environment=tuple((name, value) for name, value in variables.items() if name not in _PLACEMENT),
    )
    version = tag_version(launch.container.image) if launch.container else None
    return Adopted(
        files.unit,
        spec,
        tp,
        pp,
        dp,
        cards,
        user=user,
        container=launch.container,
        old_entry_point=launch.old_entry_point,
        version=version,
        missing_files=missing,
        ordered=launch.container is not None or variables.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID",
    )


def engine_name(unit: str) -> str:
    """The name that the engine has in gpudeck: the unit's, without vllm- where that is its beginning."""
    name = unit.removesuffix(".service").replace("@", "-").removeprefix("vllm-")
    return name if valid_name(name) else name_for(name)


def _placement(cards: tuple[int, ...] | None, sizes: tuple[int, int, int], box: Box | None) -> Placement:
    """The ranks on the cards that are there, in their order; fewer than asked for where there are fewer."""
    tp, pp, dp = sizes
    there = cards if cards is not None else tuple(gpu.index for gpu in box.gpus) if box else tuple(range(tp * pp * dp))
    wanted = there[: tp * pp * dp]
    if len(wanted) < tp * pp * dp:
        return Placement(tuple((card,) for card in wanted) if tp == 1 else (wanted,) if wanted else ())
    return Placement(tuple(wanted[start : start + tp] for start in range(0, len(wanted), tp)), dp)


def _cards(launch: Launch, variables: dict[str, str], box: Box | None) -> tuple[int, ...] | None:
    """The cards that the engine may see, as NVML counts them; None for all."""
    given = variables.get("CUDA_VISIBLE_DEVICES") or variables.get("NVIDIA_VISIBLE_DEVICES", "all")
    if launch.container is not None and launch.container.gpus is not None:
        given = launch.container.gpus.removeprefix("device=")
        if given.isdecimal() and not launch.container.gpus.startswith("device="):
            return tuple(range(int(given[:4])))
    if given == "all":
        return None
    by_uuid = {gpu.uuid: gpu.index for gpu in box.gpus if gpu.uuid} if box else {}
    cards = []
    for word in given.strip("\"'").split(","):
        name = word.strip()
        if name.isdecimal() and len(name) < 5:
            cards.append(int(name))
        elif (
            index := next((place for uuid, place in by_uuid.items() if name and uuid.startswith(name)), None)
        ) is not None:
            cards.append(index)
        else:
            break  # CUDA stops at the first that it does not know
    return tuple(cards)


def _partition(text: str | None) -> tuple[int, ...] | None:
    parts = (text or "").split(",")
    return tuple(int(part) for part in parts) if all(part.strip().isdecimal() for part in parts) else None
