"""A failure recognised in an engine's log, and what is known around it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gpudeck.services.box.types import Snapshot
from gpudeck.services.engine.phases import Phase
from gpudeck.services.plan.changes import Change
from gpudeck.services.plan.types import EngineSpec


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`line` is foreign text: what the log says, without its prefixes."""

    rule: str
    line: str
    line_number: int  # in what was read, from 1
    meaning: str  # one sentence or two: what happened, on this box where that is known; may hold foreign names
    fix: str | None  # the way out
    change: Change | None = None  # what a key does to the spec for that fix


@dataclass(frozen=True, slots=True)
class Around:
    """What is known beside the log; all of it may be missing, as for a log from another machine."""

    snapshot: Snapshot | None = None
    spec: EngineSpec | None = None
    next_port: Callable[[int], int] = lambda port: port  # the next port from one on that seems free


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the log itself told before the line."""

    phase: Phase = Phase.STARTING  # the last one before the failure
    kv_cache_tokens: int | None = None
    given: Mapping[str, object] = field(default_factory=dict)  # what vLLM says that it was given: its non-default args
