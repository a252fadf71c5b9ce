"""Where a server is."""

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

# Where an engine that listens on every interface is reached from this machine.
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104


@dataclass(frozen=True, slots=True)
class Address:
    url: str  # "http://127.0.0.1:8000", without a path of the API
    loopback: bool

    def __str__(self) -> str:
        return printable(self.url)

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read "http://host:port", "host:port", with or without a trailing "/" or "/v1".  Raises OperatorError."""
        url = text.strip()
        if "://" not in url:
            url = f"http://{url}"
        url = url.rstrip("/").removesuffix("/v1").rstrip("/")
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            host = None
        if (
            not host
            or parts.scheme not in ("http", "https")
            or not url.isprintable()
            or " " in url
            or parts.query
            or parts.fragment
        ):
            shown = printable(text[:200])
            raise OperatorError(f"{shown!r} is no address of an engine: write it like http://127.0.0.1:8000.")
        if parts.username or parts.password:
            raise OperatorError("Leave the password out of the engine's address: its key belongs in VLLM_API_KEY.")
        return cls(url, _is_loopback(host))

    @classmethod
    def of_engine(cls, host: str, port: int) -> "Address":
        """Of an engine on this machine that was told to listen on `host` and `port`."""
        host = _EVERYWHERE.get(host, host)
        return cls.parse(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
