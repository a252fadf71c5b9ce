"""What a log line says of itself; the texts are vLLM's, uvicorn's and torch's own."""

import pytest

from gpudeck.widgets.log_line import MAX_CHARACTERS, Level, brief, last_state, level_of, parts_of, worker_of

_ENGINE_ERROR = (
    "(Worker_PP1 pid=5841) ERROR 12-01 01:23:24 [multiproc_executor.py:1063]     assert self.intermediate_tensors"
)


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("(APIServer pid=4458) INFO 12-01 01:18:07 [model.py:733] Resolved architecture: LlamaForCausalLM", Level.INFO),
        ("INFO 03-11 15:03:12 [llm_engine.py:436] init engine took 9.80 seconds", Level.INFO),
        ("(APIServer pid=4458) WARNING 12-01 01:18:07 [cpu.py:224] Triton is not installed.", Level.WARNING),
        (_ENGINE_ERROR, Level.ERROR),
        ('INFO:     127.0.0.1:53560 - "GET /health HTTP/1.1" 200 OK', Level.INFO),
        ("[W1201 01:23:17.642965150 utils.cpp:68] Warning: NUMA binding", Level.WARNING),
        ("[rank0]: Traceback (most recent call last):", Level.ERROR),
        ("Traceback (most recent call last):", Level.ERROR),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB.", Level.ERROR),
        ("AssertionError", Level.ERROR),
        ("/opt/x/dispatcher.py:138: FutureWarning: `torch.distributed.reduce_op` is deprecated", Level.WARNING),
        ("Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:01<00:03,  1.0s/it]", Level.PLAIN),
        ('  File "/opt/x.py", line 3, in f', Level.PLAIN),
        ("the word ERROR inside a sentence", Level.PLAIN),
        ("", Level.PLAIN),
    ],
)
def test_the_level_is_the_one_that_the_line_states(text: str, level: Level) -> None:
    assert level_of(text) is level


def test_a_line_that_states_no_level_takes_it_from_syslogs_priority() -> None:
    assert level_of("out of memory", 3) is Level.ERROR
    assert level_of("odd", 4) is Level.WARNING
    assert level_of("odd", 6) is Level.PLAIN
    assert level_of("INFO 12-01 01:17:56 [a.py:1] fine", 3) is Level.INFO


def test_the_worker_is_the_process_that_wrote_the_line() -> None:
    assert worker_of(_ENGINE_ERROR) == "Worker_PP1"
    assert worker_of("(VllmWorker rank=1 pid=77) INFO x") == "VllmWorker rank=1"
    assert worker_of("(RayWorkerWrapper pid=73, ip=10.0.0.1) INFO x") == "RayWorkerWrapper pid=73"
    assert worker_of("(RayWorkerWrapper pid=74) INFO x") == "RayWorkerWrapper pid=74"
    assert worker_of("(EngineCore_DP0 pid=73) INFO x") == "EngineCore_DP0"
    assert worker_of("(APIServer) INFO x") == "APIServer"
    assert worker_of("[rank3]: Traceback (most recent call last):") == "rank3"
    assert worker_of("[rank3] x") == "rank3"
    assert worker_of("(Worker_TP0 is not one) x") == "Worker_TP0"
    assert worker_of("INFO 12-01 01:17:56 [a.py:1] (not a worker) x") is None


def test_the_parts_lie_where_they_are_written() -> None:
    found = {part: _ENGINE_ERROR[start:end].strip() for part, start, end in parts_of(_ENGINE_ERROR)}
    assert found == {
        "worker": "(Worker_PP1 pid=5841)",
        "level": "ERROR",
        "time": "12-01 01:23:24",
        "place": "[multiproc_executor.py:1063]",
    }


def test_a_progress_bar_keeps_its_last_state_only() -> None:
    assert last_state("\r  0%|  |\r 50%|# |\r100%|##|") == "100%|##|"
    assert last_state(" 50%|# |\r100%|##|\r") == "100%|##|"
    assert last_state("\r\r") == ""


def test_an_endless_line_is_cut_and_says_by_how_much() -> None:
    cut = last_state("x" * (MAX_CHARACTERS + 1234))
    assert cut.endswith(" … 1,234 more characters")
    assert len(cut) < MAX_CHARACTERS + 40


def test_the_brief_form_puts_the_prefix_in_columns_and_leaves_the_message() -> None:
    assert brief(_ENGINE_ERROR) == "01:23:24 ERROR   Worker_PP1     assert self.intermediate_tensors"
    assert brief("INFO 03-11 15:03:12 [llm_engine.py:436] init engine took 9.80 seconds") == (
        "15:03:12 INFO    init engine took 9.80 seconds"
    )
    # The HTTP server under the engine tells no time.
    server = brief("(APIServer pid=71) INFO:     Application startup complete.")
    assert server == "         INFO    APIServer  Application startup complete."
    assert {part for part, _, _ in parts_of(server)} == {"time", "level", "worker"}
    for text in ("Traceback (most recent call last):", "INFO:     Application startup complete.", ""):
        assert brief(text) == text


def test_the_parts_of_the_brief_form_are_known_too() -> None:
    shown = brief(_ENGINE_ERROR)
    found = {part: shown[start:end].strip() for part, start, end in parts_of(shown)}
    assert found == {"worker": "Worker_PP1", "level": "ERROR", "time": "01:23:24"}
