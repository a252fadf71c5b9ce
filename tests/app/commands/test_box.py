"""`gpudeck box` and `gpudeck topo`, as a person or a script runs them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpudeck.services.box.boxfile import BoxFile, load_box_file, save_box_file
from gpudeck.services.box.types import Reading
from tests.rigs.fakenvml.fixtures import FakeNvml
from tests.services.box.boxes import busy, pair

READINGS = (busy(0), busy(1))


def gpudeck(*words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpudeck.app", *words],
        env=environment or dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_box_tells_the_cards_of_this_machine(fake_nvml: FakeNvml) -> None:
    done = gpudeck("box", "--json", environment=fake_nvml(pair(), READINGS).environment)
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert [gpu["gpu_utilization_percent"] for gpu in document["gpus"]] == [87, 87]
    assert document["links"] == [{"a": 0, "b": 1, "kind": "NV12"}]


def test_topo_tells_the_matrix(fake_nvml: FakeNvml) -> None:
    environment = fake_nvml(pair()).environment
    assert gpudeck("topo", environment=environment).stdout.splitlines()[:3] == [
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity",
        "GPU0\t X \tNV12\t0-31,64-95\t0",
        "GPU1\tNV12\t X \t0-31,64-95\t0",
    ]
    done = gpudeck("topo", "--json", environment=environment)
    assert json.loads(done.stdout) == {"gpus": [0, 1], "matrix": [["X", "NV12"], ["NV12", "X"]]}


def test_a_box_that_can_not_be_read_is_one_sentence_and_exit_1(fake_nvml: FakeNvml, tmp_path: Path) -> None:
    playing = fake_nvml(pair(), (), init="!LIB_RM_VERSION_MISMATCH")
    for words in (["box", "--json"], ["topo", "--json"], ["box", "--watch"]):
        done = gpudeck(*words, environment=playing.environment)
        assert (done.returncode, done.stdout) == (1, "")
        assert "of two versions" in done.stderr
        assert done.stderr.count("\n") == 1
    done = gpudeck("box", "--demo", "--record", str(tmp_path / "none" / "box.json"))
    assert done.returncode == 1
    assert "can not be written" in done.stderr


def test_a_recorded_box_is_the_same_box(fake_nvml: FakeNvml, tmp_path: Path) -> None:
    file = str(tmp_path / "box.json")
    environment = fake_nvml(pair(), READINGS).environment
    live = gpudeck("box", "--json", "--record", file, environment=environment)
    assert live.returncode == 0
    replayed = gpudeck("box", "--json", "--box", file)
    there, again = json.loads(live.stdout), json.loads(replayed.stdout)
    assert {**again, "at": None} == {**there, "at": None}


def test_recording_and_replaying_need_neither_bus_nor_screen(fake_nvml: FakeNvml, tmp_path: Path) -> None:
    """A box to be recorded may have nothing but Python, pynvml and psutil."""
    file = tmp_path / "box.json"
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['textual', 'rich', 'gi', 'pydbus', 'httpx', 'gguf']));"
        "from gpudeck.app.cli import run; sys.exit(run(sys.argv[1:]))"
    )

    def bare(*words: str) -> subprocess.CompletedProcess[str]:
        environment = fake_nvml(pair(), READINGS).environment
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    live = bare("box", "--record", str(file))
    assert (live.returncode, live.stderr.count("\n")) == (0, 1)
    replayed = bare("box", "--box", str(file))
    assert (replayed.returncode, replayed.stdout, replayed.stderr) == (0, live.stdout, "")
    assert bare("topo", "--box", str(file)).stdout == bare("topo").stdout


def test_a_card_that_hangs_does_not_keep_the_others_from_being_told(fake_nvml: FakeNvml) -> None:
    playing = fake_nvml(pair(), READINGS, **{"gpu.1.power_mw.delay_us": "600000000"})
    done = gpudeck("box", "--json", environment=playing.environment)
    assert done.returncode == 0
    well, ill = json.loads(done.stdout)["gpus"]
    assert (well["fault"], well["power_watts"]) == (None, 312.5)
    assert "does not answer" in ill["fault"]


def test_watch_records_until_it_is_interrupted(tmp_path: Path) -> None:
    recorded = tmp_path / "watched.json"
    save_box_file(tmp_path / "box.json", BoxFile(pair(), (Reading(0, memory_used_bytes=1), Reading(1))))
    words = ["box", "--watch", "--json", "--box", str(tmp_path / "box.json"), "--record", str(recorded)]
    for ending in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(
            [sys.executable, "-m", "gpudeck.app", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Whoever runs the tests in the background has Ctrl-C ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        assert process.stdout is not None
        documents = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(ending)
        _, told = process.communicate(timeout=60)
        assert process.returncode == 0, told
        assert documents[0]["gpus"] == documents[1]["gpus"]
        assert len(load_box_file(recorded).frames) >= 2
        assert str(recorded) in told
        recorded.unlink()


def test_a_reader_that_goes_away_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "gpudeck.app", "--demo=sixteen", "box", "--watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 0
    process.stderr.close()


@pytest.mark.parametrize("words", [["box", "--demo=none"], ["topo", "--box", "none.json"]])
def test_an_unknown_box_is_refused(words: list[str]) -> None:
    done = gpudeck(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
