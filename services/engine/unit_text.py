"""The text of an engine's unit: what systemd is told, why, and how gpudeck knows its own units again.

Pure: no file is read or written here.  Directives and their syntax: systemd.unit(5), systemd.service(5),
systemd.exec(5), systemd.kill(5), systemd.syntax(7).
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from gpudeck.services.engine.hardening import hardening
from gpudeck.services.engine.quoting import account, assignment, command, to_end_of_line
from gpudeck.services.engine.types import Scope
from gpudeck.services.engine.unit_line import UnitLine
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan import spec_json
from gpudeck.services.plan.secrets import refuse_exposed
from gpudeck.services.plan.types import EngineSpec

SECTION = "X-Gpudeck"  # systemd skips sections whose names begin with X-
_KEY = "Spec="
_SUM = "Sum="

STOP_SECONDS = 60  # a vLLM that streams needed more than 40 s after SIGTERM
_DRAIN_MARGIN = 30  # what vLLM needs beyond its own --shutdown-timeout
_BACK_OFF_SINCE = 254  # RestartSteps= and RestartMaxDelaySec= are unknown, and warned of, before


def unit_text(
    spec: EngineSpec,
    *,
    argv: Sequence[str],
    environment: Mapping[str, str],
    scope: Scope = Scope.SYSTEM,
    secrets_file: str,
    systemd_version: int = 252,
) -> str:
    """The whole unit file of `spec`.

    `argv` begins with an absolute path; `secrets_file` is where the operator may put variables that no one else shall
    read (it need not exist); `systemd_version` decides what may be written, since an older systemd warns of directives
    that it does not know.

    Raises OperatorError for text that no unit can carry (control characters above all) and for secrets.
    """
    lines = unit_lines(
        spec,
        argv=argv,
        environment=environment,
        scope=scope,
        secrets_file=secrets_file,
        systemd_version=systemd_version,
    )
    return text_of(lines)


def text_of(lines: Sequence[UnitLine]) -> str:
    """The lines as a file."""
    return "".join(f"{line.text}\n" for line in lines)


def unit_lines(
    spec: EngineSpec,
    *,
    argv: Sequence[str],
    environment: Mapping[str, str],
    scope: Scope = Scope.SYSTEM,
    secrets_file: str,
    systemd_version: int = 252,
) -> tuple[UnitLine, ...]:
    """The lines of `unit_text`, each with what it is for."""
    refuse_exposed(argv, environment, secrets_file)
    user = spec.user if scope is Scope.SYSTEM and spec.user not in ("", "root") else None
    lines = (
        UnitLine(f"# Written by gpudeck for the engine {spec.name}, and written anew as a whole when that changes."),
        UnitLine("# What is to last belongs into a drop-in: systemctl edit."),
        UnitLine(""),
        *_unit_section(spec, scope),
        UnitLine(""),
        *_service_section(user, argv, environment, scope, secrets_file, systemd_version),
        UnitLine(""),
        *_install_section(scope),
        UnitLine(""),
        UnitLine(f"[{SECTION}]", "systemd skips this section: it is how gpudeck knows its own unit again."),
        UnitLine(_KEY + spec_json.dumps(spec), "The plan that this unit was made from."),
    )
    return (*lines, UnitLine(_SUM + _sum(text_of(lines)), "Of all above: tells an edit by hand."))


def edited(text: str) -> bool:
    """Whether a unit that gpudeck wrote has been changed since; False for others' units."""
    if spec_of(text) is None:
        return False
    head, found, last = text.rpartition(f"\n{_SUM}")
    return not found or last.rstrip("\n") != _sum(f"{head}\n")


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def spec_of(text: str) -> EngineSpec | None:
    """The spec that a unit was made from; None where gpudeck did not write it, or its spec can not be read any more."""
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip()
        elif section == f"[{SECTION}]" and line.startswith(_KEY):
            try:
                return spec_json.loads(line.removeprefix(_KEY))
            except OperatorError:
                return None
    return None


def _unit_section(spec: EngineSpec, scope: Scope) -> tuple[UnitLine, ...]:
    network = (
        UnitLine("Wants=network-online.target", "The engine binds an address and may fetch from the hub."),
        UnitLine("After=network-online.target", "Wants alone would start both at once."),
    )
    return (
        UnitLine("[Unit]"),
        UnitLine(f"Description={to_end_of_line(f'vLLM engine {spec.name}: {spec.model}')}"),
        *(network if scope is Scope.SYSTEM else ()),
        UnitLine(
            "StartLimitIntervalSec=1h",
            "An engine may need minutes to fail, so the starts of a whole hour are counted.",
        ),
        UnitLine("StartLimitBurst=5", "After five failed starts systemd gives up; a start by hand counts anew."),
    )


