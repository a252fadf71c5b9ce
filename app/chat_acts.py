"""What an operator says to an engine."""

from textual import on

from gpudeck.app.chat_desk import ChatDesk, ChatFace
from gpudeck.app.deck_app import PanelSetup
from gpudeck.app.engine_acts import EngineActs
from gpudeck.services.http.address import Address
from gpudeck.widgets.messages import ChatCancelled, ChatSubmitted

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
        if engine is None or engine.unit.spec is None:
            self.say("There is no engine to talk to: select one in the engine list.", "warning")
            return
        if not engine.ready:
            self.say(f"{engine.unit.name} is {engine.word} and does not answer yet.", "warning")
            return
        options = engine.unit.spec.options
        url = Address.of_engine(options.host, options.port).url
        if self._chat.turn_to(f"{engine.unit.name} {engine.unit.main_pid}"):
            pane.clear()
        pane.begin(message.text)
        model = engine.served[0] if engine.served else ""
        self.run_worker(self._chat.ask(url, model, message.text), group=_ANSWER, exclusive=True, exit_on_error=False)

    @on(ChatCancelled)
    def _chat_cancelled(self) -> None:
        self.workers.cancel_group(self, _ANSWER)
