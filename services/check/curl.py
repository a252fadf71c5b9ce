"""The same request by hand."""

import json
import shlex

from gpudeck.services.text import printable


def curl_line(url: str, model: str, prompt: str = "Say hello in one short sentence.") -> str:
    """A curl command with URL and model; the key stands in it as $VLLM_API_KEY, for the shell to put in.

    An engine that wants no key takes no notice of an empty one.  Foreign text is quoted for the shell.
    """
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": prompt}], "max_tokens": 64})
    words = ("curl", "-sS", f"{url}/v1/chat/completions", "-H", "Content-Type: application/json")
    # In double quotes, so that the shell puts the key in.
    key = '-H "Authorization: Bearer $VLLM_API_KEY"'
    return printable(f"{shlex.join(words)} {key} -d {shlex.quote(body)}")
