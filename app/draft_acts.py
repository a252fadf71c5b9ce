"""What an operator does to the plans as wholes: another one, the next one, one less; and the verdict on each."""

from collections.abc import Callable
from dataclasses import replace

from textual import on

from gpudeck.app.deck_app import DeckApp
from gpudeck.app.drafts import Draft, Drafts
from gpudeck.app.failures import failure_of
from gpudeck.app.messages import GroundsLearned
from gpudeck.app.state import DeckState
from gpudeck.services.box.types import Demand
from gpudeck.services.plan import preset
from gpudeck.services.plan.changes import apply
from gpudeck.services.plan.extra import extra_value
from gpudeck.services.plan.findings import Finding, Judgement
from gpudeck.services.plan.types import Placement
from gpudeck.services.rules import serving
from gpudeck.services.rules.asked import with_answer
from gpudeck.services.rules.judge import judge
from gpudeck.services.rules.surroundings import Surroundings
from gpudeck.widgets.confirm import Confirm
from gpudeck.widgets.messages import CardShared, DemandChanged, EngineFixAsked, FixAsked, PlanChosen, Refused


class DraftActs(DeckApp):
    def change(self, state: DeckState) -> None:
        """Take a new state, its plans judged anew where what runs beside them has changed."""
        if state.neighbours(state.draft) != self.state.neighbours(self.state.draft):
            state = self.judged(state)
        super().change(state)

    def draft_changed(self, **changes: object) -> None:
        """Change the plan on the board and judge it anew."""
        draft: Draft = replace(self.state.draft, **changes)  # type: ignore[arg-type]
        self.drafts_changed(self.state.drafts.changed(draft))

    def drafts_changed(self, drafts: Drafts) -> None:
        before = self.state.draft
        super().change(self.judged(replace(self.state, drafts=drafts)))
        self._learn(before)

    def _learn(self, before: Draft) -> None:
        """Ask for what the verdict on the plan rests on, where the plan has come to name it."""
        draft, tokenizer = self.state.draft, tokenizer_of(self.state.draft)
        if tokenizer is not None and tokenizer not in self.state.grounds.tokenizers:
            self.grounds_desk.tokenizer(tokenizer)
        self.look_for_key()
        if draft.placement.gpus != before.placement.gpus:
            # ECC, worn rows and modes are read while a card is looked at; a plan looks at its cards for a moment.
            self.post_message(DemandChanged("plan", Demand.HEALTH))

    def look_for_key(self) -> None:
        """Ask whether the engine on the board has a key, where the verdict rests on it."""
        name = self.state.draft.name
        open_to_all = any(finding.rule == serving.OPEN.id for finding in self.state.judgement.findings)
        if (open_to_all or name in self.state.grounds.keyed) and self.engine_desk.trouble is None:
            self.grounds_desk.key(name, self.engine_desk.has_key)

    @on(GroundsLearned)
    def _grounds_learned(self, message: GroundsLearned) -> None:
        grounds = message.step(self.state.grounds)
        if grounds != self.state.grounds:
            self.change(self.judged(replace(self.state, grounds=grounds)))

    def judged(self, state: DeckState) -> DeckState:
        """The state with the verdicts on its plans, and the board told how to judge other placements."""
        judgement = _judgement(state, state.draft)
        answer = self.ask_desk.known(state.draft.spec(state.program)) if state.draft.placement.gpus else None
        if answer is not None:
            judgement = with_answer(judgement, answer)
        verdicts = {draft.key: _judgement(state, draft).state for draft in state.drafts.others if draft.placement.gpus}
        self.deck.board.judge = _judge_of(state)
        # The same verdict stays the same object, for which nothing is drawn: memory in use moves at every beat.
        return replace(
            state,
            judgement=state.judgement if judgement == state.judgement else judgement,
            verdicts=state.verdicts if verdicts == state.verdicts else verdicts,
        )

    # -- plans

    def action_new_plan(self) -> None:
        """Begin another plan beside those that are there."""
        if self.state.draft.empty:
            self.say("This plan is empty still: choose its model (m) or place a card.")
            return
        self.drafts_changed(self.state.drafts.added(Draft()))
        self.deck.open_pane("board")

    def action_turn_plan(self, by: int) -> None:
        """Put the next or the previous plan on the board."""
        self._turn_to(self.state.drafts.place + by)

    @on(PlanChosen)
    def _plan_chosen(self, message: PlanChosen) -> None:
        self._turn_to(message.place)

    def _turn_to(self, place: int) -> None:
        drafts = self.state.drafts.turned(place)
        if drafts.present is self.state.draft:
            self.say("There is one plan only; n begins another beside it.")
            return
        self.drafts_changed(drafts)

    def action_discard_plan(self) -> None:
        """Take the plan off the board; an engine that was made from it stays as it is."""
        draft = self.state.draft
        if draft.empty:
            self.drafts_changed(self.state.drafts.without_present())
            return

        def answered(go: bool | None) -> None:
            if go:
                self.drafts_changed(self.state.drafts.without_present())

        name = draft.name or "without a model"
        stays = f" The engine {draft.name} stays as it is." if draft.name in self.state.engines else ""
        lost = (f"Its model, cards and options are forgotten.{stays}",)
        self.push_screen(
            Confirm(f"Discard the plan {name}?", lost, act="discard the plan", glyphs=self.glyphs), answered
        )

    @on(CardShared)
    def _card_shared(self, message: CardShared) -> None:
        """Share a card with other engines on purpose, or no longer."""
        self.draft_changed(shared_gpus=self.state.draft.shared_gpus ^ {message.gpu})

    @on(Refused)
    def _refused(self, message: Refused) -> None:
        self.say(message.sentence, "warning")

    # -- what a finding says

    def action_fix(self) -> None:
        """Do what a finding of the verdict says."""
        finding = self.deck.verdict.fixable
        if finding is None:
            self.say("No finding here has a fix that a key can do.")
        else:
            self._fix(finding)

    @on(FixAsked)
    def _fix_asked(self, message: FixAsked) -> None:
        self._fix(message.finding)

    def _fix(self, finding: Finding) -> None:
        if finding.change is None:
            self.say(finding.fix or "This finding has no fix.")
            return
        draft = self.state.draft
        before = draft.spec(self.state.program)
        spec = apply(finding.change, before)
        still = draft.cautious and draft.model is not None and preset.is_cautious(spec.options, draft.model)
        self.draft_changed(
            placement=spec.placement,
            options=spec.options,
            layer_partition=spec.layer_partition,
            environment=tuple(pair for pair in spec.environment if pair not in self.state.program.environment),
            shared_gpus=draft.shared_gpus | frozenset(spec.shared_gpus),
            cautious=still,
        )
        self.say(f"Done for {finding.rule}: {finding.fix}" if finding.fix else f"Done for {finding.rule}.")

    @on(EngineFixAsked)
    def _engine_fix_asked(self, message: EngineFixAsked) -> None:
        """Put a failed engine's plan on the board with what mends its failure; s then starts it anew."""
        info = self.state.engines.get(message.name)
        found = failure_of(self.state, info) if info is not None else None
        if info is None or info.unit.spec is None or found is None or found.change is None:
            self.say("No failure here has a fix that a key can do.")
            return
        spec = apply(found.change, info.unit.spec)
        self.model_desk.read(spec.model, spec)
        self.deck.open_pane("board")
        then = "s writes it and starts" if info.unit.managed else "its own unit is another's: give it a new name (a)"
        self.say(f"For {found.rule}: {found.fix} It stands on the board; {then}.")

    # -- the first start's options

    def action_step_up(self) -> None:
        """From the first start's cautious options to vLLM's own, and back."""
        draft = self.state.draft
        if draft.model is None:
            self.say("Choose a model first (m): its first start takes cautious options.", "warning")
        elif not draft.cautious:
            self.draft_changed(options=preset.cautious(draft.options, draft.model), cautious=True)
            self.say("Cautious options again, as for a first start.")
        elif not self.state.has_run(draft.name):
            self.say(f"{draft.name} has not run yet: start it with these options first (s), or set others (a).")
        else:
            self.draft_changed(options=preset.stepped_up(draft.options), cautious=False)
            self.say("vLLM's own defaults stand on the board; s restarts the engine with them.")


