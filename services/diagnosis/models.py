"""Failures of the model: where it is, who may read it, and what vLLM knows of it."""

import re

from gpudeck.services.diagnosis.entry import Advice, Entry, Found, sign
from gpudeck.services.plan.changes import options_change


def _trust(found: Found) -> Advice:
    spec = found.around.spec
    if spec is None or "--trust-remote-code" in spec.options.extra:
        return Advice()
    return Advice(change=options_change(extra=(*spec.options.extra, "--trust-remote-code")))


def _too_long(found: Found) -> Advice:
    asked, key, own = found.number("asked"), found.word("key"), found.number("own")
    if asked is None or not own:
        return Advice()
    return Advice(
        f"--max-model-len {asked} is more than the {own:,} tokens that the model was made for ({key}).",
        f"Take --max-model-len {own}, or give the model a longer RoPE scaling on purpose.",
        options_change(max_model_len=own),
    )


def _quantization(found: Found) -> Advice:
    own = found.word("own")
    return Advice(
        f"The model is quantized as {own}, and --quantization says {found.word('asked')}." if own else None,
        "Leave --quantization out: vLLM reads it from the model.",
        options_change(quantization=None),
    )


def _architecture(found: Found) -> Advice:
    name = found.word("name")
    return Advice(f"This vLLM does not know the model's architecture {name}.") if name else Advice()


def _path(found: Found) -> Advice:
    quoted = re.search(
        r"(?:specified|form 'repo_name' or 'namespace/repo_name'|directory): '([^']{1,300})'", found.text
    )
    return (
        Advice(f"{quoted[1]} is neither a model directory nor the name of a model on the hub.") if quoted else Advice()
    )


