"""vLLM's refusals in words: what its status codes and error objects mean and what to do."""

import json
import re

from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

_MAX_MESSAGE = 400  # characters of the server's own words that are shown

# In the order of versions: "maximum context length is 1024 tokens. However, you requested 2030 tokens (30 in the
# messages, 2000 in the completion)"; "'max_tokens' … is too large: 2000. This model's maximum context length is 1024
# tokens and your request has 30 input tokens"; "the model's context length is only 1024 tokens, resulting in a maximum
# input length of 1008 tokens".
_CONTEXT = re.compile(r"(?:maximum )?context length is (?:only )?(\d+)")
_INPUT = re.compile(r"(\d+) in the (?:messages|prompt)|request has (\d+) input tokens|passed (\d+) input tokens")
_MAX_INPUT = re.compile(r"maximum input length of (\d+)")
# 0.32 cuts an answer to what is left beside the prompt, and refuses only what no prompt leaves room for.
_MAX_ANSWER = re.compile(r"max_tokens=\d+ cannot be greater than max_model_len=(\d+)")
_ENGINE_DEAD = re.compile(r"EngineDead|EngineCore encountered an issue|[Ee]ngine (process )?(is )?dead")


class EngineUnreachableError(OperatorError):
    """Nothing listens at the address, or it did not answer in time."""


class ContextTooLongError(OperatorError):
    """The request does not fit into the model's context."""

    def __init__(self, sentence: str, limit: int, fits: int | None) -> None:
        super().__init__(sentence)
        self.limit = limit  # the model's context in tokens
        self.fits = fits  # tokens that the answer may have beside this prompt; None where that was not told


class UnknownModelError(OperatorError):
    """The engine serves no model of this name."""


class NoChatTemplateError(OperatorError):
    """The model can not be asked in turns: its tokenizer has no chat template."""


def refusal(where: str, status: int, body: bytes, *, has_key: bool) -> OperatorError:
    """The error for an answer with `status` (4xx, 5xx) and `body` from the engine at `where`."""
    said = server_words(body)
    if status in (401, 403):
        if has_key:
            return OperatorError(f"{where} refused the API key ({status}): it was started with another VLLM_API_KEY.")
        return OperatorError(f"{where} wants an API key ({status}): set VLLM_API_KEY to the one it was started with.")
    if status == 400 and (found := _CONTEXT.search(said)):
        return _context(where, said, int(found[1]))
    if status == 400 and (found := _MAX_ANSWER.search(said)):
        limit = int(found[1])
        return ContextTooLongError(
            f"The answer would not fit: {where} holds {limit:,} tokens of context, so that max tokens can be at most "
            f"{limit:,}.",
            limit,
            limit,
        )
    if status == 404 and "model" in said.lower():
        return UnknownModelError(f"{where} does not serve this model: {said}")
    if status == 404:
        return OperatorError(f"{where} has no such address (404): is it a vLLM server of version 0.6 or later?")
    if status == 400 and "chat template" in said:
        return NoChatTemplateError(
            f"The model at {where} has no chat template, so that it can only complete text: give --chat-template."
        )
    if _ENGINE_DEAD.search(said):
        return OperatorError(f"The engine at {where} has died ({status}): its log says why; start it again.")
    if status >= 500:
        return OperatorError(f"{where} failed ({status}): {said or 'it gave no reason'}. Its log says more.")
    return OperatorError(f"{where} refused the request ({status}): {said or 'it gave no reason'}")


def stream_error(where: str, error: object) -> OperatorError:
    """The error for an error object inside a stream (vLLM sends one when the engine dies or a request fails)."""
    said = _words(error)
    if found := _CONTEXT.search(said):
        return _context(where, said, int(found[1]))
    if _ENGINE_DEAD.search(said):
        return OperatorError(
            f"The engine at {where} died while it answered; what had come stays. Its log says why; start it again."
        )
    return OperatorError(f"{where} broke off the answer: {said or 'it gave no reason'}; what had come stays.")


def server_words(body: bytes) -> str:
    """The message in an error's body, short and printable; "" where there is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return _short(body.decode("utf-8", "replace"))
    if isinstance(document, dict):
        # {"error": {"message": …}}; {"object": "error", "message": …} before 0.10; {"detail": …} from FastAPI itself.
        for key in ("error", "message", "detail"):
            if key in document:
                return _words(document[key])
    return _words(document)


def _words(value: object) -> str:
    if isinstance(value, dict) and "message" in value:
        value = value["message"]
    return _short(value if isinstance(value, str) else json.dumps(value))


def _short(text: str) -> str:
    text = printable(" ".join(text.split()))
    return text if len(text) <= _MAX_MESSAGE else text[: _MAX_MESSAGE - 1] + "…"


def _context(where: str, said: str, limit: int) -> ContextTooLongError:
    if found := _MAX_INPUT.search(said):
        return ContextTooLongError(
            f"The prompt does not fit: {where} holds {limit:,} tokens of context, at most {int(found[1]):,} of them "
            "for the prompt. Shorten it.",
            limit,
            None,
        )
    prompt = next((int(group) for group in _groups(said) if group), None)
    if prompt is not None and prompt < limit:
        return ContextTooLongError(
            f"The answer would not fit: {where} holds {limit:,} tokens of context and the prompt has {prompt:,}, so "
            f"that max tokens can be at most {limit - prompt:,}.",
            limit,
            limit - prompt,
        )
    return ContextTooLongError(
        f"The prompt does not fit: {where} holds {limit:,} tokens of context. Shorten it.", limit, 0
    )


def _groups(said: str) -> tuple[str | None, ...]:
    found = _INPUT.search(said)
    return found.groups() if found else ()
