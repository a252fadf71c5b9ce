"""The units of a restart by the clock, as text."""

import pytest

from gpudeck.services.engine.schedule import restart_units, when_of
from gpudeck.services.engine.types import Scope
from gpudeck.services.errors import OperatorError


def test_both_units() -> None:
    made = restart_units("vllm-chat.service", "Sun 04:00", Scope.SYSTEM, "/usr/bin/systemctl")
    assert (made.timer, made.service) == (
        "gpudeck-restart-vllm-chat.timer",
        "gpudeck-restart-vllm-chat.service",
    )
    assert "\nOnCalendar=Sun 04:00\n" in made.timer_text
    assert "\nWantedBy=timers.target\n" in made.timer_text
    assert "\nExecCondition=:/usr/bin/systemctl is-active --quiet vllm-chat.service\n" in made.service_text
    assert "\nExecStart=:/usr/bin/systemctl --no-block try-restart vllm-chat.service\n" in made.service_text
    assert when_of(made.timer_text, "vllm-chat.service") == "Sun 04:00"


def test_a_users_own_systemd_is_asked_by_its_own_systemctl() -> None:
    made = restart_units("vllm-chat.service", "daily", Scope.USER, "/usr/bin/systemctl")
    assert "systemctl --user --no-block try-restart" in made.service_text


@pytest.mark.parametrize(
    "text", ["", "[Timer]\nOnCalendar=daily\n", "[Timer]\nOnCalendar=daily\n[X-Gpudeck]\nRestarts=vllm-other.service\n"]
)
def test_other_timers_are_not_ours(text: str) -> None:
    assert when_of(text, "vllm-chat.service") == ""


def test_no_line_is_smuggled_in() -> None:
    with pytest.raises(OperatorError):
        restart_units("vllm-chat.service", "daily\n[Service]", Scope.SYSTEM, "/usr/bin/systemctl")
