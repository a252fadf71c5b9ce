"""What an operator says to an engine."""

import asyncio
import time
from dataclasses import replace
from functools import partial

from textual import on

from gpudeck.app import places
from gpudeck.app.chat_desk import ChatDesk, ChatFace
from gpudeck.app.deck_app import PanelSetup
from gpudeck.app.engine_acts import EngineActs
from gpudeck.app.screens.shown import engine_words
from gpudeck.services.errors import OperatorError
from gpudeck.services.http import conversation, conversation_file
from gpudeck.services.http.address import Address
from gpudeck.widgets.messages import (
    AnswerAskedAnew,
    ChatCancelled,
    ChatLoadAsked,
    ChatSaveAsked,
    ChatSettingsAsked,
    ChatSubmitted,
    ChatUnready,
    QuestionEditAsked,
)
from gpudeck.widgets.path_dialog import PathDialog

_ANSWER = "chat-answer"  # the worker group: one answer at a time


class ChatActs(EngineActs):
    def __init__(self, setup: PanelSetup) -> None:
        super().__init__(setup)
        pane = self.deck.chat
        self._chat = ChatDesk(ChatFace(pane.append, pane.append_reasoning, pane.note, pane.finish, pane.fail))

    @on(ChatSubmitted)
    def _chat_submitted(self, message: ChatSubmitted) -> None:
        self._ask(message.text, message.back)

    def _ask(self, text: str, back: int) -> None:
        settings, pane = self._chat.settings, self.deck.chat
        if settings.url:
            target, url, model = settings.url, settings.url, ""
            find_key = partial(_key_of, settings.key_file)
        else:
            engine = self.state.engine
            if engine is None or engine.unit.spec is None or not engine.ready:
                self.tell_unready()
                return
            options = engine.unit.spec.options
            target = f"{engine.unit.name} {engine.unit.main_pid}"
            url = Address.of_engine(options.host, options.port).url
            model = engine.served[0] if engine.served else ""
            find_key = partial(self.engine_desk.api_key, engine.unit.name)
        if self._chat.turn_to(target):
            pane.clear()
            back = 0
        pane.drop(back)
        pane.begin(text)
        self.turn_worker(_ANSWER, partial(self._chat.ask, url, model, text, find_key, back=back))

    @on(AnswerAskedAnew)
    def _answer_anew(self) -> None:
        question = self._chat.question(1)
        if self.deck.chat.answering:
            self.say("An answer is coming: Esc cancels it.", "warning")
        elif question is None:
            self.say("There is no question yet to answer anew.", "warning")
        else:
            self._ask(question, 1)

    @on(QuestionEditAsked)
    def _edit_question(self, message: QuestionEditAsked) -> None:
        question = self._chat.question(message.back)
        if self.deck.chat.answering:
            self.say("An answer is coming: Esc cancels it.", "warning")
        elif question is None:
            self.say("There is no earlier question to edit.", "warning")
        else:
            self.deck.chat.edit(question, message.back)

    @on(ChatSettingsAsked)
    def _chat_settings(self) -> None:
        from gpudeck.widgets.chat_form import ChatForm

        def answered(settings: conversation.ChatSettings | None) -> None:
            if settings is not None:
                self._chat.settings = settings
                self.change(replace(self.state, chat_url=settings.url))

        self.push_screen(ChatForm(self._chat.settings, lambda text: Address.parse(text).url, self.glyphs), answered)

    @on(ChatSaveAsked)
    def _save_chat(self) -> None:
        turns = self._chat.turns
        if not any(turn.role == "user" for turn in turns):
            self.say("There is nothing to save: no question has been answered yet.", "warning")
            return

        def answered(path: str | None) -> None:
            if path is not None:
                text = conversation.written(path.strip(), turns)
                self.turn_worker("chat-file", partial(self._save_turns, path, text))

        offered = f"~/chat-{time.strftime('%Y%m%d-%H%M%S')}.md"
        note = "Every question that was answered: Markdown in a file that ends in .md, otherwise JSON."
        self.push_screen(PathDialog("Save the conversation", offered, note, glyphs=self.glyphs), answered)

    async def _save_turns(self, path: str, text: str) -> None:
        """A disk may be slow, or far away."""
        from gpudeck.services.engine.savedlog import save

        try:
            file = await asyncio.to_thread(save, path, text)
        except OperatorError as error:
            self.say(str(error), "error")
        else:
            self.say(f"The conversation is in {places.home_relative(str(file))}.")

    @on(ChatLoadAsked)
    def _load_chat(self) -> None:
        if self.deck.chat.answering:
            self.say("An answer is coming: Esc cancels it.", "warning")
            return

        def answered(path: str | None) -> None:
            if path is not None:
                self.turn_worker("chat-file", partial(self._load_turns, path))

        note = "A conversation in Markdown (.md) or JSON; it takes the place of the one in view."
        self.push_screen(PathDialog("Load a conversation", "~/", note, act="load", glyphs=self.glyphs), answered)

    async def _load_turns(self, path: str) -> None:
        try:
            turns = await asyncio.to_thread(conversation_file.load, path)
        except OperatorError as error:
            self.say(str(error), "error")
        else:
            self.deck.chat.show_past((one.question, one.answer) for one in self._chat.load(turns))

    @on(ChatUnready)
    def tell_unready(self) -> None:
        """Say what is missing for an answer."""
        engine = self.state.engine
        if engine is None:
            self.say(
                "There is no engine to talk to: s starts the plan on the board, Ctrl+O names a server elsewhere.",
                "warning",
            )
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


def _key_of(key_file: str) -> str | None:
    """The API key for a server elsewhere.  Called on a thread; raises OperatorError."""
    from gpudeck.app.access import key_from

    return key_from(key_file)
