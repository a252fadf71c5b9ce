"""The hand-written services of a runner's systemds, read and judged."""

from contextlib import suppress
from dataclasses import dataclass

from gpudeck.services.adoption.corrected import corrected_text, difference
from gpudeck.services.adoption.on_box import Found, find_others
from gpudeck.services.adoption.review import Ground, review
from gpudeck.services.adoption.types import Adopted, Review
from gpudeck.services.box.types import Box
from gpudeck.services.engine.types import Runner, Scope
from gpudeck.services.errors import OperatorError
from gpudeck.services.models.read import read_model
from gpudeck.services.plan.versions import NEWEST_KNOWN, is_release
from gpudeck.services.rules.surroundings import Surroundings
from gpudeck.services.vllm.installed import installed


@dataclass(frozen=True, slots=True)
class Reviewed:
    """One such service, what is wrong with it, and what gpudeck would write as a unified diff (None: nothing)."""

    found: Found
    review: Review
    diff: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Scope and unit: the user's systemd and the system's may have units of one name."""
        return self.found.state.scope.value, self.found.state.unit


def found_by(runner: Runner, box: Box | None = None) -> list[Found]:
    """The services of others that run vLLM; none where no systemd runs engines.  Raises OperatorError."""
    if runner.scope is Scope.EMBEDDED:
        return []
    from gpudeck.services.engine.systemd.beside import Beside
    from gpudeck.services.engine.systemd.manager import SystemdRunner

    systemds = [runner.own, runner.system] if isinstance(runner, Beside) else [runner]
    asked = [each for each in systemds if isinstance(each, SystemdRunner) and not each.lost]
    return [each for systemd in asked for each in find_others(systemd, box)]


def judged(adopted: Adopted, box: Box | None, vllm_version: str) -> Review:
    """What is found about it on this box; its model is read where it can be.

    `vllm_version` counts for a container: its image holds a vLLM of its own, of which no more than a tag is known.
    """
    model = None
    with suppress(OperatorError):
        model = read_model(adopted.spec.model, dict(adopted.spec.environment))
    return review(adopted, Ground(box, model, _around(adopted, vllm_version)))


def _around(adopted: Adopted, vllm_version: str) -> Surroundings:
    if adopted.container is not None:
        return Surroundings(vllm_version=vllm_version)
    engine = installed(adopted.spec.program)
    told = engine.version if engine is not None else None
    version = told if told is not None and is_release(told) else NEWEST_KNOWN
    return Surroundings(vllm_version=version, engine_cuda=engine.cuda if engine is not None else None)


def reviewed(found: Found, box: Box | None, vllm_version: str) -> Reviewed:
    told = judged(found.adopted, box, vllm_version)
    diff = None
    with suppress(OperatorError):  # text that no unit can carry
        text = corrected_text(told, found.state.scope)
        diff = difference(found.files, text, found.adopted.spec.name) if text is not None else None
    return Reviewed(found, told, diff)
