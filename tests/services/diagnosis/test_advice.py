"""What an entry says on this box, and the change that a key makes of it."""

from dataclasses import replace

import pytest

from gpudeck.services.box.simulated import simulated_box
from gpudeck.services.box.types import GIB, GpuProcess, Reading, Snapshot
from gpudeck.services.diagnosis.reader import LogReader
from gpudeck.services.diagnosis.types import Around, Diagnosis
from gpudeck.services.plan.changes import apply
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement

BOX = simulated_box("mixed").box
SPEC = EngineSpec("chat", "/models/chat", Placement(((1, 2),)), EngineOptions(port=8000))


def around(spec: EngineSpec = SPEC, *processes: GpuProcess, gpu: int = 2) -> Around:
    readings = tuple(Reading(each.index, processes=processes if each.index == gpu else ()) for each in BOX.gpus)
    return Around(Snapshot(BOX, 0.0, readings), spec, lambda port: port + 4)


def first(text: str, known: Around | None = None) -> Diagnosis:
    reader = LogReader()
    reader.feed_all(text.split("\n"))
    return reader.diagnoses(known)[0]


def options(found: Diagnosis, spec: EngineSpec = SPEC) -> EngineOptions:
    assert found.change is not None
    return apply(found.change, spec).options


TAKEN = (
    "ValueError: Free memory on device cuda:1 (21.52/39.5 GiB) on startup is less than desired GPU memory utilization "
    "(0.9, 35.55 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
)


def test_taken_memory_names_the_card_and_who_holds_it() -> None:
    own = GpuProcess(9, "VLLM::Worker_TP1", GIB, engine="chat")
    other = GpuProcess(12, "ollama", 18 * GIB)
    found = first(TAKEN, around(SPEC, own, other))
    card = BOX.gpu(2)
    assert card is not None
    assert f"card 2 ({card.name})" in found.meaning  # cuda:1 is the second card that the engine sees
    assert "ollama (pid 12, 18.0 GiB)" in found.meaning
    assert "VLLM" not in found.meaning
    assert options(found).gpu_memory_utilization == 0.53


def test_a_card_that_is_almost_full_has_no_share_to_take() -> None:
    found = first(TAKEN.replace("21.52", "5.1"), around())
    assert found.change is None
    assert found.fix is not None
    assert "other cards" in found.fix


@pytest.mark.parametrize(
    ("text", "length"),
    [
        (
            "ValueError: To serve at least one request with the model's max seq len (131072), (16.0 GiB KV cache is "
            "needed, "
            "which is larger than the available KV cache memory (4.87 GiB). Based on the available memory, the "
            "estimated "
            "maximum model length is 39871. Try increasing",
            39472,
        ),
        (
            "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be "
            "stored in "
            "KV cache (58496). Try increasing",
            57904,
        ),
    ],
)
def test_a_length_that_fits_is_computed_from_the_message(text: str, length: int) -> None:
    found = first(text, around())
    assert options(found).max_model_len == length
    assert str(length) in (found.fix or "")


def test_no_room_at_all_offers_no_length() -> None:
    found = first(
        "ValueError: To serve at least one request with the model's max seq len (131072), (16.0 GiB KV cache is "
        "needed, "
        "which is larger than the available KV cache memory (0.01 GiB). Try increasing `gpu_memory_utilization`"
    )
    assert found.change is None


@pytest.mark.parametrize(
    ("before", "words", "change"),
    [
        ("INFO 12-01 02:07:08 [x.py:1] Starting to load model /m...", "weights were loaded", {}),
        (
            "INFO 12-01 02:07:08 [x.py:1] Model loading took 15.0 GiB memory and 3 seconds",
            "profiled",
            {"max_num_batched_tokens": 4096},
        ),
        (
            "INFO 12-01 02:07:08 [x.py:1] Capturing CUDA graphs (decode, FULL): 0%",
            "graphs were captured",
            {"gpu_memory_utilization": 0.87},
        ),
        ("INFO:     Application startup complete.", "while it served", {"gpu_memory_utilization": 0.87}),
    ],
)
def test_what_the_engine_was_doing_decides_how_to_mend_out_of_memory(
    before: str, words: str, change: dict[str, object]
) -> None:
    text = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 0 has a total capacity of "
        "23.64 GiB "
        "of which 171.81 MiB is free."
    )
    found = first(f"{before}\n(Worker_TP0 pid=3) ERROR 12-01 02:07:09 [x.py:1] {text}", around())
    assert words in found.meaning
    assert "card 1" in found.meaning.lower()
    assert dict(found.change.options if found.change else ()) == change


