"""An engine that is restarted by the clock."""

from gpudeck.app.unit_acts import UnitActs
from gpudeck.services.engine.types import Runner
from gpudeck.services.errors import OperatorError
from gpudeck.widgets.schedule_form import ScheduleForm


class ScheduleActs(UnitActs):
    def action_schedule(self) -> None:
        engine = self.state.engine
        if engine is None:
            self.say("There is no engine here yet that could be restarted by the clock.")
            return
        name, before = engine.unit.name, engine.unit.restarted_on

        def answered(when: str | None) -> None:
            if when is None or when == before:
                return

            def act(runner: Runner) -> None:
                runner.set_schedule(name, when or None)

            try:
                self.engine_desk.act(name, "scheduling", act)
            except OperatorError as error:
                self.refuse(str(error))

        self.push_screen(ScheduleForm(name, before, self.reload_risk(engine.unit.scope), glyphs=self.glyphs), answered)
