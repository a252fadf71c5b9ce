"""The shapes of the JSON documents that `gpudeck engines` and `status` print."""

from gpudeck.services.box.limits import MAX_INDEX
from gpudeck.services.box.shape import Field, Flag, Listing, OrNull, Record, Shape, Text, Whole

_ANY = 1 << 62
_MANY = 1 << 20
_SENTENCE = 1 << 16  # one may repeat a path, or a line of a log


def told(shape: Shape, about: str) -> Field:
    """A key that is always there, null where it is not known: of units that others wrote."""
    return Field(OrNull(shape), about, required=True)


FINDING_DOCUMENT = Record(
    {
        "rule": Field(Text(), "the rule's id", required=True),
        "severity": Field(Text("error|warning|info", "a severity"), "how bad it is", required=True),
        "message": Field(Text(most=_SENTENCE), "what is found, one sentence", required=True),
        "fix": told(Text(most=_SENTENCE), "the way out, one sentence"),
    }
)

ENGINE_DOCUMENT = Record(
    {
        "name": Field(Text(), "the engine's name", required=True),
        "unit": Field(Text(), "its unit: vllm-<name>.service", required=True),
        "scope": Field(Text("system|user|embedded", "a scope"), "who runs it", required=True),
        "managed": Field(Flag(), "whether gpudeck wrote its unit", required=True),
        "state": Field(
            Text("active|reloading|inactive|failed|activating|deactivating|maintenance|refreshing", "a state"),
            "systemd's ActiveState",
            required=True,
        ),
        "ready": Field(Flag(), "whether it answers on its port now", required=True),
        "port": told(Whole(1, 65535), "the port that it serves on"),
        "model": told(Text(most=_SENTENCE), "the model, as vLLM was told"),
        "gpus": told(Listing(Whole(0, MAX_INDEX), _MANY), "its cards in the order of their ranks"),
        "tensor_parallel_size": told(Whole(1, _MANY), "cards of each stage"),
        "pipeline_parallel_size": told(Whole(1, _MANY), "stages of each copy"),
        "pid": told(Whole(1, _ANY), "its main process"),
        "since": told(Text(), "when it entered this state, ISO 8601 in UTC"),
        "findings": Field(Listing(FINDING_DOCUMENT, _MANY), "what is odd about it", required=True),
    }
)

ENGINES_DOCUMENT = Record(
    {"engines": Field(Listing(ENGINE_DOCUMENT, _MANY), "every engine on the box, by name", required=True)}
)

# What docs/ publishes: file name → shape and title.
PUBLISHED: dict[str, tuple[Shape, str]] = {
    "engines-command.schema.json": (ENGINES_DOCUMENT, "gpudeck engines --json"),
    "status-command.schema.json": (ENGINE_DOCUMENT, "gpudeck status --json"),
}