def _service_section(
    user: str | None,
    argv: Sequence[str],
    environment: Mapping[str, str],
    scope: Scope,
    secrets_file: str,
    systemd_version: int,
) -> tuple[UnitLine, ...]:
    lines = [
        UnitLine("[Service]"),
        UnitLine("Type=exec", "A program that can not be executed fails the start at once."),
    ]
    if user is not None:
        lines.append(UnitLine(f"User={account(user)}", "The engine runs as this user instead of root."))
    for name, value in with_path(argv, environment).items():
        lines.append(UnitLine(f"Environment={assignment(name, value)}", _WHY.get(name, "")))
    lines += [
        UnitLine(
            f"EnvironmentFile=-{to_end_of_line(secrets_file)}",
            "Variables that no one else may read, such as VLLM_API_KEY and HF_TOKEN; the file may be absent.",
        ),
        UnitLine(f"ExecStart={command(argv)}", "The colon keeps systemd from replacing $NAME in the words."),
        UnitLine("Restart=always", "A vLLM that dies after it was ready exits 0, so on-failure would not restart it."),
    ]
    if systemd_version >= _BACK_OFF_SINCE:
        lines += [
            UnitLine("RestartSec=5s", "The first wait before a restart …"),
            UnitLine("RestartSteps=4", "… which grows in four steps …"),
            UnitLine("RestartMaxDelaySec=2min", "… to this one."),
        ]
    else:
        lines.append(UnitLine("RestartSec=15s", "The wait before a restart (systemd before 254 can not let it grow)."))
    stop = _stop_seconds(argv)
    lines += [
        UnitLine("TimeoutStartSec=infinity", "Loading a large model takes as long as it takes."),
        UnitLine(f"TimeoutStopSec={stop}s", "Time to finish what is streamed; a vLLM that starts ignores SIGTERM."),
        UnitLine("KillMode=control-group", "A worker that is left behind would hold its card."),
        UnitLine("OOMPolicy=kill", "Where the kernel ends one process for memory, the rest goes and all starts anew."),
        UnitLine("LimitNOFILE=1048576", "Each connection, worker pipe and weight file takes a descriptor."),
        UnitLine("LimitMEMLOCK=infinity", "Memory that cards or network adapters read directly is locked."),
        UnitLine("TasksMax=infinity", "Each worker has threads by the number of CPU cores, above systemd's own limit."),
        UnitLine("LogRateLimitIntervalSec=0", "No line of the engine's log is dropped."),
    ]
    if scope is Scope.SYSTEM:
        lines += hardening(user, environment)
    return tuple(lines)


_WHY = {
    "CUDA_DEVICE_ORDER": "CUDA counts the cards as NVML and this plan do; its own order is fastest first.",
    "CUDA_VISIBLE_DEVICES": "The cards of the plan in rank order.",
    "VLLM_PP_LAYER_PARTITION": "How many layers each pipeline stage takes.",
    "PYTHONUNBUFFERED": "The last words before a crash reach the journal.",
    "HF_HOME": "Where the Hugging Face cache lies.",
    "PATH": "What lies beside vllm in its environment is found too: FlashInfer compiles kernels with the ninja there.",
}
# What systemd gives its services (systemd.exec(5), "Environment Variables in Spawned Processes").
_USUAL_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def with_path(argv: Sequence[str], environment: Mapping[str, str]) -> Mapping[str, str]:
    """The environment with a PATH that begins with the program's own folder, where that is not a usual one."""
    folder = str(PurePosixPath(argv[0]).parent)
    if "PATH" in environment or folder in _USUAL_PATH or ":" in folder:
        return environment
    return {**environment, "PATH": ":".join((folder, *_USUAL_PATH))}


def _stop_seconds(argv: Sequence[str]) -> int:
    """How long a stop may take: longer where vLLM was told to drain requests first."""
    for word, following in zip(argv, [*argv[1:], ""], strict=True):
        value = following if word == "--shutdown-timeout" else word.removeprefix("--shutdown-timeout=")
        if word.startswith("--shutdown-timeout") and value.isascii() and value.isdigit():
            return max(STOP_SECONDS, int(value) + _DRAIN_MARGIN)
    return STOP_SECONDS


def _install_section(scope: Scope) -> tuple[UnitLine, ...]:
    target = "multi-user.target" if scope is Scope.SYSTEM else "default.target"
    return (UnitLine("[Install]"), UnitLine(f"WantedBy={target}", "What enabling ties it to: started at boot."))
