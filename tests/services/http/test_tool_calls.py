"""Calls from pieces."""

from gpudeck.services.http.events import ToolCallDelta
from gpudeck.services.http.tool_calls import ToolCalls


def test_pieces_of_several_calls_are_put_together_in_their_order() -> None:
    calls = ToolCalls()
    for piece in ((1, "time", ""), (0, "weather", '{"city":'), (0, "", '"Oslo"}'), (1, "", "{}")):
        calls.add(ToolCallDelta(*piece))
    assert calls.told() == ('weather({"city":"Oslo"})', "time({})")


def test_a_call_cut_short_and_escapes_are_told_as_they_are() -> None:
    calls = ToolCalls()
    calls.add(ToolCallDelta(0, "", "\x1b[2J"))
    assert calls.told() == ("(no name)(^[[2J)",)
