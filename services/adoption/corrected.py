"""The unit that gpudeck would write in the place of a hand-written one, as text and as a diff."""

import difflib
from dataclasses import replace

from gpudeck.services.adoption.types import Review, UnitFiles
from gpudeck.services.engine.systemd.files import secrets_file
from gpudeck.services.engine.types import Scope
from gpudeck.services.engine.unit_text import unit_text
from gpudeck.services.plan.command import argv, environment
from gpudeck.services.plan.secrets import masked, secrets_of

_ENV = "/usr/bin/env"  # finds on the unit's PATH what the hand-written one left to a shell


def corrected_text(review: Review, scope: Scope) -> str | None:
    """The whole unit; None where none can be written.  Raises OperatorError for text that no unit can carry."""
    spec = review.corrected
    if spec is None:
        return None
    if not spec.program[0].startswith("/"):
        spec = replace(spec, program=(_ENV, *spec.program))
    user = review.adopted.user
    spec = replace(spec, user=None if user in ("root", "0") or scope is Scope.USER else user)
    return unit_text(
        spec,
        argv=argv(spec),
        environment=environment(spec),
        scope=scope,
        secrets_file=str(secrets_file(scope, f"vllm-{spec.name}.service")),
    )


def difference(files: UnitFiles, text: str, name: str) -> str:
    """From the unit as it stands, drop-ins behind it, to the corrected one."""
    standing = "\n".join(part.rstrip("\n") for part in files.texts)
    lines = difflib.unified_diff(
        standing.splitlines(), text.splitlines(), files.path or files.unit, f"vllm-{name}.service", lineterm=""
    )
    return masked("\n".join(lines))


def keys_words(review: Review, scope: Scope) -> str:
    """What becomes of the keys that the unit shows to everyone; "" where it holds none."""
    names = secrets_of(review.adopted.spec).names
    if not names or review.corrected is None:
        return ""
    unit = f"vllm-{review.corrected.name}.service"
    return f"{' and '.join(names)} would go into {secrets_file(scope, unit)}, which only its owner reads (mode 0600)."
