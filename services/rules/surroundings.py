"""What stands around a plan beside its box: the vLLM that would run it, and the other engines."""

from dataclasses import dataclass

from gpudeck.services.box.types import BoxEvent, Reading
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.plan.versions import NEWEST_KNOWN
from gpudeck.services.plan.what_if import Addition


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What rules know beside box, model and spec; what is left at its default is not known, and not judged."""

    vllm_version: str = NEWEST_KNOWN
    version_told: bool = False  # whether the newest known is the engine's own, and not what is assumed
    engine_cuda: str | None = None  # the CUDA that the engine's torch was built for: "13.0"
    neighbours: tuple[EngineSpec, ...] = ()  # other engines that run or are planned on this box, never the spec itself
    readings: tuple[Reading, ...] = ()  # the cards' modes, MIG, ECC and rows, as far as they were read
    events: tuple[BoxEvent, ...] = ()  # what happened to the box while it was watched: Xids
    tokenizer_tokens: int | None = None  # tokens of the tokenizer that --tokenizer names, where it can be read here
    additions: tuple[Addition, ...] = ()  # cards and bridges in the box that are not there: what if
    key_set: bool = False  # the engine's key file is known to hold a VLLM_API_KEY

    @property
    def memory_version(self) -> str | None:
        """The version that memory is computed for; None where the engine's own is not known."""
        return self.vllm_version if self.version_told or self.vllm_version != NEWEST_KNOWN else None
