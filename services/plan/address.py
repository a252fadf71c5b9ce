"""Where an engine answers."""

import ipaddress

from gpudeck.services.plan.types import EngineOptions

# vLLM given one of these listens on every interface; it is reached on loopback.
_EVERY_INTERFACE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 (read, not bound)


def base_url(options: EngineOptions) -> str:
    """The engine's URL as this machine reaches it: "http://127.0.0.1:8000"."""
    host = _EVERY_INTERFACE.get(options.host, options.host)
    try:
        if ipaddress.ip_address(host).version == 6:
            host = f"[{host}]"
    except ValueError:
        # A host name stands as it is.
        pass
    return f"http://{host}:{options.port}"
