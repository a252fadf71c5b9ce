"""The command line as a script uses it: exit codes, one sentence on standard error, one document on standard output."""

import json
import os
import socket
import subprocess
from pathlib import Path

import jsonschema
import pytest

from gpudeck.app.cli import COMMANDS
from gpudeck.services.engine import choose
from gpudeck.services.engine.types import Runner
from gpudeck.services.plan.types import EngineOptions
from tests.app.write_schemas import DOCS
from tests.rigs.as_command import EMBEDDED, Gpudeck
from tests.rigs.at_the_panel import GPUDECK, free_port
from tests.rigs.small_engines import engine

MODEL = str(Path(__file__).parents[1] / "data" / "models" / "qwen2.5-0.5b")
NAMED = ("start", "stop", "restart", "status", "logs", "remove")  # commands on one engine


@pytest.fixture
def sleeper(home: Path, tmp_path: Path) -> Runner:
    """The demo's runner with an engine `sleeper` that is not running."""
    runner = choose.open_runner(demo=True)
    runner.install(engine(tmp_path, "sleeper", "echo up; exec sleep 1000", options=EngineOptions(port=free_port())))
    return runner


def schema(name: str) -> dict[str, object]:
    document: dict[str, object] = json.loads((DOCS / f"{name}-command.schema.json").read_text())
    return document


# -- wrong usage


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_and_refuses_what_it_does_not_know(gpudeck: Gpudeck, command: str) -> None:
    told = gpudeck(command, "--help")
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith(f"usage: gpudeck {command}")
    wrong = gpudeck(command, "--no-such-option")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err.splitlines()[-1].startswith(("gpudeck: error: ", f"gpudeck {command}: error: "))


