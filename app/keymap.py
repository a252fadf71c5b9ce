"""The panel's own keys; each widget adds those of its pane.  The ids are what a key is remapped by."""

from textual.binding import Binding, BindingType

PANES = ("box", "board", "engines", "log", "chat")

BINDINGS: list[BindingType] = [
    Binding("s", "start", "Start", id="deck.start"),
    Binding("x", "stop", "Stop", id="deck.stop"),
    Binding("R", "restart", "Restart", show=False, id="deck.restart"),
    Binding("B", "go_back", "Back to what ran", show=False, id="deck.back"),
    Binding("T", "schedule", "Restart by the clock", show=False, id="deck.schedule"),
    Binding("D", "remove", "Remove engine", show=False, id="deck.remove"),
    Binding("m", "choose_model", "Model", id="deck.model"),
    Binding("p", "propose", "Propose", id="deck.propose"),
    Binding("a", "adjust", "Options", id="deck.options"),
    Binding("f", "fix", "Fix", id="deck.fix"),
    Binding("n", "new_plan", "New plan", id="deck.new-plan"),
    Binding("left_square_bracket", "turn_plan(-1)", "Previous plan", show=False, id="deck.previous-plan"),
    Binding("right_square_bracket", "turn_plan(1)", "Next plan", id="deck.next-plan"),
    Binding("d", "discard_plan", "Discard the plan", id="deck.discard-plan"),
    Binding("w", "what_if", "What if", show=False, id="deck.what-if"),
    Binding("W", "as_it_is", "The box as it is", id="deck.as-it-is"),
    Binding("A", "step_up", "Options left to vLLM", id="deck.step-up"),
    Binding("v", "view_unit", "Show the unit", show=False, id="deck.unit"),
    Binding("z", "maximize_pane", "This pane alone", show=False, id="deck.maximize"),
    Binding("t", "turn_links", "Links, their map", show=False, id="deck.links"),
    *(
        Binding(str(number), f"pane('{pane}')", pane.capitalize(), show=False, id=f"deck.pane-{pane}")
        for number, pane in enumerate(PANES, 1)
    ),
    Binding("o", "pane('log')", "Log", show=False, id="deck.log"),
    Binding("c", "pane('chat')", "Chat", id="deck.chat"),
    Binding("C", "check", "Check the engine", show=False, id="deck.check"),
    Binding("M", "bench", "Measure", show=False, id="deck.bench"),
    Binding("escape", "step_out", "Leave the field", id="deck.out"),
    Binding("ctrl+l", "redraw", "Draw the screen anew", show=False, id="deck.redraw"),
    Binding("question_mark,f1", "help", "Help", id="deck.help"),
    Binding("q", "leave", "Quit", id="deck.leave"),
    Binding("ctrl+q", "leave", "Quit", show=False, priority=True, id="deck.leave-anywhere"),
]
