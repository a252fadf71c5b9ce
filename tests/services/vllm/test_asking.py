"""Asking an engine's Python: what comes back when it answers, hangs, dies or is none.

The programs here are small scripts; tests/engine asks a real vLLM.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from gpudeck.services.plan.findings import Judgement, Severity, VerdictState
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from gpudeck.services.rules.asked import finding, with_answer
from gpudeck.services.vllm.answer import Answer, Installed, Reply
from gpudeck.services.vllm.asking import Asking
from tests.services.vllm.test_installed import program


def spec(vllm: Path, **options: object) -> EngineSpec:
    return EngineSpec("e", "/m", Placement(((0,),)), EngineOptions(**options), program=(str(vllm),))  # type: ignore[arg-type]


def answering(folder: Path, body: str) -> Path:
    """A vllm whose Python runs this shell text; $2 is the descriptor for the answer."""
    python = program(folder / "bin" / "python", f"#!/bin/sh\n{body}\n")
    return program(folder / "bin" / "vllm", f"#!{python}\n")


def replying(folder: Path, reply: str, text: str = "") -> Path:
    document = json.dumps({"reply": reply, "text": text})
    return answering(folder, f"echo asked >>{folder}/count\ncat >/proc/self/fd/$2 <<'X'\n{document}\nX")


def test_the_answer_is_kept_until_something_changes(tmp_path: Path) -> None:
    vllm = replying(tmp_path, "refused", "Total number\nof \x1b[31mheads")
    asking = Asking()
    assert asking.known(spec(vllm)) is None
    answer = asking.ask(spec(vllm))
    assert answer.reply is Reply.REFUSED
    assert "\n" not in answer.text
    assert "\x1b" not in answer.text
    assert asking.ask(spec(vllm)) == answer == asking.known(spec(vllm))
    asking.ask(spec(vllm, port=9000))
    os.utime(vllm, ns=(1, 1))
    assert asking.known(spec(vllm)) is None
    asking.ask(spec(vllm))
    assert (tmp_path / "count").read_text().count("asked") == 3


def test_without_a_gpu_it_is_not_called_a_refusal(tmp_path: Path) -> None:
    answer = Asking().ask(spec(replying(tmp_path, "no device", "Failed to infer device type")))
    assert answer.reply is Reply.NOT_ASKED
    assert "no GPU" in answer.text


def test_a_python_that_dies_is_told_with_its_last_words(tmp_path: Path) -> None:
    answer = Asking().ask(spec(answering(tmp_path, "echo Segmentation fault >&2; exit 139")))
    assert answer.reply is Reply.NOT_ASKED
    assert "139" in answer.text
    assert "Segmentation fault" in answer.text


@pytest.mark.parametrize("written", ["", "{", "[]", '{"reply": 3}', '{"reply": "accepted"}', '{"text": "x"}'])
def test_an_answer_that_is_none(tmp_path: Path, written: str) -> None:
    answer = Asking().ask(spec(answering(tmp_path, f"printf '%s' '{written}' >/proc/self/fd/$2")))
    assert answer.reply is Reply.NOT_ASKED


def ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_one_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    vllm = answering(tmp_path, f"sleep 600 & echo $! >{tmp_path}/child; wait")
    answer = Asking(timeout=1.0).ask(spec(vllm))
    assert answer.reply is Reply.NOT_ASKED
    assert "within 1 seconds" in answer.text
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 10
    while not ended(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_question_is_called_off(tmp_path: Path) -> None:
    cancelled = threading.Event()
    cancelled.set()
    answer = Asking().ask(spec(answering(tmp_path, "exec sleep 600")), cancelled)
    assert answer.reply is Reply.NOT_ASKED
    assert "called off" in answer.text


def helping(folder: Path, known: str) -> Path:
    return program(folder / "vllm", f'#!/bin/sh\n[ "$2" = --help ] && echo "{known}" && exit\nexit 2\n')


def test_where_only_its_help_can_be_read_the_flags_are_compared(tmp_path: Path) -> None:
    vllm = helping(tmp_path, "--host HOST --port PORT --tensor-parallel-size N --compilation_config JSON")
    asking = Asking()
    known = asking.ask(spec(vllm, extra=("--compilation-config.mode", "3", "-O3")))
    assert (known.reply, known.flags_only) == (Reply.ACCEPTED, True)
    unknown = asking.ask(spec(vllm, extra=("--swap-space=4",)))
    assert (unknown.reply, unknown.text) == (Reply.REFUSED, "unrecognized arguments: --swap-space=4")


def test_a_program_that_tells_nothing(tmp_path: Path) -> None:
    answer = Asking().ask(spec(program(tmp_path / "vllm", "#!/bin/sh\nexit 1\n")))
    assert answer.reply is Reply.NOT_ASKED
    assert Asking().ask(spec(tmp_path / "absent")).text.endswith("absent is not on this machine")


def test_answers_as_findings() -> None:
    engine = Installed(Path(sys.executable), "0.32.0", "13.0")
    refused = with_answer(Judgement(), Answer(Reply.REFUSED, "no such flag", engine))
    assert refused.state is VerdictState.BLOCKED
    assert refused.findings[0].message == "The installed vLLM 0.32.0 (CUDA 13.0) refuses: no such flag"
    accepted = with_answer(refused, Answer(Reply.ACCEPTED, "", engine))
    assert [one.rule for one in accepted.findings] == ["vllm-accepts"]
    assert accepted.state is VerdictState.READY
    assert finding(Answer(Reply.NOT_ASKED, "it is away")).severity is Severity.INFO
    assert len(finding(Answer(Reply.REFUSED, "word " * 500)).message) < 420
