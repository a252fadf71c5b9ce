"""Engines of a plain user, who is asked once whether they shall outlive the login."""

import threading

from textual import on

from gpudeck.app.deck_app import DeckApp, PanelSetup
from gpudeck.app.messages import ActEnded, RunnerOpened
from gpudeck.services.engine.types import Runner
from gpudeck.services.errors import OperatorError
from gpudeck.widgets.confirm import Confirm


class LingerActs(DeckApp):
    def __init__(self, setup: PanelSetup) -> None:
        super().__init__(setup)
        self._linger_offered = setup.demo  # whose engines go when the panel is left

    @on(ActEnded)
    def _offer_linger(self, message: ActEnded) -> None:
        runner = self.engine_desk.runner
        started = message.doing in ("starting", "restarting") and not message.failure
        if self._linger_offered or not started or runner is None or runner.outlives_login:
            return
        self._linger_offered = True

        def answered(wished: bool | None) -> None:
            if wished:
                threading.Thread(target=self._let_linger, args=(runner,), name="linger", daemon=True).start()

        lost = (
            "Your engines end when you log out, and do not start at boot.",
            "Lingering, which logind keeps note of, lets all of your services go on.",
        )
        self.push_screen(
            Confirm("Engines that outlive your login?", lost, act="let them go on", glyphs=self.glyphs), answered
        )

    def _let_linger(self, runner: Runner) -> None:
        try:
            runner.let_outlive_login()
        except OperatorError as error:
            self.call_later(self.say, str(error), "warning")
            return
        self.post_message(RunnerOpened(runner.description))
        self.call_later(self.say, "Your engines go on after you have logged out.")
