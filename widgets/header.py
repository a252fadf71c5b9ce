"""The one line at the top: which box, what runs its engines, and that the readings are alive."""

from dataclasses import dataclass

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from gpudeck.services.text import printable
from gpudeck.widgets.glyphs import Glyphs, joined

_NAME = "gpudeck"


@dataclass(frozen=True, slots=True)
class HeaderFacts:
    """What the header says; empty text is left out."""

    box: str = ""
    gpus: int | None = None
    driver: str = ""
    cuda: str = ""
    runner: str = ""  # "systemd (system)"
    rate: str = ""  # "1 Hz"
    clock: str = ""  # "14:02:11"


class DeckHeader(Widget):
    """Shows `HeaderFacts`; in a narrow terminal the least telling facts are left out, whole."""

    DEFAULT_CSS = """
    DeckHeader { height: 1; dock: top; background: $panel; color: $text-muted; padding: 0 1; }
    """

    def __init__(self, *, glyphs: Glyphs | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._glyphs = glyphs or Glyphs.unicode()
        self._facts = HeaderFacts()

    def show(self, facts: HeaderFacts) -> None:
        """Show these facts; nothing is drawn where they are the same."""
        if facts != self._facts:
            self._facts = facts
            self.refresh()

    def render(self) -> Content:
        left, right = header_parts(self._facts, self._glyphs, self.size.width)
        gap = self.size.width - cell_len(_NAME) - cell_len(left) - cell_len(right) - 3
        return Content.assemble(
            (_NAME, "bold $primary"), Content(f"   {left}{' ' * max(gap, 0)}"), Content.styled(right, "$foreground 65%")
        )


def header_parts(facts: HeaderFacts, glyphs: Glyphs, width: int) -> tuple[str, str]:
    """What stands at the left (after the program's name) and at the right, in `width` cells."""
    parts = {
        "box": printable(facts.box),
        "gpus": f"{facts.gpus} {'GPU' if facts.gpus == 1 else 'GPUs'}" if facts.gpus is not None else "",
        "driver": f"driver {printable(facts.driver)}" if facts.driver else "",
        "cuda": f"CUDA {printable(facts.cuda)}" if facts.cuda else "",
        "runner": printable(facts.runner),
    }
    right = {"rate": facts.rate, "clock": facts.clock}
    room = width - cell_len(_NAME) - 3
    for least in ("", "cuda", "driver", "reason", "rate", "runner", "clock", "gpus"):
        if least == "reason":
            # "embedded: this machine was not booted with systemd" is told whole by `gpudeck doctor`.
            parts["runner"] = parts["runner"].partition(":")[0]
        elif least in parts:
            parts[least] = ""
        if least in right:
            right[least] = ""
        left_text, right_text = joined(parts.values(), glyphs.dot), "  ".join(filter(None, right.values()))
        if cell_len(left_text) + 2 + cell_len(right_text) <= room:
            return left_text, right_text
    return glyphs.cut(left_text, max(room, 0)), ""
