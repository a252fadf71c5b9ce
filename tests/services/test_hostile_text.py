"""Text of others, damaged at random: each reader reads it or refuses it in a sentence, and raises nothing else.

What is damaged is real: tests/data, and tests/data/corpora for what has no other place.  A few hundred trials here;
`GPUDECK_FUZZ=20000 .venv/bin/python -m pytest tests/services/test_hostile_text.py` tries as many of each kind.
"""

import os
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudeck.services.adoption.read import read_unit
from gpudeck.services.adoption.review import Ground, review
from gpudeck.services.adoption.syntax import environment_file
from gpudeck.services.adoption.types import UnitFiles
from gpudeck.services.bench import store
from gpudeck.services.box.boxfile import parse_box_file
from gpudeck.services.diagnosis.reader import LogReader
from gpudeck.services.engine.enginedir import Command, EngineDirectory
from gpudeck.services.engine.journal import lines_of
from gpudeck.services.engine.phases import PhaseTracker
from gpudeck.services.engine.unit_text import edited, spec_of, unit_text
from gpudeck.services.errors import OperatorError
from gpudeck.services.http.answer import Answer
from gpudeck.services.http.conversation import read as read_conversation
from gpudeck.services.http.refusals import refusal
from gpudeck.services.http.sse import EventReader, EventTooLongError
from gpudeck.services.metrics.reading import read_sample
from gpudeck.services.plan import spec_json
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from gpudeck.services.text import printable

_TRIALS = int(os.environ.get("GPUDECK_FUZZ", "150"))
_DATA = Path(__file__).parents[1] / "data"
_LARGEST = 40_000  # bytes of one example

_OWN = EngineSpec(
    "a", "/models/a b", Placement(((0,), (1,))), EngineOptions(port=8001), environment=(("HF_HOME", "/m"),)
)
_UNIT = unit_text(_OWN, argv=("/opt/vllm", "serve", "/models/a b"), environment={"A": "1 %"}, secrets_file="/etc/k.env")


def _kept(*patterns: str) -> tuple[bytes, ...]:
    found = [path for pattern in patterns for path in sorted(_DATA.glob(pattern)) if path.is_file()]
    assert found, patterns
    return tuple(path.read_bytes()[:_LARGEST] for path in found if path.stat().st_size <= 4 * _LARGEST)


# What parsers stumble over, put into a place of its own or over what stands there.
_PIECES = st.one_of(
    st.binary(min_size=1, max_size=8),
    st.sampled_from(
        [
            *(b"\0", b"\r", b"\n", b"\n\n", b"\x1b]0;x\x07", b"\x1b[2J", b"\x9b", b"\xff\xfe", b"\xed\xa0\x80"),
            *(b"\xe2\x80\xae", b"\xe2\x80\xa8", b"\xc4\xb0", b"\xd9\xa3", b"\xc2\xb2"),
            *(b"\\", b'"', b"'", b"%", b"%%i", b"$", b"${", b"${A}", b"{", b"}", b"[", b"]", b"=", b";", b"#"),
            *(b"[" * 3000, b'{"a":' * 2000, b"A" * 70_000, struct.pack("<Q", (1 << 64) - 1)),
            *(b"null", b"true", b"NaN", b"Infinity", b"-1", b"1e400", b"9" * 40, b"9" * 5000, b"0x", b"-0"),
            *(b"data:", b"data: {}\n\n", b"vllm:", b'le="', b"[Service]\n", b"ExecStart=", b"--", b"-tp"),
        ]
    ),
)


@st.composite
def damaged(draw: st.DrawFn, kept: tuple[bytes, ...]) -> bytes:
    """One of the kept texts with a few places cut out, doubled, or written over."""
    text = draw(st.sampled_from(kept))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, max(len(text) - 1, 0)))
        end = min(start + draw(st.sampled_from((0, 1, 2, 5, 20, 200, 5000))), len(text))
        match draw(st.sampled_from(("put", "cut", "double", "other", "end"))):
            case "put":
                text = text[:start] + draw(_PIECES) + text[end:]
            case "cut":
                text = text[:start] + text[end:]
            case "double":
                text = text[:end] + text[start:]
            case "other":
                other = draw(st.sampled_from(kept))
                text = text[:start] + other[: end - start] + text[end:]
            case _:
                text = text[:start]
    return text


def _text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda damage: read(damage.decode("utf-8", "replace"))