@pytest.mark.parametrize("command", [*NAMED, "chat"])
def test_a_command_without_its_name_is_wrong_usage(gpudeck: Gpudeck, command: str) -> None:
    done = gpudeck(command)
    assert (done.code, done.out) == (2, "")
    assert "NAME" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("no-such-command",), "invalid choice: 'no-such-command'"),
        (("--demo", "--box", "x.json", "topo"), "two boxes"),
        (("plan", MODEL, "stray"), "unrecognized arguments: stray"),
        (("plan", MODEL, "--port", "x"), "x is no port"),
        (("plan", MODEL, "--port", "65536"), "65536 is no port"),
        (("plan", MODEL, "--replicas", "0"), "0 is no number from 1 on"),
        (("plan", MODEL, "--replicas", "9" * 5000), "is no number from 1 on"),
        (("plan", MODEL, "--gpu-memory-utilization", "nan"), "no share"),
        (("plan", MODEL, "--max-model-len", "8q"), "8q is no number of tokens"),
        (("logs", "x", "-n", "-1"), "-1 is no number of lines"),
        (("chat", "x", "--max-tokens", "0"), "0 is no number from 1 on"),
    ],
)
def test_wrong_usage_says_what_is_wrong(gpudeck: Gpudeck, words: tuple[str, ...], said: str) -> None:
    done = gpudeck(*words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


# -- options before the command and behind it, and those for vLLM


@pytest.mark.parametrize("words", [("--demo", "box"), ("box", "--demo"), ("--demo=mixed", "box"), ("--demo=", "box")])
def test_demo_stands_before_the_command_or_behind_it(gpudeck: Gpudeck, words: tuple[str, ...]) -> None:
    done = gpudeck(*words)
    assert (done.code, done.err) == (0, "")
    assert "RTX 4090 D" in done.out


def test_box_stands_before_the_command_or_behind_it(gpudeck: Gpudeck, tmp_path: Path) -> None:
    file = str(tmp_path / "box.json")
    assert gpudeck("box", "--demo", "--record", file).code == 0
    before, behind = gpudeck("--box", file, "topo"), gpudeck("topo", "--box", file)
    assert (before.code, before.err) == (0, "")
    assert before == behind


@pytest.mark.parametrize("command", ["engines", *NAMED])
def test_a_recorded_box_runs_no_engines(gpudeck: Gpudeck, command: str) -> None:
    done = gpudeck(command, "--box", "box.json", *(["x"] if command in NAMED else []))
    assert done.refused
    assert "is a recorded box and runs no engines: leave --box out" in done.err


@pytest.mark.parametrize("command", ["engines", "doctor", "box", "topo"])
def test_a_demo_box_of_no_such_name_is_refused(gpudeck: Gpudeck, command: str) -> None:
    done = gpudeck(command, "--demo=none")
    assert done.refused
    assert "take one of mixed, " in done.err


def test_options_behind_the_dashes_go_to_vllm_as_they_are(gpudeck: Gpudeck) -> None:
    done = gpudeck("plan", "--demo", MODEL, "--stage", "0", "--json", "--", "--seed", "7", "--demo")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["placements"][0]["argv"][-3:] == ["--seed", "7", "--demo"]


# -- documents


def test_engines_and_status_give_the_published_documents(gpudeck: Gpudeck, sleeper: Runner) -> None:
    idle = gpudeck("status", "sleeper", "--demo", "--json")
    assert (idle.code, idle.err) == (3, "")
    sleeper.start("sleeper")
    running = gpudeck("--demo", "status", "sleeper", "--json")
    assert (running.code, running.err) == (0, "")
    for done, state in ((idle, "inactive"), (running, "active")):
        document = json.loads(done.out)
        jsonschema.validate(document, schema("status"))
        assert (document["name"], document["state"], document["ready"]) == ("sleeper", state, False)
    document = json.loads(gpudeck("engines", "--demo", "--json").out)
    jsonschema.validate(document, schema("engines"))
    assert [found["pid"] for found in document["engines"]] == [json.loads(running.out)["pid"]]


def test_engines_where_there_are_none(gpudeck: Gpudeck) -> None:
    assert json.loads(gpudeck("engines", "--demo", "--json").out) == {"engines": []}
    done = gpudeck("engines", "--demo")
    assert (done.code, done.err) == (0, "")
    assert "gpudeck install MODEL --stage 0 --demo makes one" in done.out


def test_doctor_gives_the_published_document_and_1_where_something_is_missing(gpudeck: Gpudeck) -> None:
    demo = gpudeck("doctor", "--demo", "--json")
    assert (demo.code, demo.err) == (0, "")
    jsonschema.validate(json.loads(demo.out), schema("doctor"))
    real = gpudeck("doctor", "--json")  # PATH holds no vLLM
    assert (real.code, real.err) == (1, "")
    health = {check["part"]: check["health"] for check in json.loads(real.out)["checks"]}
    assert health["vLLM"] == "missing"


# -- refusals


@pytest.mark.parametrize("command", NAMED)
def test_an_engine_that_is_not_there(gpudeck: Gpudeck, sleeper: Runner, command: str) -> None:
    done = gpudeck(command, "--demo", "nobody\x1b[2J")
    assert done.refused
    assert "No engine is called nobody^[[2J here; there is sleeper." in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan", "/no/such/model", "--demo"), "/no/such/model is not there"),
        (("plan", MODEL, "--demo", "--stage", "x"), "--stage x is no list of card numbers"),
        (("plan", MODEL, "--demo", "--stage", "-1"), "cards are counted from 0"),
        (("plan", MODEL, "--demo", "--layer-partition", "x"), "--layer-partition x is no list of numbers"),
        (("plan", MODEL, "--demo", "--stage", "0", "--replicas", "2"), "--replicas 2 needs a multiple of 2 stages"),
        (("unit", MODEL, "--demo", "--stage", "0", "--name", "A b"), "'A b' can not be an engine's name"),
        (("unit", MODEL, "--demo", "--stage", "0", "--served-model-name", "a\nb"), "holds a line break"),
        (("box", "--box", "none.json"), "none.json"),
        (("chat", "http://127.0.0.1:1", "hi"), "Nothing answers at http://127.0.0.1:1"),
        (("chat", "http://[", "hi"), "is no address of an engine"),
        (("chat", "http://127.0.0.1:1", " "), "There is nothing to say"),
        (("doctor", "--box", "x"), "leave --box out"),
    ],
)
def test_a_refusal_is_one_sentence(gpudeck: Gpudeck, words: tuple[str, ...], said: str) -> None:
    done = gpudeck(*words)
    assert done.refused, done
    assert said in done.err


