"""What the installed vLLM itself said to a plan, as findings."""

from dataclasses import replace

from gpudeck.services.plan.findings import Finding, Judgement, Severity
from gpudeck.services.rules.rule import Rule
from gpudeck.services.vllm.answer import Answer, Reply

_SOURCE = "the installed vLLM: make_arg_parser, AsyncEngineArgs.create_engine_config"
REFUSES = Rule(
    "vllm-refuses",
    Severity.ERROR,
    "The installed vLLM refuses the command",
    "vLLM read the command line, made its configuration from it and raised an error: a start would end with the same.",
    _SOURCE,
)
ACCEPTS = Rule(
    "vllm-accepts",
    Severity.INFO,
    "The installed vLLM accepts the command",
    "vLLM read the command line and made its configuration from it. What only its workers check, such as KV heads "
    "against tensor parallelism or memory, is not part of that.",
    _SOURCE,
)
NOT_ASKED = Rule(
    "vllm-not-asked",
    Severity.INFO,
    "The installed vLLM could not be asked",
    "Without a GPU, or without its own environment, vLLM can not judge a command line; that tells nothing of the plan.",
    _SOURCE,
)
RULES = (REFUSES, ACCEPTS, NOT_ASKED)
_LONGEST = 360


def finding(answer: Answer) -> Finding:
    """The one finding that an answer is."""
    name = "The installed vLLM"
    if answer.engine is not None and answer.engine.version is not None:
        cuda = f" (CUDA {answer.engine.cuda})" if answer.engine.cuda is not None else ""
        name = f"The installed vLLM {answer.engine.version}{cuda}"
    text = answer.text if len(answer.text) <= _LONGEST else f"{answer.text[:_LONGEST].rsplit(' ', 1)[0]} …"
    if answer.reply is Reply.REFUSED:
        return REFUSES.finding(f"{name} refuses: {text}", "Change the option or the placement that it names.")
    if answer.reply is Reply.NOT_ASKED:
        return NOT_ASKED.finding(f"{name} could not be asked: {text.rstrip('.')}.")
    if answer.flags_only:
        return ACCEPTS.finding(f"{name} lists every option in its --help; values were not tried.")
    return ACCEPTS.finding(f"{name} accepts this command.")


def with_answer(judgement: Judgement, answer: Answer) -> Judgement:
    """The judgement with vLLM's own word in it: a refusal first, anything else last."""
    told = finding(answer)
    others = tuple(other for other in judgement.findings if other.rule not in {rule.id for rule in RULES})
    findings = (told, *others) if told.severity is Severity.ERROR else (*others, told)
    return replace(judgement, findings=findings)
