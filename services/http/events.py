"""What a streamed answer brings, piece by piece.  All texts are foreign."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `role` is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One model of /v1/models; `max_model_len` is its context in tokens, None where the server does not tell."""

    name: str
    max_model_len: int | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning, which precedes the answer and is no part of it."""

    text: str


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    """A piece of the model's own words on why it does not answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a call that the model wants made: its place among the answer's calls, and what is added to it."""

    place: int
    name: str
    arguments: str  # JSON once it is whole


@dataclass(frozen=True, slots=True)
class NoTemplate:
    """The model has no chat template: the turns were sent to /v1/completions as one text.  Comes before the answer."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counted them."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Done:
    """The end of an answer that came whole.  Times are in seconds from the sending of the request."""

    finish_reason: str | None  # stop, length, tool_calls …
    seconds: float
    ttft: float | None  # to the first piece of text or reasoning; None for an empty answer
    usage: Usage | None  # None where the server sent none

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens a second after the first one, which waits for the prompt; None where it can not be told."""
        if self.usage is None or self.ttft is None or self.usage.completion_tokens < 2 or self.seconds <= self.ttft:
            return None
        return (self.usage.completion_tokens - 1) / (self.seconds - self.ttft)


ChatEvent = NoTemplate | TextDelta | ReasoningDelta | RefusalDelta | ToolCallDelta | Usage | Done
