"""What may stand in the fields, and what comes of it."""

import pytest

from gpudeck.services.errors import OperatorError
from gpudeck.services.http.address import Address
from gpudeck.services.http.conversation import ChatSettings
from gpudeck.widgets.chat_form import read_settings

EMPTY = dict.fromkeys(("temperature", "max_tokens", "stop", "url", "key_file"), "")


def read(system: str = "", **texts: str) -> ChatSettings:
    return read_settings(system, EMPTY | texts, lambda text: Address.parse(text).url)


def test_empty_fields_are_the_servers_defaults() -> None:
    assert read() == ChatSettings()


def test_every_field() -> None:
    assert read(
        "Be brief.\n", temperature="0", max_tokens="256", stop="END, ##", url="box:8000/v1/", key_file=" ~/key "
    ) == ChatSettings("http://box:8000", "~/key", "Be brief.", 0.0, 256, ("END", "##"))


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("temperature", "hot", "temperature takes"),
        ("temperature", "nan", "temperature takes"),
        ("temperature", "2.1", "temperature takes"),
        ("max_tokens", "0", "max tokens takes"),
        ("max_tokens", "²", "max tokens takes"),
        ("max_tokens", "1" * 5000, "max tokens takes"),
        ("url", "ftp://x", "no address"),
    ],
)
def test_what_can_not_stand_there_is_told(field: str, text: str, said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        read(**{field: text})
