"""Phases and decisive lines, read from what vLLM really wrote (tests/data/logs)."""

from pathlib import Path

import pytest

from gpudeck.services.engine.phases import PATTERNS, WORDS, Phase, PhaseTracker, Standing

LOGS = Path(__file__).parents[2] / "data" / "logs"
WITH_GRAPHS = [
    Phase.INITIALISING,
    Phase.LOADING,
    Phase.PROFILING,
    Phase.COMPILING,
    Phase.CAPTURING,
    Phase.LISTENING,
    Phase.STOPPING,
]
EAGER = [Phase.INITIALISING, Phase.LOADING, Phase.PROFILING, Phase.LISTENING, Phase.STOPPING]


def follow(name: str) -> list[Standing]:
    """Every standing that the log led to, in order."""
    tracker = PhaseTracker()
    standings = []
    for line in (LOGS / name).read_text(encoding="utf-8", errors="replace").split("\n"):
        if tracker.feed(line):
            standings.append(tracker.standing)
    return standings


def phases(standing: Standing) -> list[Phase]:
    return [phase for phase, _ in standing.entered]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("healthy-llama-8b-graphs.log", WITH_GRAPHS),
        ("healthy-qwen-0.5b.log", WITH_GRAPHS),
        ("healthy-term-swallowed-in-compile.log", WITH_GRAPHS),
        ("healthy-deepseek-eager.log", EAGER),
    ],
)
def test_a_healthy_start_goes_through_its_phases_in_order(name: str, expected: list[Phase]) -> None:
    standings = follow(name)
    assert phases(standings[-1]) == expected
    assert all(standing.decisive is None for standing in standings)


def test_figures_of_a_start() -> None:
    last = follow("healthy-llama-8b-graphs.log")[-1]
    assert last.server == "http://127.0.0.1:8121"
    assert (last.weights_gib, last.kv_cache_tokens, last.max_concurrency) == (15.0, 919_824, 28.07)


def test_the_bar_of_graph_capturing_is_progress() -> None:
    percents = [s.percent for s in follow("healthy-llama-8b-graphs.log") if s.phase is Phase.CAPTURING]
    assert percents[:3] == [0, 6, 12]
    assert 100 in percents  # and then anew for the second kind of graphs


def test_the_older_form_of_lines() -> None:
    standings = follow("old-0.6-tp4.txt")
    assert phases(standings[-1]) == [
        Phase.INITIALISING,
        Phase.LOADING,
        Phase.PROFILING,
        Phase.CAPTURING,
        Phase.LISTENING,
    ]
    assert [s.percent for s in standings if s.phase is Phase.LOADING] == [None, 0, 25, 50, 100]
    assert standings[-1].max_concurrency == 60.59


def test_strokes_of_a_bar_within_one_line() -> None:
    tracker = PhaseTracker()
    tracker.feed(
        "Loading safetensors checkpoint shards:   0% Completed | 0/2 [00:00<?, ?it/s]\r"
        "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01,  1.00s/it]\r"
    )
    assert (tracker.standing.phase, tracker.standing.percent) == (Phase.LOADING, 50)


