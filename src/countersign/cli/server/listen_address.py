"""Where a service listens, and the URL it publishes for itself."""

import ipaddress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

PORTS = {"distribution": 8480, "records": 8080}


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Host and port to listen on; the public root address without a trailing slash; whether only this machine
    reaches it."""

    host: str
    port: int
    root_url: str
    is_loopback: bool


def listen_address(public_url: str, host: str, port: int) -> ListenAddress:
    """The place of a service whose public address is configured (or empty: the one it listens on).

    It counts as loopback when it listens there and its configured address, if any, is there too.
    """
    if public_url:
        root_url = public_url.rstrip("/")
        return ListenAddress(host, port, root_url, is_loopback(host) and is_loopback(urlsplit(root_url).hostname or ""))
    # Listening on every address names none that a client could use: this machine's own is right at least here.
    shown = host if not _address(host, "is_unspecified") else "::1" if ":" in host else "127.0.0.1"
    bracketed = f"[{shown}]" if ":" in shown else shown
    return ListenAddress(host, port, f"http://{bracketed}:{port}", is_loopback(host))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the host."""
    return host == "localhost" or _address(host, "is_loopback")


def _address(host: str, kind: Literal["is_loopback", "is_unspecified"]) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback if kind == "is_loopback" else address.is_unspecified


def local_url(host: str, port: int) -> str:
    """Where the operator is answered, as this machine reaches it."""
    try:
        address = ip_address(host or "::")
    except ValueError:
        return f"http://{host}:{port}"
    if address.is_unspecified:
        return f"http://localhost:{port}"
    return f"http://[{address}]:{port}" if address.version == 6 else f"http://{address}:{port}"
