"""What an operator does to engines: start, stop, restart, remove."""

import threading
from collections.abc import Callable
from pathlib import Path

from textual import on

from gpudeck.app.deck_app import PanelSetup
from gpudeck.app.messages import PreviewArrived, VllmAnswered
from gpudeck.app.state import EngineInfo
from gpudeck.app.unit_acts import UnitActs
from gpudeck.services.box.types import Snapshot
from gpudeck.services.engine.types import NO_SECRETS, Runner, UnitPreview
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.findings import Severity, VerdictState
from gpudeck.services.plan.secrets import Secrets
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.rules.asked import finding
from gpudeck.services.text import printable
from gpudeck.widgets.confirm import Confirm
from gpudeck.widgets.glyphs import joined
from gpudeck.widgets.unit_preview import UnitPreview as UnitPreviewScreen
from gpudeck.widgets.verdict import counted, memory_words


class EngineActs(UnitActs):
    def __init__(self, setup: PanelSetup) -> None:
        super().__init__(setup)
        self._viewing_only = False
        self._ran_before: EngineSpec | None = None  # the spec that is gone back to, which the board does not judge

    # -- start

    def action_start(self) -> None:
        """Start what is on the board, or the stopped engine that the list's cursor stands on."""
        engine = self.state.engine
        if self.deck.engine_list.has_focus and engine is not None:
            if engine.unit.alive:
                self.say(f"{engine.unit.name} is {engine.word} already.")
            else:
                self._act(engine.unit.name, "starting", engine.unit.spec)
            return
        self.forget_refusal()
        missing = self._missing()
        if missing:
            self.say(missing, "warning")
            return
        self._viewing_only, self._ran_before = False, None
        self.engine_desk.preview(self.state.draft.spec(self.state.program))

    def action_view_unit(self) -> None:
        """Show the unit that the board stands for, and what it would change; start nothing."""
        self.forget_refusal()
        missing = self._missing(blocked_is_fine=True)
        if missing:
            self.say(missing, "warning")
            return
        self._viewing_only, self._ran_before = True, None
        self.engine_desk.preview(self.state.draft.spec(self.state.program))

    def _missing(self, *, blocked_is_fine: bool = False) -> str | None:
        """What the draft lacks for a start, with the next step."""
        state = self.state
        if state.draft.model is None:
            return "Choose a model first: m lists those on this machine."
        if not state.draft.placement.gpus:
            return "Put a card on the board first: lift one with space or the mouse, or press p for a proposal."
        if state.additions and not blocked_is_fine:
            return "This plan counts with cards or bridges that the box does not have: W goes back to the box as it is."
        if self.engine_desk.trouble:
            return self.engine_desk.trouble
        if not state.program.found:
            return "No vllm was found on this machine: put it on PATH, or name it in GPUDECK_VLLM."
        if state.judgement.state is VerdictState.BLOCKED and not blocked_is_fine:
            worst = next(one for one in state.judgement.findings if one.severity is Severity.ERROR)
            return f"Blocked: {worst.message}" + (f" {worst.fix}" if worst.fix else "")
        return None

    @on(PreviewArrived)
    def _preview_arrived(self, message: PreviewArrived) -> None:
        preview = message.preview
        if preview is None:
            self.refuse(message.failure or "The unit can not be told.")
            return
        engine = self.state.engines.get(message.spec.name)
        running = engine is not None and engine.unit.alive
        if self._viewing_only:
            self.push_screen(self._preview_screen(message.spec, preview, "close"), lambda _: self.ask_desk.cancel())
        elif self.state.draft.secrets:
            self._ask_to_install(message.spec, preview, running=running)
        elif preview.unchanged and running:
            self.say(f"{message.spec.name} runs from this very unit; R restarts it, x stops it.")
        elif preview.unchanged:
            # Approved before: what stands there is what would be written, line for line.
            self._act(message.spec.name, "starting", message.spec)
        else:
            self._ask_to_install(message.spec, preview, running=running)

    def _ask_to_install(self, spec: EngineSpec, preview: UnitPreview, *, running: bool) -> None:
        # Those of the board's plan are no concern of a plan that ran before.
        secrets = NO_SECRETS if spec == self._ran_before else self.state.draft.secrets

        def answered(approved: bool | None) -> None:
            self.ask_desk.cancel()
            if approved:
                doing = "restarting" if running else "starting"
                self.ask_before_reload(lambda: self._act(spec.name, doing, spec, approved=preview, secrets=secrets))
                if secrets:
                    self.draft_changed(secrets=Secrets())

        self.push_screen(
            self._preview_screen(spec, preview, "write it and restart" if running else "write it and start"), answered
        )

    @on(VllmAnswered)
    def _vllm_answered(self, message: VllmAnswered) -> None:
        self.change(self.judged(self.state))
        if isinstance(self.screen, UnitPreviewScreen):
            told = finding(message.answer)
            self.screen.tell(told.message, refused=told.severity is Severity.ERROR)

    def _preview_screen(self, spec: EngineSpec, preview: UnitPreview, act: str) -> UnitPreviewScreen:
        """The unit to approve.  The installed vLLM is asked meanwhile, on this machine only; its word arrives there."""
        word = ""
        if self.setup.host and preview.managed:
            word = "Asking the installed vLLM whether it accepts this command (some ten seconds)."
            self.ask_desk.ask(spec)
        if spec == self._ran_before:
            return UnitPreviewScreen(preview, summary="it reached ready before", act=act, word=word, glyphs=self.glyphs)
        judgement = self.state.judgement
        keys = self.state.draft.secrets.names
        parts = (
            counted(judgement),
            *([memory_words(judgement.memory, self.glyphs)] if judgement.memory else ()),
            *([f"{' and '.join(keys)} into {preview.secrets_file} (mode 0600)"] if keys else ()),
        )
        summary = joined(parts, self.glyphs.dot)
        return UnitPreviewScreen(preview, judgement.state, summary, act=act, word=word, glyphs=self.glyphs)

    def _act(
        self,
        name: str,
        doing: str,
        spec: EngineSpec | None,
        *,
        approved: UnitPreview | None = None,
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        """Start or restart an engine, its unit written first where that was approved."""

        known = self.state.engines.get(name)
        # A container's model lies where only it can look.
        ours = approved is not None or known is None or known.unit.managed
        way_out = self._way_to_port(name)
        seen, version = self.state.snapshot, self.state.program.version

        def act(runner: Runner) -> None:
            _refuse_taken_port(runner, name, spec, way_out)
            _refuse_collision(runner, spec, seen, version)
            if ours and spec is not None:
                _refuse_missing_model(spec.model)
            if approved is not None and spec is not None:
                runner.install(spec, secrets=secrets, shown=approved)
            (runner.restart if doing == "restarting" else runner.start)(name)

        try:
            self.engine_desk.act(name, doing, act)
        except OperatorError as error:
            self.refuse(str(error))
            return
        # The log is shown once there is a run to follow: a refusal leaves the operator where they are.
        self._starts.add(name)

    def _way_to_port(self, name: str) -> str:
        """Which keys change the port of that engine."""
        if self.state.draft.name == name:
            return "The key a changes the port."
        return "Enter in the engine list puts its plan on the board, where the key a changes the port."

    def action_go_back(self) -> None:
        """Back to the last plan of the engine that reached ready, its unit shown first."""
        engine = self._chosen()
        if engine is None:
            return
        spec = engine.kept.other_than(engine.unit.spec)
        if spec is None or not engine.unit.managed:
            self.say(f"No other plan of {engine.unit.name} has reached ready yet, so there is none to go back to.")
            return
        self.forget_refusal()
        self._viewing_only = False
        self._ran_before = spec
        self.engine_desk.preview(spec)

    # -- stop, restart, remove

    def action_stop(self) -> None:
        engine = self._chosen()
        if engine is None:
            return
        if not engine.unit.alive:
            self.say(f"{engine.unit.name} is not running.")
        elif not self.ask_of_drain(engine):
            self._confirm_act(engine, "stopping", "Its cards become free.")

    def action_restart(self) -> None:
        engine = self._chosen()
        if engine is not None and not self.ask_of_drain(engine):
            self._confirm_act(engine, "restarting", "The model is loaded anew.")

    def action_remove(self) -> None:
        engine = self._chosen()
        if engine is None:
            return
        if not engine.unit.managed:
            self.say(f"{engine.unit.unit} was not written by gpudeck, so gpudeck does not delete it.", "warning")
            return
        self._confirm_act(
            engine,
            "removing",
            f"This deletes {engine.unit.unit}{' and stops the running engine' if engine.unit.alive else ''}. "
            f"{self.reload_risk(engine.unit.scope)}".rstrip(),
        )

    def action_leave(self) -> None:
        """Leave the panel.  Engines go on; those of a demo end with it, unless the operator keeps them."""
        made = [name for name, info in self.state.engines.items() if info.unit.managed] if self.setup.demo else []
        if not made:
            self.exit()
            return
        alive = [name for name in made if self.state.engines[name].unit.alive]
        if not alive:
            self._end_demo(made)
            return

        def answered(remove: bool | None) -> None:
            if remove:
                self._end_demo(made)
            elif remove is False:
                self.exit()

        running = f"{', '.join(alive)} still run{'s' if len(alive) == 1 else ''}, simulated."
        self.push_screen(
            Confirm(
                "Leave the demo",
                (running,),
                act="remove with the demo",
                keep="keep running",
                back="stay",
                glyphs=self.glyphs,
            ),
            answered,
        )

    def _end_demo(self, names: list[str]) -> None:
        """Remove the demo's units, then leave: on a thread, since stopping takes a moment."""

        def end() -> None:
            self.engine_desk.remove_all(names)
            self.call_later(self.exit)

        self.say("Removing the demo's engines.")
        threading.Thread(target=end, name="end-demo", daemon=True).start()

    def _chosen(self) -> EngineInfo | None:
        engine = self.state.engine
        if engine is None:
            self.say("There is no engine here yet: put a plan on the board and press s.")
        return engine

    def _confirm_act(self, engine: EngineInfo, doing: str, lost: str) -> None:
        name = engine.unit.name
        refuse = self.refusal_of_restart(engine)

        def act(runner: Runner) -> None:
            if doing == "restarting":
                refuse(runner)
            {"stopping": runner.stop, "restarting": runner.restart, "removing": runner.remove}[doing](name)
            if doing == "removing":
                self.start_desk.forget(engine.unit)

        self.ask_to_end(engine, doing, lost, act)

    def refusal_of_restart(self, engine: EngineInfo) -> Callable[[Runner], None]:
        """What raises OperatorError where a restart would end at once; it blocks."""
        name, spec = engine.unit.name, engine.unit.spec
        way_out = self._way_to_port(name)
        seen, version = self.state.snapshot, self.state.program.version

        def refuse(runner: Runner) -> None:
            _refuse_taken_port(runner, name, spec, way_out)
            _refuse_collision(runner, spec, seen, version)
            if engine.unit.managed and spec is not None:
                _refuse_missing_model(spec.model)

        return refuse


def _refuse_taken_port(runner: Runner, name: str, spec: EngineSpec | None, way_out: str) -> None:
    """Raise OperatorError where the engine would end at its port; what runs now is left as it is then."""
    from gpudeck.services.engine.listening import port_trouble

    if taken := port_trouble(spec, runner.state(name)):
        raise OperatorError(f"{taken} {way_out}")


def _refuse_collision(runner: Runner, spec: EngineSpec | None, seen: Snapshot | None, vllm_version: str) -> None:
    """Raise OperatorError where cards, port or memory are those of an engine that runs."""
    from gpudeck.services.engine.starts.collisions import collision

    if spec is not None and (told := collision(spec, runner.engines(), seen, vllm_version)):
        raise OperatorError(told)


def _refuse_missing_model(model: str) -> None:
    """Raise OperatorError where a model's path is not there: vLLM takes a minute to say so, and in other words."""
    path = Path(model)
    if path.is_absolute() and not path.exists():
        raise OperatorError(f"The model {printable(model)} is not there: mount it, or choose another with m.")