ENTRIES = (
    Entry(
        "model-path",
        "The model path is wrong",
        (
            sign("Invalid repository ID or local directory specified"),
            sign("Repo id must"),
            sign("HFValidationError"),
            sign("is not a local folder and is not a valid model identifier"),
            sign("Incorrect path_or_model_id"),
            sign(
                "No such file or directory: '",
                r"No such file or directory: '[^']{1,300}(?:config\.json|\.gguf|\.safetensors)'",
            ),
        ),
        "What the engine was given is neither a model directory nor the name of a model on the hub.",
        "Correct the path: it must hold a config.json (or be a .gguf file), and the engine's user must be able to "
        "read it.",
        "vllm/transformers_utils/config.py; huggingface_hub",
        _path,
    ),
    Entry(
        "hub-access",
        "The hub refuses this model",
        (
            sign("gated repo"),
            sign("Repository Not Found"),
            sign("401 Client Error"),
            sign("403 Client Error"),
            sign("GatedRepoError"),
            sign("RepositoryNotFoundError"),
        ),
        "The model is private, gated, or not there, and the engine has no token that may read it.",
        "Accept the model's licence on the hub and give the engine an HF_TOKEN in its secrets file, or correct the "
        "name.",
        "huggingface_hub",
    ),
    Entry(
        "hub-offline",
        "The hub can not be reached, and the model is not here",
        (
            sign("LocalEntryNotFoundError"),
            sign("We couldn't connect to 'https://huggingface.co'"),
            sign("outgoing traffic has been disabled"),
            sign("OfflineModeIsEnabled"),
        ),
        "The model is not in the local cache, and the engine can not (or may not) fetch it.",
        "Fetch it first with `hf download`, set HF_HOME to where it lies, or give the path of a model directory.",
        "huggingface_hub; transformers",
    ),
    Entry(
        "trust-remote-code",
        "The model brings code of its own",
        (
            sign("contains custom code which must be executed"),
            sign("Failed to load the model config"),
            sign("Failed to load the tokenizer"),
            sign("requires you to execute the configuration file"),
        ),
        "The model can only be loaded with Python code that lies beside it, and that is not allowed.",
        "Read that code; if you trust it, add --trust-remote-code.",
        "transformers/dynamic_module_utils.py; vllm/transformers_utils/config.py",
        _trust,
    ),
    Entry(
        "model-unknown",
        "An architecture that this vLLM does not know",
        (
            sign(
                "are not supported for now",
                r"Model architectures \[(?P<name>[^\]]{1,200})\] are not supported for now",
            ),
            sign(
                "does not recognize this architecture",
                r"(?:model type (?P<name>`[^`]{1,80}`) .{0,30})?Transformers does not recognize this architecture",
            ),
        ),
        "This vLLM, or its transformers, is older than the model.",
        "Install a newer vLLM (and transformers), or take another model.",
        "vllm/model_executor/models/registry.py; transformers",
        _architecture,
    ),
    Entry(
        "model-dropped",
        "An architecture that vLLM dropped",
        (
            sign("was supported in vLLM until", r"Model architecture (?P<name>\S{1,80}) was supported in vLLM until"),
            sign("is not supported in-tree anymore", r"Model architecture (?P<name>\S{1,80}) is not supported in-tree"),
        ),
        "This vLLM no longer serves the model's architecture itself.",
        "Install the older vLLM or the plugin that the line names.",
        "vllm/model_executor/models/registry.py",
        lambda found: Advice(f"This vLLM no longer serves {found.word('name')} itself."),
    ),
    Entry(
        "max-model-len",
        "A longer context than the model's",
        (
            sign(
                "User-specified max_model_len",
                r"User-specified max_model_len \((?P<asked>\d+)\)(?: is greater than the derived max_model_len "
                r"\((?P<key>\w{1,60})=(?P<own>\d+))?",
            ),
        ),
        "--max-model-len is more than the model was made for.",
        "Lower --max-model-len to the model's own length.",
        "vllm/config/model.py",
        _too_long,
    ),
    Entry(
        "quantization-mismatch",
        "--quantization contradicts the model",
        (
            sign(
                "does not match the quantization",
                r"model config \((?P<own>[\w.-]{1,40})\) does not match the quantization method specified in the "
                r"`quantization` argument \((?P<asked>[\w.-]{1,40})\)",
            ),
            sign("does not match the quantization method"),
        ),
        "The model says how it is quantized, and --quantization says something else.",
        "Leave --quantization out: vLLM reads it from the model.",
        "vllm/config/model.py",
        _quantization,
    ),
    Entry(
        "plugin-missing",
        "A format that needs a plugin",
        (
            sign("Unknown quantization method", r"Unknown quantization method: (?P<name>gguf|bitsandbytes)\b"),
            sign("Load format `", r"Load format `(?P<name>gguf|bitsandbytes)` is not supported"),
        ),
        "vLLM reads GGUF from 0.24 on, and bitsandbytes in later versions, only with a plugin.",
        "Install the plugin in the engine's environment, or take the model in another format.",
        "vllm/config/model.py (0.24 on)",
    ),
    Entry(
        "no-weights",
        "A directory without weights",
        (sign("Cannot find any model weights with"),),
        "The model directory holds no weights of a kind that the engine loads.",
        "Finish the download (look for *.incomplete and *.safetensors), or name the format with --load-format.",
        "vllm/model_executor/model_loader/default_loader.py",
    ),
    Entry(
        "weights-damaged",
        "A weight file that can not be read",
        (sign("Error while deserializing header"), sign("SafetensorError"), sign("MetadataIncompleteBuffer")),
        "A weight file is cut off or damaged, as after a download that broke off.",
        "Compare the sizes with the hub's and fetch the file again.",
        "safetensors",
    ),
    Entry(
        "lora-rank",
        "A LoRA adapter of too high a rank",
        (sign("is greater than max_lora_rank", r"LoRA rank (?P<rank>\d+) is greater than max_lora_rank"),),
        "An adapter has a higher rank than the engine makes room for.",
        "Raise --max-lora-rank to the adapter's rank or the next of 8, 16, 32, 64, 128, 256, 320, 512.",
        "vllm/lora/peft_helper.py; vllm#2847",
        lambda found: Advice(fix=_lora_fix(found.number("rank"))),
    ),
    Entry(
        "chat-template",
        "No chat template",
        (
            sign("default chat template is no longer"),
            sign("appears path-like"),
            sign("looks like a file path, but it failed to be opened"),
            sign("does not define one", r"must provide a chat template if the tokenizer does not define one"),
        ),
        "The model brings no chat template, or the one that --chat-template names is not there.",
        "Give --chat-template the path of a .jinja file that the engine's user can read.",
        "vllm/renderers/chat_utils.py; transformers",
    ),
)

_LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)


def _lora_fix(rank: int | None) -> str | None:
    """vLLM takes only some ranks (vllm/config/lora.py)."""
    fitting = next((allowed for allowed in _LORA_RANKS if rank is not None and allowed >= rank), None)
    return None if fitting is None else f"Raise it: --max-lora-rank {fitting}."
