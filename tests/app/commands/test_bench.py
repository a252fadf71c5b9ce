"""`gpudeck bench` as a script runs it, against the demo's engines."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from tests.app.write_schemas import DOCS
from tests.rigs.as_command import Gpudeck
from tests.rigs.at_the_panel import free_port

QUICK = ("--input-tokens", "32", "--output-tokens", "8", "--requests", "4", "--concurrency", "1,2", "--demo")


@pytest.fixture
def engines(gpudeck: Gpudeck) -> tuple[str, str]:
    """Two demo engines that are ready: one over two stages, one on a card of its own."""
    for name, *stages in (("pair", "1", "2"), ("alone", "0")):
        words = [word for stage in stages for word in ("--stage", stage)]
        more = ("--max-model-len", "2048", "--name", name, "--port", str(free_port()), "--yes", "--demo")
        assert gpudeck("install", "demo-llama-3.1-8b", *words, *more).code == 0
        assert gpudeck("start", name, "--demo").code == 0
    return "pair", "alone"


def test_runs_are_kept_compared_and_exported(gpudeck: Gpudeck, engines: tuple[str, str]) -> None:
    pair, alone = engines
    done = gpudeck("bench", pair, *QUICK)
    assert done.code == 0, done.err
    for words in ("PP2 on 2 × A100", "1 at once", "tokens/J", "its error", "GPU 2", "Kept as"):
        assert words in done.out, done.out

    told = gpudeck("bench", alone, "--json", *QUICK)
    document = json.loads(told.out)
    jsonschema.validate(document, json.loads((DOCS / "bench-command.schema.json").read_text()))
    level = document["levels"][0]
    assert (told.code, level["completed"], level["output_tokens"]) == (0, 4, 32)
    assert level["estimated"] > 0
    assert level["cards"][0]["gpu"] == 0
    assert level["tokens_per_joule"] > 0

    both = gpudeck("bench", pair, alone, "--events", *QUICK)
    steps = [json.loads(line) for line in both.out.splitlines()]
    assert Path(steps[-1]["kept"]).exists()
    assert steps[-2]["finished"]["tokens_per_s"] > 0

    compared = gpudeck("bench", "--results", "--demo")
    assert compared.code == 0
    assert "PP2 on 2 × A100-SXM4-40GB (1,2) + alone on RTX 4090 D (0)" in compared.out
    assert "█" in compared.out
    rows = list(csv.DictReader(io.StringIO(gpudeck("bench", "--export", "csv", "--demo").out)))
    assert len(rows) == 6
    exported = json.loads(gpudeck("bench", "--export", "json", "--demo").out)
    jsonschema.validate(exported, json.loads((DOCS / "bench-results.schema.json").read_text()))
    assert json.loads(gpudeck("bench", "--results", "--json", "--demo").out) == exported
    assert gpudeck("bench", "--export", "md", "--demo").out.startswith("## demo-llama")


def test_refusals_before_anything_is_sent(gpudeck: Gpudeck) -> None:
    for words, said in (
        (("bench", "--demo"), "No engine runs here"),
        (("bench", "nobody", "--demo"), "No engine is called nobody"),
        (("bench", "http://127.0.0.1:1", "http://127.0.0.1:1"), "named twice"),
        (("bench", "http://127.0.0.1:1", "--load", "vllm"), "no vllm bench serve"),
        (("bench", "http://a", "--concurrency", "1", "--rate", "2"), "two kinds of load"),
    ):
        done = gpudeck(*words)
        assert done.refused, (words, done)
        assert said in done.err
    for words in (("--concurrency", "0"), ("--rate", "x"), ("--first-token", "-1"), ("--requests", "1.5")):
        assert gpudeck("bench", *words).code == 2
    dead = gpudeck("bench", "http://127.0.0.1:1")
    assert dead.code == 1
    assert "Nothing answers" in dead.err
    assert "Nothing was measured here yet" in gpudeck("bench", "--results").out


def test_an_interrupted_run_is_kept_as_a_part(gpudeck: Gpudeck, engines: tuple[str, str], home: Path) -> None:
    words = (
        "bench",
        engines[1],
        "--events",
        "--demo",
        "--scope",
        "embedded",
        "--requests",
        "2000",
        "--concurrency",
        "1",
    )
    with subprocess.Popen(
        [sys.executable, "-m", "gpudeck.app", *words], stdout=subprocess.PIPE, text=True, env=os.environ
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if json.loads(line)["done"] >= 2:
                break
        child.send_signal(signal.SIGINT)
        kept = json.loads(child.stdout.readlines()[-1])["kept"]
        assert child.wait(20) == 130
    document = json.loads(Path(kept).read_text())
    assert document["partial"]
    assert document["levels"][0]["partial"]
    assert document["levels"][0]["completed"] >= 2
