import pytest

from gpudeck.services.errors import OperatorError
from gpudeck.services.http.address import Address


@pytest.mark.parametrize(
    ("text", "url", "loopback"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000", True),
        ("localhost:8000/v1/", "http://localhost:8000", True),
        ("https://gpu.example/llm/v1", "https://gpu.example/llm", False),
        ("http://[::1]:9000/", "http://[::1]:9000", True),
    ],
)
def test_addresses(text: str, url: str, loopback: bool) -> None:
    assert Address.parse(text) == Address(url, loopback)


@pytest.mark.parametrize("text", ["", "ftp://x", "http://", "http://h:port", "http://h\x1b[2J", "http://h/?q=1", "a b"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(OperatorError, match=r"is no address") as caught:
        Address.parse(text)
    assert "\x1b" not in str(caught.value)


def test_a_password_is_not_taken() -> None:
    with pytest.raises(OperatorError, match="password"):
        Address.parse("http://user:secret@host")


@pytest.mark.parametrize(
    ("host", "url"),
    [("0.0.0.0", "http://127.0.0.1:81"), ("::", "http://[::1]:81"), ("10.0.0.7", "http://10.0.0.7:81")],
)
def test_an_engine_that_listens_everywhere_is_reached_here(host: str, url: str) -> None:
    assert Address.of_engine(host, 81).url == url
