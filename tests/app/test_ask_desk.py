"""The desk that asks vLLM: answers arrive by message, and only the newest question's."""

import queue
from pathlib import Path

from gpudeck.app.ask_desk import AskDesk
from gpudeck.app.messages import VllmAnswered
from gpudeck.services.vllm.answer import Reply
from tests.services.vllm.test_asking import answering, replying, spec


def test_an_answer_arrives_and_is_known_from_then_on(tmp_path: Path) -> None:
    arrived: queue.Queue[object] = queue.Queue()
    desk = AskDesk(arrived.put)
    asked = spec(replying(tmp_path, "accepted"))
    assert desk.known(asked) is None
    desk.ask(asked)
    message = arrived.get(timeout=30)
    assert isinstance(message, VllmAnswered)
    assert (message.spec, message.answer.reply) == (asked, Reply.ACCEPTED)
    assert desk.known(asked) == message.answer
    assert desk.asked is None


def test_a_new_question_calls_the_one_before_off(tmp_path: Path) -> None:
    arrived: queue.Queue[object] = queue.Queue()
    desk = AskDesk(arrived.put)
    desk.ask(spec(answering(tmp_path / "slow", "exec sleep 600")))
    newer = spec(replying(tmp_path / "quick", "refused", "no"))
    desk.ask(newer)
    message = arrived.get(timeout=30)
    assert isinstance(message, VllmAnswered)
    assert message.spec == newer
    assert arrived.empty()


def test_nothing_arrives_once_it_was_called_off(tmp_path: Path) -> None:
    arrived: queue.Queue[object] = queue.Queue()
    desk = AskDesk(arrived.put)
    desk.ask(spec(answering(tmp_path / "slow", "exec sleep 600")))
    desk.cancel()
    assert desk.asked is None
    desk.ask(spec(replying(tmp_path / "quick", "accepted")))
    arrived.get(timeout=30)
    assert arrived.empty()