def test_a_free_port_is_taken() -> None:
    found = first("OSError: [Errno 98] Address already in use", around())
    assert options(found).port == 8005
    assert "8000" in found.meaning


def test_an_old_cards_types_are_changed_and_the_card_is_named() -> None:
    turing = replace(
        BOX,
        gpus=tuple(
            replace(gpu, compute_capability=replace(gpu.compute_capability, major=7, minor=5)) for gpu in BOX.gpus
        ),
    )
    known = replace(around(), snapshot=Snapshot(turing, 0.0, ()))
    found = first("ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0.", known)
    assert options(found).dtype == "half"
    assert f"card 1 ({BOX.gpus[1].name}, 7.5)" in found.meaning
    cached = replace(SPEC, options=EngineOptions(kv_cache_dtype="fp8"))
    found = first("ValueError: FP8 KV cache is not supported by the Triton attention backend on x", known)
    assert options(found, cached).kv_cache_dtype is None


def test_an_unknown_option_is_taken_out_of_those_passed_on() -> None:
    spec = replace(SPEC, options=EngineOptions(extra=("--swap-space", "8", "--seed", "1")))
    found = first("api_server.py: error: unrecognized arguments: --swap-space 8", around(spec))
    assert options(found, spec).extra == ("--seed", "1")


def test_heads_are_told_with_the_sizes_that_divide_them() -> None:
    found = first("ValueError: Total number of attention heads (32) must be divisible by tensor parallel size (3).")
    assert found.fix == "Take TP 2 or 4, or use the cards as pipeline stages (PP)."


@pytest.mark.parametrize(("code", "word"), [(-9, "OOM killer"), (-7, "/dev/shm"), (-11, "Xid"), (137, "OOM killer")])
def test_a_workers_end_is_told_by_its_exit_code(code: int, word: str) -> None:
    found = first(
        f"ERROR 12-01 02:07:08 [multiproc_executor.py:316] Worker proc VllmWorker-1 died unexpectedly (exit code: "
        f"{code}), "
        "shutting down executor."
    )
    assert word in (found.fix or "")


def test_workers_that_a_dying_engine_ended_are_no_reason() -> None:
    reader = LogReader()
    reader.feed(
        "ERROR 02-07 11:28:27 multiproc_worker_utils.py:124] Worker VllmWorkerProcess pid 6 died, exit code: -15"
    )
    assert reader.diagnoses() == ()


def test_an_xid_names_the_card_at_that_address() -> None:
    bus = "00000000:3B:00.0"
    box = replace(BOX, gpus=(replace(BOX.gpus[0], pcie=replace(BOX.gpus[0].pcie, bus=bus)), *BOX.gpus[1:]))
    text = "[ 5021.113245] NVRM: Xid (PCI:0000:3b:00): 79, pid=28121, GPU has fallen off the bus."
    found = first(text, Around(Snapshot(box, 0.0, ())))
    assert found.meaning == f"Xid 79 on card 0 ({box.gpus[0].name}): the card has fallen off the bus."
    assert "PCI 0000:3b:00" in first(text).meaning


def test_a_batch_is_made_as_large_as_a_request() -> None:
    found = first("ValueError: max_num_batched_tokens (1024) is smaller than max_model_len (8192). This", around())
    assert options(found).max_num_batched_tokens == 8192


GIVEN = "INFO 12-01 02:07:08 [utils.py:233] non-default args: {'port': 8123, 'gpu_memory_utilization': 0.8}"


def test_without_a_spec_the_log_says_what_the_engine_was_given() -> None:
    found = first(f"{GIVEN}\nOSError: [Errno 98] Address already in use")
    assert found.fix == "Take another port: --port 8124."
    found = first(f"{GIVEN}\nValueError: No available memory for the cache blocks. Try")
    assert "--gpu-memory-utilization 0.9" in (found.fix or "")


@pytest.mark.parametrize(
    "said", ["{'port': ", "[1]", "{1: 2}", "{'port': 'x', 'gpu_memory_utilization': 7}", "(" * 500]
)
def test_what_is_no_such_word_of_the_log_is_passed_over(said: str) -> None:
    found = first(
        f"INFO 12-01 02:07:08 [utils.py:233] non-default args: {said}\nOSError: [Errno 98] Address already in use"
    )
    assert found.rule == "port-taken"