def test_a_taken_port_is_told_before_the_start(gpudeck: Gpudeck, home: Path, tmp_path: Path) -> None:
    runner = choose.open_runner(demo=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        runner.install(engine(tmp_path, "late", "exec sleep 1000", options=EngineOptions(port=port)))
        done = gpudeck("start", "late", "--demo")
    assert done.refused
    assert f"Port {port} is already used by " in done.err
    assert [state.active for state in runner.engines()] == ["inactive"]


def test_a_start_that_fails_says_why(gpudeck: Gpudeck, home: Path, tmp_path: Path) -> None:
    runner = choose.open_runner(demo=True)
    script = "echo 'Traceback (most recent call last):'; echo 'RuntimeError: no such [b]device[/b]'; exit 3"
    runner.install(engine(tmp_path, "dies", script, options=EngineOptions(port=free_port())))
    done = gpudeck("start", "dies", "--demo")
    assert done.code == 1
    assert done.err == "gpudeck: dies failed to start: RuntimeError: no such [b]device[/b]\n"
    script = "echo 'Traceback (most recent call last):'; echo 'OSError: [Errno 98] Address already in use'; exit 1"
    port = free_port()
    runner.install(engine(tmp_path, "late", script, options=EngineOptions(port=port)))
    done = gpudeck("start", "late", "--demo")
    assert f"\nPort {port} on 127.0.0.1 belongs to another process. Take another port: --port " in done.err
    done = gpudeck("status", "late", "--demo")
    assert done.code == 3
    assert "  why     OSError: [Errno 98] Address already in use\n" in done.out
    assert "  fix     Take another port: --port " in done.out
    done = gpudeck("diagnose", "--engine", "late", "--demo")
    assert done.code == 0
    assert done.out.startswith("port-taken, line 2\n")
    runner.install(engine(tmp_path, "mute", "exit 3", options=EngineOptions(port=free_port())))
    done = gpudeck("start", "mute", "--demo")
    assert done.err.endswith(
        "ended with exit status 3 before it was ready: `gpudeck logs mute --demo` shows its log.\n"
    )


def test_nothing_is_written_or_deleted_without_a_yes(gpudeck: Gpudeck, sleeper: Runner) -> None:
    done = gpudeck("remove", "sleeper", "--demo")
    assert done.code == 1
    assert done.err == "gpudeck: There is no terminal to ask on: give --yes to go ahead.\n"
    done = gpudeck("install", MODEL, "--demo", "--stage", "0", "--name", "new")
    assert done.code == 1
    assert [state.name for state in sleeper.engines()] == ["sleeper"]


def test_from_install_to_remove(gpudeck: Gpudeck, home: Path) -> None:
    port = str(free_port())
    words = (MODEL, "--demo", "--stage", "1", "--port", port, "--name", "life")
    shown = gpudeck("unit", *words)
    assert shown.code == 0
    done = gpudeck("install", *words, "--yes")
    assert done.code == 0
    assert shown.out.strip() in done.out
    assert "gpudeck start life --demo" in done.out
    assert "installed already, line for line" in gpudeck("install", *words, "--yes").out
    changed = gpudeck("unit", *words, "--max-num-seqs", "7")
    assert '+    "--max-num-seqs",' in changed.out
    done = gpudeck("start", "life", "--demo")
    assert (done.code, done.err) == (0, "")
    assert f"life is ready at http://127.0.0.1:{port}" in done.out
    assert "already" in gpudeck("start", "life", "--demo", "--no-wait").out
    done = gpudeck("chat", "life", "hello", "--demo")
    assert done.code == 0
    assert "simulated engine" in done.out
    done = gpudeck("logs", "life", "--demo", "-n", "1")
    assert (done.code, done.out.count("\n")) == (0, 1)
    assert gpudeck("logs", "life", "--demo", "-n", "0").out == ""
    assert gpudeck("restart", "life", "--demo").code == 0
    assert gpudeck("stop", "life", "--demo").code == 0
    assert "is not running" in gpudeck("stop", "life", "--demo").out
    done = gpudeck("chat", "life", "hello", "--demo")
    assert done.refused
    assert "start it with `gpudeck start life --demo`" in done.err
    assert gpudeck("status", "life", "--demo").code == 3
    assert gpudeck("remove", "life", "--demo", "--yes").code == 0
    assert json.loads(gpudeck("engines", "--demo", "--json").out) == {"engines": []}


# -- as a process


def test_enabling_an_installed_engine_is_not_taken_for_done(gpudeck: Gpudeck) -> None:
    words = ("install", MODEL, "--demo", "--stage", "1", "--name", "again", "--yes")
    assert gpudeck(*words).code == 0
    assert "installed already" in gpudeck(*words).out
    # Under the embedded runner nothing starts engines at boot, which is told and not passed over.
    done = gpudeck(*words, "--enable")
    assert done.code == 1
    assert "without --enable" in done.err


def test_a_blocked_plan_is_installed_only_by_force(gpudeck: Gpudeck) -> None:
    words = ("install", MODEL, "--demo", "--stage", "0,1,2", "--name", "blocked", "--yes")
    done = gpudeck(*words)
    assert done.code == 1
    assert done.err.startswith("gpudeck: The plan is blocked (")
    assert gpudeck(*words, "--force").code == 0


@pytest.mark.parametrize("words", [["--demo", "topo"], ["--help"], ["plan", MODEL, "--demo"], ["doctor", "--demo"]])
def test_a_reader_that_is_gone_or_full_is_no_traceback(home: Path, words: list[str]) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as gone:
        done = subprocess.run([*GPUDECK, *words], stdout=gone, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*GPUDECK, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "gpudeck: The output could not be written: no space is left there.\n"


def test_a_locale_without_the_characters_is_no_traceback(home: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*GPUDECK, "plan", MODEL, "--demo"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "?" in done.stdout


def test_logs_that_follow_end_with_their_reader(home: Path, tmp_path: Path) -> None:
    runner = choose.open_runner(demo=True)
    runner.install(engine(tmp_path, "talks", "while :; do echo line; sleep 0.05; done"))
    runner.start("talks")
    reading = subprocess.Popen(
        [*EMBEDDED, "logs", "-f", "talks", "--demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert reading.stdout is not None
    assert reading.stderr is not None
    assert reading.stdout.readline() == "line\n"
    reading.stdout.close()
    assert reading.wait(30) == 0
    assert reading.stderr.read() == ""
    reading.stderr.close()
