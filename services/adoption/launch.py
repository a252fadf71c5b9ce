"""Finding vLLM in a command line: behind env, shells, launchers, and in containers."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpudeck.services.adoption.container import docker_run
from gpudeck.services.adoption.types import Container

_SHELLS = ("sh", "bash", "dash", "zsh")
_MODULES = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server")
_CLI_MODULES = ("vllm.entrypoints.cli.main", "vllm")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)\Z", re.ASCII | re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
_DEPTH = 4  # a shell in env in a shell …


@dataclass(frozen=True, slots=True)
class Launch:
    """`arguments` are those of `vllm serve`; paths in them are the host's."""

    program: tuple[str, ...]  # what stands before `serve`
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)  # that the command line itself sets
    container: Container | None = None
    published: Mapping[int, tuple[str, int]] = field(default_factory=dict)  # port inside → address and port outside
    mounts: Mapping[str, str] = field(default_factory=dict)  # folder inside → folder outside
    old_entry_point: bool = False


def find_launch(words: Sequence[str], variables: Mapping[str, str], depth: int = _DEPTH) -> Launch | None:
    """vLLM's own part of a command; None where it runs no `vllm serve`."""
    if not words or depth == 0:
        return None
    program = _base(words[0])
    if program in _SHELLS:
        script = _script(words)
        return _in_script(script, variables, depth) if script is not None else None
    if program in ("docker", "podman", "nerdctl"):
        return docker_launch(words)
    taken: dict[str, str] = {}
    if program == "env":
        words = words[1:]
        while words and (words[0].startswith("-") or _ASSIGNMENT.match(words[0])):
            if found := _ASSIGNMENT.match(words[0]):
                taken[found[1]] = found[2]
            words = words[1:]
        inner = find_launch(words, {**variables, **taken}, depth - 1)
        return None if inner is None else _with(inner, taken)
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else ""
        if _base(word) == "vllm" and following == "serve":
            return Launch(tuple(words[: place + 1]), tuple(words[place + 2 :]))
        if word == "-m" and following in _MODULES:
            return Launch(_own_program(words[:place]), tuple(words[place + 2 :]), old_entry_point=True)
        if word == "-m" and following in _CLI_MODULES and "serve" in words[place + 2 : place + 3]:
            return Launch(tuple(words[: place + 2]), tuple(words[place + 3 :]))
        if place and (_base(word) in _SHELLS or _base(word) in ("docker", "podman")):
            return find_launch(words[place:], variables, depth - 1)
    return None


def docker_launch(words: Sequence[str]) -> Launch | None:
    run = docker_run(words)
    if run is None:
        return None
    inside = find_launch(run.arguments, {}, 1)
    if inside is None and "vllm" not in run.container.image:
        return None
    arguments = run.arguments if inside is None else inside.arguments
    return Launch(("vllm",), tuple(arguments), run.environment, run.container, run.published, run.mounts)


def _own_program(before: Sequence[str]) -> tuple[str, ...]:
    """The `vllm` beside the Python that ran the old entry point."""
    python = before[-1] if before else ""
    folder, slash, _name = python.rpartition("/")
    return (f"{folder}/vllm",) if slash else ("vllm",)


def _script(words: Sequence[str]) -> str | None:
    """What stands behind -c, also as -lc."""
    for place, word in enumerate(words[1:], 1):
        if re.fullmatch(r"-[a-z]*c", word) and place + 1 < len(words):
            return words[place + 1]
        if not word.startswith("-"):
            return None
    return None


def _in_script(script: str, variables: Mapping[str, str], depth: int) -> Launch | None:
    """The command of a shell script that is vLLM, with what the script sets before it."""
    taken: dict[str, str] = {}
    for part in re.split(r"&&|\|\||;|\n(?!\s*$)", script.replace("\\\n", " ")):
        try:
            words = shlex.split(part, comments=True)
        except ValueError:
            continue
        while words and (words[0] in ("exec", "export", "nohup") or _ASSIGNMENT.match(words[0])):
            if found := _ASSIGNMENT.match(words[0]):
                taken[found[1]] = _filled(found[2], {**variables, **taken})
            words = words[1:]
        launch = find_launch([_filled(word, {**variables, **taken}) for word in words], variables, depth - 1)
        if launch is not None:
            return _with(launch, taken)
    return None


def _filled(word: str, variables: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], ""), word)


def _with(launch: Launch, taken: Mapping[str, str]) -> Launch:
    return Launch(
        launch.program,
        launch.arguments,
        {**taken, **launch.environment},
        launch.container,
        launch.published,
        launch.mounts,
        launch.old_entry_point,
    )


def _base(word: str) -> str:
    return word.rsplit("/", 1)[-1]
