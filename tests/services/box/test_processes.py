import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from gpudeck.services.box.processes import STRANGER, Person, ProcessBook, Ranks, ranks_in

# A process that has vLLM's title in the place where setproctitle puts it: the first word of its command line.
TITLED = "VLLM::Worker_PP1_TP3"


@pytest.mark.parametrize(
    ("title", "ranks"),
    [
        ("VLLM::Worker_TP0", Ranks(0, 0, 0)),
        ("VLLM::Worker_PP1_TP3", Ranks(3, 1, 0)),
        ("VLLM::Worker_PP2", Ranks(0, 2, 0)),
        ("VLLM::Worker_DP1_PP1_TP12_EP5", Ranks(12, 1, 1)),
        ("VLLM::EngineCore", Ranks(0, 0, 0)),
        ("VLLM::EngineCore_DP3", Ranks(0, 0, 3)),
        ("VLLM::Worker", Ranks(0, 0, 0)),
        ("python3", None),
        ("my VLLM::Worker_TP0", None),
        ("", None),
    ],
)
def test_ranks_stand_in_the_title(title: str, ranks: Ranks | None) -> None:
    assert ranks_in(title) == ranks


UP = "import sys; sys.stdout.write('up'); sys.stdout.flush(); sys.stdin.read()"


@contextmanager
def running(*words: str, code: str = UP) -> Iterator["subprocess.Popen[bytes]"]:
    """A Python that has begun, with these words as its command line; the first is its title."""
    with subprocess.Popen(
        [words[0], "-c", code, *words[1:]], executable=sys.executable, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.read(2) == b"up"
        yield process
        process.stdin.close()


@pytest.fixture
def worker() -> Iterator["subprocess.Popen[bytes]"]:
    with running(TITLED) as process:
        yield process


def test_a_title_longer_than_the_kernel_keeps_is_read_whole(worker: "subprocess.Popen[bytes]") -> None:
    person = ProcessBook(contained=False).look_up(worker.pid)
    assert person.title == TITLED
    assert person.user == psutil.Process().username()


def test_its_age_and_command_are_told_and_no_secret(tmp_path: Path) -> None:
    before = time.time()
    words = ("vllm", "serve", "--api-key", "sk-1", "--hf-token=hf-2", "--max-num-batched-tokens", "8192", "--password")
    with running(*words) as process:
        person = ProcessBook(contained=False).look_up(process.pid)
    assert person.started_at is not None
    assert before - 1 <= person.started_at <= time.time() + 1  # the kernel counts in ticks
    assert person.command == (
        f"vllm -c {UP} serve --api-key *** --hf-token=*** --max-num-batched-tokens 8192 --password"
    )


def test_in_a_container_a_number_is_believed_only_of_what_can_be_on_a_card(tmp_path: Path) -> None:
    """NVML tells the host's numbers there, and a process of ours may have the same one by chance."""
    book = ProcessBook(contained=True)
    with running("python3") as other, running(TITLED) as worker:
        assert book.look_up(other.pid) == STRANGER
        assert book.look_up(worker.pid).title == TITLED
    assert book.look_up(2**22 + 1) == STRANGER
    assert STRANGER.title


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a file in /dev")
def test_in_a_container_who_has_a_card_open_is_on_it() -> None:
    device = Path("/dev/nvidia-test")
    device.touch()
    try:
        with running("python3", code=f"held = open('{device}')\n{UP}") as process:
            assert ProcessBook(contained=True).look_up(process.pid).user == psutil.Process().username()
    finally:
        device.unlink()


def test_a_process_that_can_not_be_seen_has_neither_title_nor_user() -> None:
    assert ProcessBook(contained=False).look_up(2**22 + 1) == Person(None, None)


def test_a_title_is_looked_at_again_after_a_while_and_forgotten_with_its_process(
    worker: "subprocess.Popen[bytes]",
) -> None:
    now = 0.0
    book = ProcessBook(lambda: now, contained=False)
    assert book.look_up(worker.pid).title == TITLED
    assert worker.stdin is not None
    worker.stdin.close()
    worker.wait()
    assert book.look_up(worker.pid).title == TITLED  # fresh enough
    now = 6.0
    assert book.look_up(worker.pid).title is None
    book.look_up(os.getpid())
    now = 7.0
    book.keep_only(set())
    assert book.look_up(os.getpid()).title is not None
