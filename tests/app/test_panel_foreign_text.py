"""Words of others are text everywhere in the panel: nothing in them is obeyed, by the terminal or by Textual."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpudeck.services.engine import choose
from gpudeck.services.engine.types import Runner, Scope, UnitState
from gpudeck.services.errors import OperatorError
from tests.app.panels import COMPACT, WIDE, Desk, demo, panel, real
from tests.app.test_panel_engines import select, small
from tests.rigs.at_the_panel import free_port
from tests.rigs.fakenvml.fixtures import FakeNvml
from tests.services.box.boxes import busy, card, pair
from tests.services.http.stub import answer, serving, stream

pytestmark = pytest.mark.panel

EVIL = "[red]x[/red] [/] [@click=app.quit]y[/] \x1b]0;owned\x07\x1b[2J\x9b31m\u202ez"
SHOWN = "[red]x[/red] [/] [@click=app.quit]y[/] ^[]0;owned^G^[[2J"

FORWARD = """\
import asyncio, sys

async def pump(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()

async def connected(reader, writer):
    there, back = await asyncio.open_connection("127.0.0.1", int(sys.argv[2]))
    await asyncio.gather(pump(reader, back), pump(there, writer), return_exceptions=True)

async def main():
    server = await asyncio.start_server(connected, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()

asyncio.run(main())
"""

_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def obeys_nothing(desk: Desk) -> None:
    found = _CONTROL.search(desk.shown)
    assert found is None, repr(desk.shown[found.start() - 40 : found.end() + 40])


@pytest.fixture
def runner(home: Path) -> Runner:
    return choose.open_runner(demo=True)


@pytest.mark.parametrize("size", [WIDE, COMPACT], ids=["wide", "compact"])
async def test_a_box_with_evil_names(home: Path, fake_nvml: FakeNvml, size: tuple[int, int]) -> None:
    box = replace(pair(), gpus=(card(0, name=EVIL[:60]), card(1)), driver="5[b]80[/b]\x1b[2J", name=EVIL)
    fake_nvml(box, (busy(0), busy(1)))
    async with panel(real(), size) as desk:
        for pane in "12345":
            await desk.press(pane)
            obeys_nothing(desk)
        await desk.press("escape", "1")
        await desk.sees("[red]x[/red]")


async def test_a_sentence_with_markup_is_a_notice_as_it_is(home: Path) -> None:
    def refuse() -> Runner:
        raise OperatorError(f"{EVIL} is broken.")

    async with panel(replace(demo(), open_runner=refuse)) as desk:
        await desk.hears(SHOWN)
        await desk.sees("[red]x[/red]")
        obeys_nothing(desk)


@pytest.mark.parametrize("size", [WIDE, COMPACT], ids=["wide", "compact"])
async def test_models_with_evil_names(home: Path, tmp_path: Path, size: tuple[int, int]) -> None:
    shelf = tmp_path / "shelf"
    config = json.dumps(
        {"model_type": EVIL, "architectures": [EVIL], "hidden_size": 64, "num_hidden_layers": 2,
         "num_attention_heads": 2, "vocab_size": 100, "intermediate_size": 128, "torch_dtype": "bfloat16"}
    )  # fmt: skip
    for name, text in (("[red]a[/red]\x1b[2J", config), ("broken[/]", EVIL)):
        model = shelf / name
        model.mkdir(parents=True)
        (model / "config.json").write_text(text)
    async with panel(replace(demo(), model_roots=lambda: (shelf,)), size) as desk:
        await desk.press("m")
        await desk.sees("[red]a[/red]^[[2J")
        await desk.sees("broken[/]")
        obeys_nothing(desk)
        await desk.write("red")
        await desk.sees("correct the file")
        obeys_nothing(desk)
        await desk.press("escape")
        await desk.press("2", "a")
        await desk.sees("--port")
        obeys_nothing(desk)
        await desk.press("escape", "p", "s", "v")
        await desk.pilot.pause()
        obeys_nothing(desk)


@pytest.mark.parametrize("size", [WIDE, COMPACT], ids=["wide", "compact"])
async def test_a_log_with_evil_lines(home: Path, runner: Runner, tmp_path: Path, size: tuple[int, int]) -> None:
    script = tmp_path / "evil.log"
    script.write_text(f"Traceback (most recent call last):\n  x\nRuntimeError: {EVIL}\n")
    small(tmp_path / "a", "evil", runner, f"cat {script}; exit 3")
    async with panel(demo(), size) as desk:
        await select(desk, "evil")
        await desk.press("s")
        await desk.is_("evil", "failed")
        await desk.press("4")
        await desk.sees("[red]x[/red] [/] [@click=app.quit]y[/]")
        obeys_nothing(desk)
        await desk.press("3")
        await desk.sees("RuntimeError: [red]x[/red]")
        obeys_nothing(desk)


@pytest.mark.parametrize("size", [WIDE, COMPACT], ids=["wide", "compact"])
async def test_a_foreign_unit_with_an_evil_name(home: Path, size: tuple[int, int]) -> None:
    class Foreign:
        """The embedded runner with a unit beside its own, as systemd's lists hold those of others."""

        def __init__(self) -> None:
            self._runner = choose.open_runner(demo=True)
            self.unit = UnitState(
                "[red]x[/red]\x1b[2J", "vllm-[red]x[/red]\x1b[2J.service", Scope.SYSTEM, False, "active"
            )

        def __getattr__(self, name: str) -> object:
            return getattr(self._runner, name)

        def engines(self) -> tuple[UnitState, ...]:
            return (self.unit,)

        def stop(self, name: str) -> None:
            raise OperatorError(f"{name} can not be stopped.")

    async with panel(replace(demo(), demo=False, open_runner=Foreign), size) as desk:  # type: ignore[arg-type]
        await desk.press("3")
        await desk.sees("[red]x[/red]^[[2J")
        for pane in "45":
            await desk.press(pane)
            await desk.sees("[red]x[/red]^[[2J")
            obeys_nothing(desk)
        await desk.press("escape", "3", "D")
        await desk.hears("[red]x[/red]^[[2J.service was not written by gpudeck")
        await desk.press("x")
        await desk.sees("stop [red]x[/red]^[[2J")
        obeys_nothing(desk)
        await desk.press("y")
        await desk.hears("[red]x[/red]^[[2J can not be stopped.")
        obeys_nothing(desk)


async def test_an_answer_with_evil_words(home: Path, runner: Runner, tmp_path: Path) -> None:
    async with serving() as stub:
        event = {"choices": [{"delta": {"content": f"{EVIL}\n"}, "finish_reason": None}]}
        stub.replies["/health"] = answer(200, "")
        stub.replies["/v1/models"] = answer(200, json.dumps({"data": [{"id": EVIL}]}))
        stub.replies["/v1/chat/completions"] = stream(
            json.dumps(event), json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]}), "[DONE]"
        )
        # The engine's own process listens, as the panel believes no other, and hands each connection on to the stub.
        port, program = free_port(), tmp_path / "forward.py"
        program.write_text(FORWARD)
        script = f"exec {sys.executable} {program} {port} {stub.url.rpartition(':')[2]}"
        small(tmp_path / "a", "talks", runner, script, port=port)
        runner.start("talks")
        async with panel(demo()) as desk:
            await desk.is_("talks", "ready")
            await desk.press("c")
            await desk.write("hello")
            await desk.press("enter")
            await desk.sees("[@click=app.quit]y")
            obeys_nothing(desk)
            stub.replies["/v1/chat/completions"] = answer(400, json.dumps({"error": {"message": EVIL}}))
            await desk.write("again")
            await desk.press("enter")
            await desk.sees("[red]x[/red]")
            obeys_nothing(desk)