@pytest.mark.parametrize(
    ("name", "writer", "decisive"),
    [
        ("failed-gpu-taken.log", "EngineCore", "ValueError: Free memory on device cuda:0 (26.77/139.8 GiB)"),
        ("failed-graph-oom.log", "EngineCore", "RuntimeError: CUDA out of memory occurred when warming up sampler"),
        ("failed-kvbytes-oom.log", "EngineCore", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.50"),
        ("failed-llama-8b-kv-small.log", "EngineCore", "ValueError: To serve at least one request with the model's"),
        ("failed-load-oom.log", "EngineCore", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50"),
        ("failed-no-weights.log", "EngineCore", "RuntimeError: Cannot find any model weights with"),
        ("failed-kill-engine.log", "APIServer", "[shutdown] MPClient: engine core exited unexpectedly"),
        ("refused-port-in-use.log", "APIServer", "OSError: [Errno 98] Address already in use"),
        ("refused-unknown-flag.log", "", "vllm: error: unrecognized arguments: --no-such-flag 1"),
        ("refused-tp2.log", "APIServer", "World size (2) is larger than the number of available GPUs (1)"),
        ("refused-util-1.5.log", "APIServer", "gpu_memory_utilization: Input should be less than or equal to 1"),
        ("refused-no-config.log", "APIServer", "Invalid repository ID or local directory specified"),
        ("refused-hf-no-network.log", "APIServer", "OSError: We couldn't connect to 'https://huggingface.co'"),
        ("refused-wrong-path.log", "APIServer", "huggingface_hub.errors.HFValidationError: Repo id must be in"),
        ("refused-quant-mismatch.log", "APIServer", "Quantization method specified in the model config (awq) does"),
        ("crashed-cpu-head-dim.log", "Worker", "RuntimeError: Unsupported CPU attention configuration: head_dim=16"),
        ("crashed-cpu-pp2.log", "Worker_PP1", "AssertionError (assert self.intermediate_tensors is not None)"),
    ],
)
def test_a_failure_is_told_by_its_decisive_line(name: str, writer: str, decisive: str) -> None:
    last = follow(name)[-1]
    assert last.phase is Phase.FAILED
    assert last.decisive is not None
    assert last.decisive.text.startswith(decisive)
    assert last.decisive.writer == writer
    lines = (LOGS / name).read_text(encoding="utf-8", errors="replace").split("\n")
    assert decisive.split(" (")[0].split(": ")[-1] in lines[last.decisive.number - 1]


def test_ready_is_said_by_the_server_not_by_the_log() -> None:
    tracker = PhaseTracker()
    tracker.feed("INFO:     Application startup complete.", 10.0)
    assert tracker.standing.phase is Phase.LISTENING
    assert tracker.answered(11.0)
    assert not tracker.answered(12.0)
    assert tracker.standing.entered == ((Phase.LISTENING, 10.0), (Phase.READY, 11.0))


def test_a_request_that_fails_does_not_fail_the_engine() -> None:
    tracker = PhaseTracker()
    tracker.feed("INFO:     Application startup complete.")
    for line in ("Traceback (most recent call last):", '  File "x.py", line 1, in f', "ValueError: bad request"):
        tracker.feed(line)
    assert tracker.standing.phase is Phase.LISTENING


def test_a_destructor_that_complains_does_not_fail_the_start() -> None:
    tracker = PhaseTracker()
    for line in (
        "Exception ignored in: <function Pool.__del__ at 0x7f>",
        "Traceback (most recent call last):",
        '  File "pool.py", line 1, in __del__',
        "AttributeError: 'Pool' object has no attribute 'x'",
    ):
        tracker.feed(line)
    assert tracker.standing.phase is Phase.STARTING


def test_a_message_that_begins_a_line_below_its_exception() -> None:
    """As multiprocessing writes it where a program lacks its guard (seen with vLLM 0.24 on an H200)."""
    lines = [
        "Traceback (most recent call last):",
        '  File "/usr/lib/python3.12/multiprocessing/spawn.py", line 164, in get_preparation_data',
        "    raise RuntimeError('''",
        "RuntimeError: ",
        "        An attempt has been made to start a new process before the",
        "        current process has finished its bootstrapping phase.",
        "",
        "Traceback (most recent call last):",
        "RuntimeError: Engine core initialization failed. See root cause above.",
    ]
    tracker = PhaseTracker()
    for line in lines:
        tracker.feed(f"(EngineCore pid=7) {line}" if "root cause" not in line else line)
    decisive = tracker.standing.decisive
    assert decisive is not None
    assert decisive.text == "RuntimeError: An attempt has been made to start a new process before the"
    assert decisive.number == 4


def test_the_next_run_in_the_same_log_begins_anew() -> None:
    tracker = PhaseTracker()
    for name in ("failed-no-weights.log", "healthy-deepseek-eager.log"):
        for line in (LOGS / name).read_text(encoding="utf-8").split("\n"):
            tracker.feed(line)
    assert phases(tracker.standing) == EAGER
    assert tracker.standing.decisive is None


def test_times_are_those_that_were_given() -> None:
    tracker = PhaseTracker()
    tracker.feed("(EngineCore pid=1) INFO 12-01 02:07:23 [m.py:1] Loading model from scratch...", 5.0)
    tracker.feed("(EngineCore pid=1) INFO 12-01 02:07:24 [m.py:2] Model loading took 15.0 GiB and 1.3 seconds", 6.5)
    assert tracker.standing.entered == ((Phase.LOADING, 5.0), (Phase.PROFILING, 6.5))


def _alternatives(pattern: str) -> list[str]:
    """What stands between the bars of a pattern that are in no bracket."""
    found, depth = [""], 0
    for sign in pattern:
        depth += (sign in "([") - (sign in ")]")
        if sign == "|" and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return found


def test_no_pattern_looks_for_a_line_that_the_words_leave_out() -> None:
    left_out = [
        alternative
        for pattern in PATTERNS
        for alternative in _alternatives(pattern.pattern.removeprefix("^(").removesuffix(")"))
        if not any(word in alternative for word in WORDS)
    ]
    assert left_out == []
