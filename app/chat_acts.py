"""What an operator says to an engine."""

from functools import partial

from textual import on

from gpudeck.app.chat_desk import ChatDesk, ChatFace
from gpudeck.app.deck_app import PanelSetup
from gpudeck.app.engine_acts import EngineActs
from gpudeck.app.screens.shown import engine_words
from gpudeck.services.http.address import Address
from gpudeck.widgets.messages import ChatCancelled, ChatSubmitted, ChatUnready

_ANSWER = "chat-answer"  # the worker group: one answer at a time


class ChatActs(EngineActs):
    def __init__(self, setup: PanelSetup) -> None:
        super().__init__(setup)
        pane = self.deck.chat
        self._chat = ChatDesk(ChatFace(pane.append, pane.append_reasoning, pane.finish, pane.fail))

    @on(ChatSubmitted)
    def _chat_submitted(self, message: ChatSubmitted) -> None:
        engine = self.state.engine
        pane = self.deck.chat
        if engine is None or engine.unit.spec is None or not engine.ready:
            self.tell_unready()
            return
        options = engine.unit.spec.options
        url = Address.of_engine(options.host, options.port).url
        if self._chat.turn_to(f"{engine.unit.name} {engine.unit.main_pid}"):
            pane.clear()
        pane.begin(message.text)
        model = engine.served[0] if engine.served else ""
        find_key = partial(self.engine_desk.api_key, engine.unit.name)
        self.turn_worker(_ANSWER, partial(self._chat.ask, url, model, message.text, find_key))

    @on(ChatUnready)
    def tell_unready(self) -> None:
        """Say what is missing for an answer."""
        engine = self.state.engine
        if engine is None:
            self.say("There is no engine to talk to: s starts the plan on the board.", "warning")
        elif engine.unit.spec is None:
            self.say(f"What {engine.unit.name} runs can not be read, so its port is not known.", "warning")
        elif engine.unit.runs:
            self.say(f"{engine_words(self.state, self.glyphs)}: it does not answer yet.", "warning")
        else:
            self.say(
                f"{engine.unit.name} is {engine.word} and can not answer: s in the engine list starts it.", "warning"
            )

    @on(ChatCancelled)
    def _chat_cancelled(self) -> None:
        self.workers.cancel_group(self, _ANSWER)
