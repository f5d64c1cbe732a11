"""Where a service listens, and the address that it gives out for itself."""

import ipaddress
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Place:
    """Host and port to listen on; the public root address without a trailing slash; whether only this machine
    reaches it."""

    host: str
    port: int
    root_url: str
    is_loopback: bool


def place_of(public_url: str, host: str, port: int) -> Place:
    """The place of a service whose public address is configured (or empty: the one it listens on).

    It counts as loopback when it listens there and its configured address, if any, is there too.
    """
    if public_url:
        root_url = public_url.rstrip("/")
        return Place(host, port, root_url, is_loopback(host) and is_loopback(urlsplit(root_url).hostname or ""))
    # Listening on every address names none that a client could use: this machine's own is right at least here.
    shown = host if not _address(host, "is_unspecified") else "::1" if ":" in host else "127.0.0.1"
    bracketed = f"[{shown}]" if ":" in shown else shown
    return Place(host, port, f"http://{bracketed}:{port}", is_loopback(host))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the host."""
    return host == "localhost" or _address(host, "is_loopback")


def _address(host: str, kind: Literal["is_loopback", "is_unspecified"]) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback if kind == "is_loopback" else address.is_unspecified
