"""Whole logs: the decisive line first, healthy ones silent, and any text survived."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.diagnosis.lines import lines_in
from gpudeck.services.diagnosis.reader import LogReader
from gpudeck.services.diagnosis.types import Around, Diagnosis
from tests.services.diagnosis.texts import TEXTS

LOGS = Path(__file__).parents[2] / "data" / "logs"
HEALTHY = ["old-0.6-tp4.txt", *sorted(path.name for path in LOGS.glob("healthy-*.log"))]
DECISIVE = {
    "crashed-cpu-head-dim.log": ("cpu-attention", 137),
    "crashed-cpu-pp2.log": ("cpu-pipeline", 142),
    "failed-gpu-taken.log": ("memory-taken", 54),
    "failed-graph-oom.log": ("sampler-warm-up", 145),
    "failed-kill-engine.log": ("engine-died", 80),
    "failed-kvbytes-oom.log": ("out-of-memory", 73),
    "failed-llama-8b-kv-small.log": ("context-too-long", 52),
    "failed-load-oom.log": ("out-of-memory", 106),
    "failed-no-weights.log": ("no-weights", 89),
    "refused-hf-no-network.log": ("hub-offline", 100),
    "refused-no-config.log": ("model-path", 54),
    "refused-port-in-use.log": ("port-taken", 40),
    "refused-quant-mismatch.log": ("quantization-mismatch", 56),
    "refused-tp2.log": ("world-size", 53),
    "refused-unknown-flag.log": ("unknown-option", 3),
    "refused-util-1.5.log": ("option-value", 54),
    "refused-wrong-path.log": ("model-path", 54),
}


def read(text: str, around: Around | None = None) -> tuple[Diagnosis, ...]:
    reader = LogReader()
    reader.feed_all(text.split("\n"))
    return reader.diagnoses(around)


def log(name: str) -> str:
    return (LOGS / name).read_text(encoding="utf-8", errors="replace")


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_said_of_a_healthy_log(name: str) -> None:
    assert read(log(name)) == ()


def test_every_failed_log_is_held_to_its_diagnosis() -> None:
    assert set(DECISIVE) | set(HEALTHY) == {path.name for path in LOGS.iterdir()} - {"README.md"}


@pytest.mark.parametrize(("name", "expected"), DECISIVE.items())
def test_a_failed_log_is_told_once_by_its_decisive_line(name: str, expected: tuple[str, int]) -> None:
    found = read(log(name))
    assert [(each.rule, each.line_number) for each in found] == [expected]


def test_the_first_workers_exception_wins_over_the_wrappers_and_the_other_workers() -> None:
    found = read(
        "(Worker_TP1 pid=12) ERROR 12-01 01:23:24 [multiproc_executor.py:1063] Traceback (most recent call last):\n"
        '(Worker_TP1 pid=12) ERROR 12-01 01:23:24 [multiproc_executor.py:1063]   File "/x/vllm/y.py", line 3, in z\n'
        '(Worker_TP1 pid=12) ERROR 12-01 01:23:24 [multiproc_executor.py:1063]     raise RuntimeError("NCCL error: ")\n'
        "(Worker_TP1 pid=12) ERROR 12-01 01:23:24 [multiproc_executor.py:1063] torch.OutOfMemoryError: CUDA out of "
        "memory. Tried to allocate 448.00 MiB. GPU 1 has a total capacity of 23.64 GiB of which 171.81 MiB is free.\n"
        "(Worker_TP0 pid=11) ERROR 12-01 01:23:25 [multiproc_executor.py:1063] Traceback (most recent call last):\n"
        "(Worker_TP0 pid=11) ERROR 12-01 01:23:25 [multiproc_executor.py:1063] RuntimeError: NCCL error: remote "
        "process "
        "exited or there was a network error\n"
        "(EngineCore pid=10) ERROR 12-01 01:23:26 [core.py:1063] EngineCore failed to start.\n"
        "(EngineCore pid=10) ERROR 12-01 01:23:26 [core.py:1063] Traceback (most recent call last):\n"
        "(EngineCore pid=10) ERROR 12-01 01:23:26 [core.py:1063] RuntimeError: Worker failed with error 'NCCL error: "
        "remote process exited', please check the stack trace above for the root cause\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
    )
    assert [(each.rule, each.line_number) for each in found] == [("out-of-memory", 4), ("nccl-error", 6)]


def test_wrappers_alone_are_no_diagnosis() -> None:
    assert (
        read(
            "RuntimeError: Worker failed with error 'NCCL error: unhandled cuda error', please check the stack trace\n"
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above).\n"
        )
        == ()
    )


def test_what_the_table_does_not_know_is_still_told() -> None:
    (found,) = read('Traceback (most recent call last):\n  File "x", line 1\nZeroDivisionError: division by zero')
    assert (found.rule, found.line, found.line_number) == ("unknown-failure", "ZeroDivisionError: division by zero", 3)


def test_a_request_that_quotes_a_failure_is_no_failure() -> None:
    assert read("INFO 12-01 02:07:08 [logger.py:37] Received request x: prompt: 'CUDA out of memory', params: x") == ()


def test_the_last_run_that_failed_is_told() -> None:
    failed, port = log("failed-llama-8b-kv-small.log"), log("refused-port-in-use.log")
    assert [each.rule for each in read(failed + "\n" + port)] == ["port-taken"]
    # A restart that is still under way has not answered the question why the one before ended.
    begun = "\n".join(log("healthy-llama-8b-graphs.log").split("\n")[:30])
    both = read(failed + "\n" + begun)
    assert [(each.rule, each.line_number) for each in both] == [("context-too-long", 52)]


WRAPPINGS = {
    "short": "Dec 01 02:07:08 box vllm[2811]: {}",
    "short-precise": "Dec 01 02:07:08.123456 box vllm[2811]: {}",
    "short-iso": "2026-12-01T02:07:08+0000 box vllm[2811]: {}",
    "short-iso-precise": "2026-12-01T02:07:08.123456+00:00 box vllm[2811]: {}",
    "short-full": "Tue 2026-12-01 02:07:08 UTC box vllm[2811]: {}",
    "short-unix": "1796090828.123456 box vllm[2811]: {}",
    "short-monotonic": "[ 5021.113245] box vllm[2811]: {}",
    "docker": "2026-12-01T02:07:08.123456789Z {}",
    "container runtime": "2026-12-01T02:07:08.123456789Z stderr F {}",
    "compose": "vllm-1  | {}",
    "kubectl": "[pod/vllm-0/vllm] {}",
    "compose in a journal": "Dec 01 02:07:08 box docker[12]: llm  | {}",
    "verbose": "    MESSAGE={}",
}


@pytest.mark.parametrize("form", WRAPPINGS.values(), ids=WRAPPINGS)
@pytest.mark.parametrize("name", ["failed-gpu-taken.log", "refused-util-1.5.log", "crashed-cpu-pp2.log"])
def test_what_other_tools_put_around_a_line_is_taken_off(form: str, name: str) -> None:
    wrapped = "\n".join(form.format(line) for line in log(name).split("\n"))
    assert read(wrapped) == read(log(name))


@pytest.mark.parametrize("binary", [False, True])
def test_the_journals_json_is_read(binary: bool) -> None:
    def entry(line: str) -> str:
        message = list(line.encode()) if binary else line
        return json.dumps({"MESSAGE": message, "__REALTIME_TIMESTAMP": "1796090828123456", "_PID": "12"})

    text = log("failed-gpu-taken.log")
    assert read("\n".join(entry(line) for line in text.split("\n"))) == read(text)


def test_dockers_json_file_is_read() -> None:
    text = log("failed-gpu-taken.log")
    wrapped = [
        json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-12-01T02:07:08Z"})
        for line in text.split("\n")
    ]
    assert read("\n".join(wrapped)) == read(text)


def test_bars_escapes_and_junk_before_a_failure_are_data() -> None:
    found = read(
        "\x1b[1;36m(Worker_TP0 pid=7)\x1b[0;0m \rLoading: 10%|# | 1/9\rLoading: 50%|### | 5/9\r"
        "RuntimeError: CUDA error: invalid device ordinal\x1b]0;title\x07\n\x00\xff\ufffd"
    )
    assert [each.rule for each in found] == ["gpu-not-there"]
    assert found[0].line.isprintable()


@given(st.text(max_size=400))
def test_any_text_is_survived(text: str) -> None:
    read(text)


@given(st.lists(st.tuples(st.sampled_from([text for _, text, _ in TEXTS]), st.integers(0, 200), st.text(max_size=20))))
def test_real_texts_cut_and_mangled_are_survived(parts: list[tuple[str, int, str]]) -> None:
    for found in read("\n".join(text[:cut] + junk + text[cut:] for text, cut, junk in parts)):
        assert found.meaning
        assert found.line_number >= 1


class _Endless:
    """A stream of one line of 64 MiB, with a failure in the line behind it."""

    def __init__(self) -> None:
        self.chunks = [b"x" * (1 << 18)] * 256 + [b"\nRuntimeError: No CUDA GPUs are available\n"]

    def read(self, _size: int) -> bytes:
        return self.chunks.pop(0) if self.chunks else b""


def test_a_line_of_any_length_takes_bounded_memory() -> None:
    reader = LogReader()
    longest = 0
    for line in lines_in(_Endless()):  # type: ignore[arg-type]
        longest = max(longest, len(line))
        reader.feed(line)
    assert longest <= 2 << 20
    assert [(each.rule, each.line_number) for each in reader.diagnoses()] == [("no-device", 2)]


def test_many_processes_and_failures_take_bounded_memory() -> None:
    reader = LogReader()
    for number in range(20_000):
        reader.feed(
            f"(Worker_TP{number} pid={number}) ERROR 12-01 01:23:24 [x.py:1] RuntimeError: NCCL error: no {number} ("
        )
    assert [(each.rule, each.line_number) for each in reader.diagnoses()] == [("nccl-error", 1)]
