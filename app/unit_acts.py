"""What stands in engines' units, shown and acted on: drift, findings of hand-written ones, and reloads."""

from collections.abc import Callable
from dataclasses import replace

from textual import on

from gpudeck.app import state as states
from gpudeck.app.deck_app import PanelSetup
from gpudeck.app.messages import UnitsArrived, UnitsDrifted, UnitsReviewed
from gpudeck.app.state import EngineInfo
from gpudeck.app.stop_acts import StopActs
from gpudeck.app.unit_desk import UnitDesk
from gpudeck.services.box.containers import reload_risk
from gpudeck.services.engine.drift import Drift, DriftKind, drift_diff
from gpudeck.services.engine.types import Runner, Scope
from gpudeck.services.plan.naming import name_for
from gpudeck.widgets.messages import UnitAsked
from gpudeck.widgets.question import Answer, Question
from gpudeck.widgets.unit_review import Section, UnitReview

LOOK_S = 10.0  # a file that is edited sends no signal


class UnitActs(StopActs):
    def __init__(self, setup: PanelSetup) -> None:
        super().__init__(setup)
        self.unit_desk = UnitDesk(lambda: self.engine_desk.runner, self.post_message)

    def look_at_units(self) -> None:
        """Look for what was changed behind gpudeck's back, and read the units of others."""
        units = tuple(info.unit for info in self.state.engines.values() if not info.busy)
        if units:
            self.unit_desk.look_for_drift(units)
        if not self.setup.demo and any(not unit.managed for unit in units):
            self.unit_desk.review(self.state.box, self.state.program.version)

    @on(UnitsArrived)
    def _look_anew(self) -> None:
        """An act has ended, or the runner has been found: once these units stand in the state."""
        self.call_later(self.look_at_units)

    @on(UnitsDrifted)
    def _units_drifted(self, message: UnitsDrifted) -> None:
        for name, drift in message.found.items():
            known = self.state.engines.get(name)
            if known is not None and known.drift != drift:
                self.change(states.with_engine(self.state, name, drift=drift))

    @on(UnitsReviewed)
    def _units_reviewed(self, message: UnitsReviewed) -> None:
        by_unit = {each.key: each for each in message.found}
        for name, info in self.state.engines.items():
            found = by_unit.get((info.unit.scope.value, info.unit.unit))
            if info.reviewed != found:
                self.change(states.with_engine(self.state, name, reviewed=found))

    @on(UnitAsked)
    def _unit_asked(self, message: UnitAsked) -> None:
        """Show all that is to be said of the unit, and do what the operator then wants."""
        engine = self.state.engines.get(message.name)
        if engine is None:
            return
        if not engine.drift and engine.reviewed is None:
            self.say(f"{engine.unit.unit} stands as gpudeck wrote it, and runs as it stands.")
            return
        kinds = {drift.kind for drift in engine.drift}
        answers = []
        if DriftKind.ON_DISK in kinds:
            answers.append(Answer("r", "reload systemd's units", "reload"))
        if DriftKind.RUNNING in kinds:
            answers.append(Answer("R", f"restart {engine.unit.name}", "restart"))
        if engine.reviewed is not None and engine.reviewed.review.corrected is not None:
            answers.append(Answer("b", "the corrected plan on the board", "board"))

        def answered(answer: str | None) -> None:
            if answer == "reload":
                self._reload(engine)
            elif answer == "restart":
                self.change(replace(self.state, selected=engine.unit.name))
                self.call_later(self.run_action, "restart")
            elif answer == "board":
                self._plan_corrected(engine)

        sections = [*map(_drift_section, engine.drift), *_review_sections(engine)]
        self.push_screen(UnitReview(engine.unit.unit, sections, answers, glyphs=self.glyphs), answered)

    def _plan_corrected(self, engine: EngineInfo) -> None:
        """The corrected spec as a plan of its own: the unit that another wrote is left as it stands."""
        spec = engine.reviewed.review.corrected if engine.reviewed is not None else None
        if spec is None:
            return
        name = name_for(f"{engine.unit.name}-corrected", {*self.state.engines, *self.state.drafts.names()})
        self.model_desk.read(spec.model, replace(spec, name=name, program=self.state.program.words))
        self.deck.open_pane("board")
        self.say(f"{name} stands on the board; {engine.unit.unit} is left as it is. Stop it before you start this one.")

    def _reload(self, engine: EngineInfo) -> None:
        name = engine.unit.name
        none_is = " No engine is restarted." if engine.unit.runs else ""
        sentence = f"This has systemd read all of its units anew.{none_is}"
        risk = self.reload_risk(engine.unit.scope)

        def answered(answer: str | None) -> None:
            if answer is not None:
                self.run_act(name, "reloading", lambda runner: runner.reload(name))

        question = Question(
            "Reload systemd's units?",
            tuple(filter(None, (risk, sentence))),
            (Answer("y", "reload", "go"),),
            glyphs=self.glyphs,
        )
        self.push_screen(question, answered)

    def reload_risk(self, scope: Scope | None) -> str:
        """What a reload can do to containers on this box; "" where nothing."""
        return reload_risk(self.state.snapshot) if scope is Scope.SYSTEM and self.setup.host else ""

    def ask_before_reload(self, then: Callable[[], None]) -> None:
        """Do `then`, which reloads systemd; ask before where that can take cards from containers."""
        runner: Runner | None = self.engine_desk.runner
        risk = self.reload_risk(runner.scope if runner is not None else None)
        if not risk:
            then()
            return

        def answered(answer: str | None) -> None:
            if answer is not None:
                then()

        question = Question("Reload systemd's units?", (risk,), (Answer("y", "go on", "go"),), glyphs=self.glyphs)
        self.push_screen(question, answered)


def _drift_section(drift: Drift) -> Section:
    before, after = drift.sides
    diff = drift_diff(drift)
    how = f"- {before}, + {after}:" if diff else "Other lines differ than its command and its cards."
    return Section(((drift.sentence, "warning"), (how, "")), "\n".join(diff.splitlines()[2:]))


def _review_sections(engine: EngineInfo) -> list[Section]:
    if engine.reviewed is None:
        return []
    findings = engine.reviewed.review.findings
    told = tuple((f"{each.message} {each.fix or ''}".rstrip(), each.severity.value) for each in findings)
    first = "gpudeck did not write this unit." + ("" if findings else " Nothing speaks against it.")
    sections = [Section(((first, ""), *told))]
    if engine.reviewed.diff:
        how = "What gpudeck would write instead (nothing is changed by this):"
        sections.append(Section(((how, ""),), "\n".join(engine.reviewed.diff.splitlines()[2:])))
    return sections
