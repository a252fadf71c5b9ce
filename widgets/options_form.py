"""The engine's name and options, each under vLLM's own name."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.types import EngineOptions
from gpudeck.services.text import printable
from gpudeck.widgets.dialog import Dialog
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.option_fields import FIELDS, NamedOptions, OptionField, read_field, read_fields, texts_of


class YesNo(Static, can_focus=True):
    """A switch that says what it is set to."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space,left,right", "turn", "yes or no", show=False)]

    def __init__(self, value: bool) -> None:
        super().__init__("yes" if value else "no")
        self.value = value

    def action_turn(self) -> None:
        self.value = not self.value
        self.update("yes" if self.value else "no")

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.action_turn()


class FieldRow(Vertical):
    """A field with its name before it and, below, its help or what is wrong with it."""

    DEFAULT_CSS = """
    FieldRow {
        height: auto;
        & > Horizontal { height: 1; }
        & .label { width: 26; color: $foreground; }
        & Input { width: 1fr; background: $panel; }
        & Input:focus { background: $primary 20%; }
        & YesNo { width: 5; padding: 0 1; background: $panel; }
        & YesNo:focus { background: $primary 20%; }
        & > .help { color: $text-muted; margin: 0 0 0 26; height: auto; }
        &.-wrong > .help { color: $error; }
        &.-wrong .label { color: $error; }
    }
    """

    def __init__(self, field: OptionField, text: str, taken: Mapping[str, str], glyphs: Glyphs) -> None:
        super().__init__()
        self.field = field
        self._start = text
        self._taken = taken
        self._glyphs = glyphs

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static(self.field.label, classes="label", markup=False)
            if self.field.flag:
                yield YesNo(self._start == "yes")
            else:
                empty = f"empty: {self.field.default}" if self.field.default else ""
                yield Input(
                    self._start,
                    placeholder=empty,
                    compact=True,
                    select_on_focus=False,
                    password=self.field.secret,
                )
        yield Static(self.field.help, classes="help", markup=False)

    @property
    def text(self) -> str:
        if self.field.flag:
            return "yes" if self.query_one(YesNo).value else ""
        return self.query_one(Input).value

    def show_error(self, sentence: str | None) -> None:
        """Show what is wrong with the field; None: nothing is."""
        self.set_class(sentence is not None, "-wrong")
        text = f"{self._glyphs.blocked} {printable(sentence)}" if sentence is not None else self.field.help
        self.query_one(".help", Static).update(Content(text))

    @on(Input.Changed)
    def _check(self, event: Input.Changed) -> None:
        event.stop()
        try:
            read_field(self.field, event.value, self._taken)
        except OperatorError as error:
            self.show_error(str(error))
        else:
            self.show_error(None)


class OptionsForm(Dialog[NamedOptions | None]):
    """Gives back the name and options, or None where the operator leaves it.

    `taken` says what other engines use: {"name:coder": "coder", "port:8001": "coder"}.  With `rename=False` the name
    stands fast: the engine is installed already.  `unit` is what its unit is called, with `<name>` for the name;
    with `accounts` it may run as another account than root.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s,enter", "take", "take over", id="options.take"),
        Binding("escape", "leave", "leave", id="options.leave"),
        Binding("down", "app.focus_next", "next field", show=False),
        Binding("up", "app.focus_previous", "previous field", show=False),
    ]
    DEFAULT_CSS = """
    OptionsForm > #dialog { width: 96%; max-width: 96; }
    """

    def __init__(
        self,
        name: str,
        options: EngineOptions,
        *,
        taken: Mapping[str, str] | None = None,
        rename: bool = True,
        unit: str = "vllm-<name>.service",
        user: str | None = None,
        accounts: bool = False,
        glyphs: Glyphs | None = None,
    ) -> None:
        super().__init__(f"Options of {printable(name)}" if name else "Options", glyphs)
        self._texts = texts_of(name, options, user)
        self._accounts = accounts
        self._taken = dict(taken or {})
        self._rename = rename
        self._unit = unit

    def compose_body(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            for known in FIELDS:
                if known.attribute == "user" and not self._accounts:
                    continue
                field = replace(known, help=f"its unit is {self._unit}") if known.attribute == "name" else known
                row = FieldRow(field, self._texts[field.attribute], self._taken, self.glyphs)
                row.disabled = field.attribute == "name" and not self._rename
                yield row

    def keys(self) -> tuple[tuple[str, str, str], ...]:
        return (
            ("Enter", "take over", "take"),
            ("Esc", "leave as it was", "leave"),
            ("Tab", "next field", "app.focus_next"),
        )

    def on_mount(self) -> None:
        first = next((row for row in self.query(FieldRow) if not row.disabled), None)
        if first is not None:
            first.query_one(Input).focus()

    def action_take(self) -> None:
        rows = {row.field.attribute: row for row in self.query(FieldRow)}
        named, errors = read_fields({attribute: row.text for attribute, row in rows.items()}, self._taken)
        for attribute, row in rows.items():
            row.show_error(errors.get(attribute))
        if named is not None:
            self.dismiss(named)
            return
        wrong = rows[next(iter(errors))]
        wrong.query("Input, YesNo").first().focus()
        wrong.scroll_visible(animate=False)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        # Enter comes by way of the field, so that what was typed before it has been taken in.
        event.stop()
        self.action_take()

    def action_leave(self) -> None:
        self.dismiss(None)