def _unit(text: str) -> None:
    adopted = read_unit(UnitFiles("vllm-a@b.service", (text, text), "/etc/x"), lambda _path: text)
    if adopted is not None:
        for finding in review(adopted, Ground()).findings:
            assert printable(finding.message) == finding.message
    spec_of(text)
    edited(text)
    environment_file(text)


def _stream(damage: bytes) -> None:
    """In pieces of any size, as a network cuts it."""
    reader, answer = EventReader(), Answer("http://127.0.0.1:8000", 0.0)
    pieces: Iterator[bytes] = (damage[start : start + 37] for start in range(0, len(damage), 37))
    try:
        for piece in (*pieces, b"\n\n"):
            for event in reader.feed(piece):
                for brought in answer.read(event, 1.0):
                    repr(brought)
        repr(answer.done(2.0).tokens_per_second)
    except EventTooLongError:
        return


def _log(text: str) -> None:
    reader, tracker = LogReader(), PhaseTracker()
    for line in text.split("\n"):
        reader.feed(line)
        tracker.feed(line, 1.0)
    for found in reader.diagnoses():
        assert printable(found.line) == found.line


def _file(read: Callable[[Path], object], folder: Path, damage: bytes) -> None:
    path = folder / "file.json"
    path.write_bytes(damage)
    try:
        read(path)
    except ValueError as error:
        raise OperatorError(str(error)) from None  # as the runner tells it


def _journal(damage: bytes) -> None:
    for entry in damage.split(b"\n"):
        for line in lines_of(entry):
            assert "\n" not in line.text
            assert len(line.text) < 70_000


def _run_of(path: Path) -> None:
    for name in ("run.json", "end.json"):
        path.with_name(name).write_bytes(path.read_bytes())
    files = EngineDirectory(path.parent)
    files.run()
    files.end("r")


_RUN = (
    b'{"run": "r", "boot": "b", "since": 1796083200.5, "supervisor": {"pid": 10, "started": 99}, "main": {"pid": 11, '
    b'"started": 100}}',
    b'{"run": "r", "at": 1796083300.5, "status": 9, "asked": false}',
)
_COMMAND = (
    Command("vllm-a.service", ("/opt/vllm", "serve"), {"A": "1"}, 60.0, 5.0).text().encode(),
    Command("vllm-a.service", ("/opt/vllm",), {}, 60.0, None).text().encode(),
)
_TURNS = (
    b"# a\n\n## system\n\nBe short.\n\n## user\n\nHi\n\n## assistant\n\n```\n## user\n```\n",
    b'[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]',
)
_ERRORS = (
    b'{"error": {"message": "This model\'s maximum context length is 4096 tokens. However, you requested 5000"}}',
    b'{"detail": [{"loc": ["body"], "msg": "field required"}]}',
    b"<html>502</html>",
)

KINDS: dict[str, tuple[tuple[bytes, ...], Callable[[Path], Callable[[bytes], object]]]] = {
    "box": (_kept("boxes/*.json", "recordings/*.json"), lambda _: _text(partial(parse_box_file, name="box.json"))),
    "unit": ((*_kept("units/*"), _UNIT.encode()), lambda _: _text(_unit)),
    "spec": ((spec_json.dumps(_OWN).encode(),), lambda _: _text(spec_json.loads)),
    "journal": (_kept("corpora/journal/*"), lambda _: _journal),
    "log": (_kept("logs/*"), lambda _: _text(_log)),
    "stream": (_kept("corpora/sse/*"), lambda _: _stream),
    "refusal": (_ERRORS, lambda _: lambda body: refusal("http://127.0.0.1:8000", 400, body, has_key=True)),
    "metrics": (_kept("metrics-*.txt"), lambda _: _text(partial(read_sample, at=1.0))),
    "conversation": (_TURNS, lambda _: _text(partial(read_conversation, "a.md"))),
    "conversation as JSON": (_TURNS, lambda _: _text(partial(read_conversation, "a.json"))),
    "result": (_kept("bench/*.json"), lambda folder: partial(_file, store.read, folder)),
    "command of an engine": (_COMMAND, lambda folder: partial(_file, Command.read, folder)),
    "run of an engine": (_RUN, lambda folder: partial(_file, _run_of, folder)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_read_or_refused_in_a_sentence(kind: str, tmp_path: Path) -> None:
    kept, reader = KINDS[kind]
    read = reader(tmp_path)

    @settings(max_examples=_TRIALS)
    @given(damaged(kept))
    def trial(damage: bytes) -> None:
        try:
            read(damage)
        except OperatorError as error:
            message = str(error)
            assert printable(message) == message
            assert 10 < len(message) < 2000

    trial()
