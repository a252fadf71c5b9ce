"""The calls of one answer, put together from their pieces."""

from gpudeck.services.http.events import ToolCallDelta
from gpudeck.services.text import printable


class ToolCalls:
    """Takes the pieces in; a call is told as `weather({"city": "Oslo"})`, as far as it came."""

    def __init__(self) -> None:
        self._calls: dict[int, list[str]] = {}  # name and arguments, by place

    def add(self, piece: ToolCallDelta) -> None:
        call = self._calls.setdefault(piece.place, ["", ""])
        call[0] += piece.name
        call[1] += piece.arguments

    def told(self) -> tuple[str, ...]:
        """One line for each call, in their order, printable."""
        return tuple(
            printable(f"{name or '(no name)'}({arguments})") for _, (name, arguments) in sorted(self._calls.items())
        )