def around(state: DeckState, draft: Draft) -> Surroundings:
    """What stands beside a plan, as far as the panel knows it."""
    grounds, tokenizer = state.grounds, tokenizer_of(draft)
    return Surroundings(
        vllm_version=state.program.version,
        version_told=state.program.told,
        engine_cuda=state.program.cuda,
        neighbours=state.neighbours(draft),
        readings=grounds.readings,
        events=state.events,
        additions=state.additions,
        tokenizer_tokens=grounds.tokenizers.get(tokenizer) if tokenizer is not None else None,
        key_set=draft.secrets.sets_key or draft.name in grounds.keyed,
    )


def tokenizer_of(draft: Draft) -> str | None:
    """Another tokenizer than the model's own, where the plan names one."""
    return extra_value(draft.options.extra, "--tokenizer")


def _judgement(state: DeckState, draft: Draft) -> Judgement:
    if state.plan_box is None or not draft.placement.gpus:
        return Judgement()
    spec, used = draft.spec(state.program), state.used(draft)
    return judge(state.plan_box, draft.model, spec, used=used, around=around(state, draft))


def _judge_of(state: DeckState) -> Callable[[Placement], Judgement] | None:
    box, draft = state.plan_box, state.draft
    if box is None:
        return None
    spec, used, beside = draft.spec(state.program), state.used(), around(state, draft)

    def judgement(placement: Placement) -> Judgement:
        return judge(box, draft.model, replace(spec, placement=placement), used=used, around=beside)

    return judgement
