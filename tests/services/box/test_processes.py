import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gpudeck.services.box.processes import Person, ProcessBook, Ranks, ranks_in

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


@pytest.fixture
def worker() -> Iterator["subprocess.Popen[bytes]"]:
    code = "import sys; sys.stdout.write('up'); sys.stdout.flush(); sys.stdin.read()"
    with subprocess.Popen(
        [TITLED, "-c", code], executable=sys.executable, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.read(2) == b"up"
        yield process
        process.stdin.close()


def test_a_title_longer_than_the_kernel_keeps_is_read_whole(worker: "subprocess.Popen[bytes]") -> None:
    person = ProcessBook().look_up(worker.pid)
    assert person.title == TITLED
    assert person.user


def test_a_process_that_can_not_be_seen_has_neither_title_nor_user() -> None:
    assert ProcessBook().look_up(2**22 + 1) == Person(None, None)


def test_a_title_is_looked_at_again_after_a_while_and_forgotten_with_its_process(
    worker: "subprocess.Popen[bytes]",
) -> None:
    now = 0.0
    book = ProcessBook(lambda: now)
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
