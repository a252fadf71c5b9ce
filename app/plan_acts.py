"""What an operator does to the plan on the board: cards, model, options, proposals."""

from dataclasses import replace

from textual import on

from gpudeck.app.draft_acts import around
from gpudeck.app.drafts import Draft
from gpudeck.app.messages import ModelRead, ModelsWeighed, ShelfSearched
from gpudeck.app.programs import load_format_of
from gpudeck.app.what_if_acts import WhatIfActs
from gpudeck.services.engine.choose import DEMO_PREFIX, PREFIX
from gpudeck.services.engine.types import Scope
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan import preset
from gpudeck.services.plan.naming import name_for
from gpudeck.services.plan.secrets import Secrets
from gpudeck.services.plan.types import EngineSpec
from gpudeck.widgets.messages import CardChosen, CardDragged, ModelPicked, PlacementChanged, PlacementPreviewed
from gpudeck.widgets.model_picker import ModelPicker
from gpudeck.widgets.option_fields import NamedOptions
from gpudeck.widgets.options_form import OptionsForm


class PlanActs(WhatIfActs):
    # -- cards

    @on(PlacementChanged)
    def _placement_changed(self, message: PlacementChanged) -> None:
        # A partition belongs to the stages that it was made for.
        self.draft_changed(placement=message.placement, layer_partition=None)

    @on(PlacementPreviewed)
    def _placement_previewed(self, message: PlacementPreviewed) -> None:
        if message.judgement is None:
            self.deck.show_verdict(self.state)
        else:
            self.deck.verdict.show(message.judgement, preview=True)

    @on(CardChosen)
    def _card_chosen(self, message: CardChosen) -> None:
        self.deck.open_pane("board")
        self.deck.board.lift(message.gpu)

    @on(CardDragged)
    def _card_dragged(self, message: CardDragged) -> None:
        """A card pulled out of the box with the mouse is in the hand on the board, where that can be seen."""
        if self.deck.board.region:
            self.deck.board.focus()
            self.deck.board.grab(message.gpu, message.pointer)

    # -- model

    def action_choose_model(self) -> None:
        state = self.state
        self.push_screen(ModelPicker(glyphs=self.glyphs), self._picker_left)
        self.model_desk.search(state.plan_box, state.used(), around(state, state.draft))

    def _picker_left(self, _path: str | None) -> None:
        self.model_desk.stop()

    @on(ShelfSearched)
    def _shelf_searched(self, message: ShelfSearched) -> None:
        if isinstance(self.screen, ModelPicker):
            self.screen.show_entries(message.entries)
            if self.state.plan_box is not None:
                self.screen.show_fits({})
        if message.failure:
            self.say(message.failure, "error")

    @on(ModelsWeighed)
    def _models_weighed(self, message: ModelsWeighed) -> None:
        if isinstance(self.screen, ModelPicker):
            self.screen.show_fits({message.path: message.fit})

    @on(ModelPicked)
    def _model_picked(self, message: ModelPicked) -> None:
        self.model_desk.read(message.path)

    @on(ModelRead)
    def _model_read(self, message: ModelRead) -> None:
        picker = self.screen if isinstance(self.screen, ModelPicker) and message.spec is None else None
        if message.model is None:
            sentence = message.failure or f"{message.path} can not be read."
            if picker is None:
                self.say(sentence, "error")
            else:
                picker.refuse(message.path, sentence)
        elif picker is not None:
            picker.dismiss(message.path)
        if message.spec is not None:
            self._load_draft(message.spec, message.model)
        elif message.model is not None:
            self._begin_draft(message.model)

    def _begin_draft(self, model: ModelFacts) -> None:
        """Plan for another model: under a name and on a port that no other engine has."""
        state, draft = self.state, self.state.draft
        taken = {name for name in state.engines if not self._made_of(name, model)} | state.drafts.names()
        name = name_for(model.name, taken)
        ports = state.ports_of_others(name)
        options = preset.cautious(draft.options, model) if draft.cautious else draft.options
        if self.setup.demo:
            options = replace(options, load_format=load_format_of(model.path))
        while options.port in ports:
            options = replace(options, port=options.port + 1)
        self.draft_changed(model=model, name=name, options=options, layer_partition=None)

    def _made_of(self, name: str, model: ModelFacts) -> bool:
        """Whether the engine of that name was made from this model: its name is then kept, and its unit changed."""
        spec = self.state.engines[name].unit.spec
        return spec is not None and spec.model == model.path

    # -- options

    def action_adjust(self) -> None:
        state, draft = self.state, self.state.draft
        taken = {f"port:{port}": name for port, name in state.ports_of_others(draft.name).items()}
        taken |= {f"name:{name}": "another plan" for name in state.drafts.names()}
        unit = f"{DEMO_PREFIX if self.setup.demo else PREFIX}<name>.service"
        accounts = self.engine_desk.scope is Scope.SYSTEM
        form = OptionsForm(
            draft.name, draft.options, taken=taken, unit=unit, user=draft.user, accounts=accounts, glyphs=self.glyphs
        )
        self.push_screen(form, self._options_chosen)

    def _options_chosen(self, answer: NamedOptions | None) -> None:
        if answer is None:
            return
        model = self.state.draft.model
        still = self.state.draft.cautious and (model is None or preset.is_cautious(answer.options, model))
        self.draft_changed(
            name=answer.name,
            options=answer.options,
            user=answer.user if self.engine_desk.scope is Scope.SYSTEM else self.state.draft.user,
            secrets=answer.secrets or self.state.draft.secrets,
            cautious=still,
        )

    def _load_draft(self, spec: EngineSpec, model: ModelFacts | None) -> None:
        """Put an engine's own spec on the board: in place of its plan, or beside the plans of others."""
        state, drafts = self.state, self.state.drafts
        own = next((place for place, draft in enumerate(drafts.all) if draft.name == spec.name), None)
        if own is not None:
            drafts = drafts.turned(own)
        elif not state.draft.empty:
            drafts = drafts.added(Draft())
        loaded = replace(
            drafts.present,
            name=spec.name,
            model=model,
            placement=spec.placement,
            options=spec.options,
            layer_partition=spec.layer_partition,
            environment=tuple(pair for pair in spec.environment if pair not in state.program.environment),
            shared_gpus=frozenset(spec.shared_gpus),
            user=spec.user,
            secrets=Secrets(),
            cautious=model is not None and preset.is_cautious(spec.options, model),
        )
        self.drafts_changed(drafts.changed(loaded))
