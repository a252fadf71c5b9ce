"""What systemd loaded, as D-Bus tells it, is what the spec says, word for word."""

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpudeck.services.engine.systemd.bus import address_of
from gpudeck.services.engine.systemd.connection import CALL_SECONDS, Connection
from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.engine.systemd.units import facts_of, load
from gpudeck.services.engine.types import Scope
from gpudeck.services.engine.unit_text import spec_of, unit_text, with_path
from gpudeck.services.plan.command import argv, environment
from gpudeck.services.plan.extra import option_name
from gpudeck.services.plan.secrets import is_secret
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from tests.rigs.small_engines import inside_systemd

pytestmark = inside_systemd

# All that a unit can carry: no controls, no surrogates, none of Unicode's noncharacters.
carried = st.characters(exclude_categories=("Cc", "Cs")).filter(
    lambda character: not 0xFDD0 <= ord(character) <= 0xFDEF and ord(character) & 0xFFFE != 0xFFFE
)
texts = st.one_of(
    st.text(carried, max_size=40),
    st.text(st.sampled_from(list(" \"'\\%$;{}#!@:+-=n")), max_size=12),
    st.sampled_from(["", ";", "\\;", "$HOME", "${HOME}", "%h", "%%", "\\n", "\\x41", "a\\", "'", '"', "#", " ", "-"]),
)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True).filter(lambda name: not is_secret(name))
programs = st.lists(
    st.text(carried.filter(lambda character: character not in "/\"'\\"), min_size=1, max_size=12).filter(
        lambda part: part not in (".", "..")
    ),
    min_size=1,
    max_size=3,
).map(lambda parts: "/" + "/".join(parts))
specs = st.builds(
    EngineSpec,
    name=st.just("generated"),
    model=texts,
    placement=st.just(Placement(((0, 1), (2, 3)))),
    options=st.builds(
        EngineOptions,
        served_model_name=texts,
        extra=st.lists(texts.filter(lambda word: not option_name(word).startswith(("--api-k", "--hf-t")))).map(tuple),
    ),
    program=st.tuples(programs),
    environment=st.lists(st.tuples(names, texts), unique_by=lambda pair: pair[0]).map(tuple),
    user=st.sampled_from([None, "root", "nobody", "_a-b"]),
    quiet=st.booleans(),
)
numbers = itertools.count()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spec=specs)
def test_generated_specs(connection: Connection, spec: EngineSpec) -> None:
    # A new name each time: a unit that is not loaded yet needs no reload.
    unit = f"vllm-generated-{next(numbers)}.service"
    path = Path("/etc/systemd/system", unit)
    text = unit_text(spec, argv=argv(spec), environment=environment(spec), secrets_file="/etc/gpudeck/x.env")
    path.write_text(text)
    variables = with_path(argv(spec), environment(spec))
    try:
        facts = facts_of(connection, load(connection, unit))
        assert facts["LoadState"] == "loaded", facts["LoadError"]
        ((program, words, *_),) = facts["ExecStart"]
        assert (program, *words) == (spec.program[0], *argv(spec))
        assert facts["Environment"] == [f"{name}={value}" for name, value in variables.items()]
        assert facts["User"] == ("" if spec.user in (None, "root") else spec.user)
        assert facts["EnvironmentFiles"] == [("/etc/gpudeck/x.env", True)]
        assert spec_of(path.read_text()) == spec
    finally:
        path.unlink()


def test_the_other_directives_are_taken_as_they_were_meant(connection: Connection, runner: SystemdRunner) -> None:
    spec = EngineSpec("meant", "/m 100%", Placement(((0,),)), program=("/bin/true",))
    runner.install(spec)
    facts = facts_of(connection, load(connection, "vllm-meant.service"))
    assert facts["Description"] == "vLLM engine meant: /m 100%"
    assert (facts["Type"], facts["Restart"], facts["KillMode"]) == ("exec", "always", "control-group")
    assert (facts["TimeoutStartUSec"], facts["TimeoutStopUSec"]) == (2**64 - 1, 60_000_000)
    assert (facts["StartLimitIntervalUSec"], facts["StartLimitBurst"]) == (3_600_000_000, 5)
    assert (facts["LimitNOFILE"], facts["LogRateLimitIntervalUSec"]) == (1 << 20, 0)
    assert (facts["LimitMEMLOCK"], facts["TasksMax"], facts["OOMPolicy"]) == (2**64 - 1, 2**64 - 1, "kill")
    assert (facts["ProtectSystem"], facts["ProtectControlGroups"]) == ("full", True)
    assert (facts["NoNewPrivileges"], facts["LockPersonality"], facts["RestrictRealtime"]) == (True, True, True)
    assert (facts["User"], facts["RestrictSUIDSGID"], facts["ReadWritePaths"]) == ("", True, [])
    assert facts["RestartUSec"] in (5_000_000, 15_000_000)


def test_an_account_of_its_own_and_a_cache_below_a_read_only_folder(connection: Connection) -> None:
    cache = "/usr/local/hf cache"
    spec = EngineSpec(
        "account", "/m", Placement(((0,),)), program=("/bin/true",), user="nobody", environment=(("HF_HOME", cache),)
    )
    unit = Path("/etc/systemd/system/vllm-account.service")
    text = unit_text(spec, argv=argv(spec), environment=environment(spec), secrets_file="/etc/gpudeck/x.env")
    unit.write_text(text)
    try:
        facts = facts_of(connection, load(connection, unit.name))
        assert (facts["User"], facts["ReadWritePaths"]) == ("nobody", [f"-{cache}"])
        # Each of these would bring NoNewPrivileges, and nvidia-modprobe could not make the devices that CUDA opens.
        kept = ("NoNewPrivileges", "LockPersonality", "RestrictRealtime", "RestrictSUIDSGID", "ProtectClock")
        assert [name for name in kept if facts[name]] == []
    finally:
        unit.unlink()


def test_systemd_has_nothing_to_remark(runner: SystemdRunner) -> None:
    """A directive that this systemd does not know would be warned of in the journal."""
    runner.install(EngineSpec("plain", "/m", Placement(((0,),)), program=("/bin/true",)))
    said = subprocess.run(
        ["journalctl", "-q", "-o", "cat", "_PID=1", "--grep", "vllm-plain.service:[0-9]+:"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert said == ""


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    made = Connection(address_of(Scope.SYSTEM), lambda _connection: None)
    assert made.manager.ListUnits(timeout=CALL_SECONDS)
    yield made
    made.close()
