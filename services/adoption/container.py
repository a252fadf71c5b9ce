"""`docker run` (podman and nerdctl take the same words), as far as it concerns an engine."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpudeck.services.adoption.types import Container
from gpudeck.services.plan.versions import is_release

# Options that stand alone; every other one takes a value.
_FLAGS = (
    "--rm", "-d", "--detach", "-i", "-t", "-it", "-ti", "-dit", "-itd", "-td", "--interactive", "--tty", "--init",
    "--privileged", "--read-only", "--no-healthcheck", "--oom-kill-disable", "-P", "--publish-all", "--sig-proxy",
    "--replace",
)  # fmt: skip
EVERYWHERE = "0.0.0.0"  # noqa: S104, the name of what is to be warned of


@dataclass(frozen=True, slots=True)
class DockerRun:
    container: Container
    arguments: tuple[str, ...]  # behind the image
    environment: dict[str, str]
    published: dict[int, tuple[str, int]]
    mounts: dict[str, str]


def docker_run(words: Sequence[str]) -> DockerRun | None:
    """The parts of a `docker run`; None for other commands of docker."""
    rest = list(words[1:])
    while rest and rest[0] not in ("run", "create"):
        rest.pop(0)
    if not rest:
        return None
    rest.pop(0)
    given: list[tuple[str, str]] = []
    while rest and rest[0].startswith("-"):
        name, separator, value = rest.pop(0).partition("=")
        if not separator and name not in _FLAGS and rest:
            value = rest.pop(0)
        given.append((name, value))
    if not rest:
        return None
    image, *arguments = rest
    options = dict(given)
    entry = options.get("--entrypoint")
    if entry:
        arguments = [entry, *arguments]
    gpus = next((value.strip("\"'") for name, value in given if name == "--gpus"), None)
    return DockerRun(
        Container(image, options.get("--name"), gpus),
        tuple(arguments),
        _environment(given),
        dict(filter(None, (_published(value) for name, value in given if name in ("-p", "--publish")))),
        dict(filter(None, (_mount(value) for name, value in given if name in ("-v", "--volume")))),
    )


def tag_version(image: str) -> str | None:
    """`0.10.2` of "vllm/vllm-openai:v0.10.2"; None for tags that name no release."""
    tag = image.rsplit("/", 1)[-1].partition(":")[2].partition("@")[0].removeprefix("v").split("-")[0]
    return tag if is_release(tag) else None


def _environment(given: Sequence[tuple[str, str]]) -> dict[str, str]:
    """A variable without a value is handed through from outside: what it holds is not known here."""
    pairs = [value.partition("=") for name, value in given if name in ("-e", "--env")]
    return {name: value for name, separator, value in pairs if separator}


def _published(value: str) -> tuple[int, tuple[str, int]] | None:
    """`127.0.0.1:8002:8000` gives 8000 and where that is outside; docker publishes on all addresses by itself."""
    before, _, inside = value.partition("/")[0].rpartition(":")
    address, _, outside = before.rpartition(":")
    if not (outside.isdecimal() and inside.isdecimal()):
        return None
    return int(inside), (address.strip("[]") or EVERYWHERE, int(outside))


def _mount(value: str) -> tuple[str, str] | None:
    outside, separator, inside = value.partition(":")
    return (inside.split(":")[0].rstrip("/"), outside.rstrip("/")) if separator and outside.startswith("/") else None
