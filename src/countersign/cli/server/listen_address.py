"""The address that a service listens on, and the URL that it publishes for itself."""

import ipaddress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

PORTS = {"distribution": 8480, "records": 8080}


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The host and port to listen on, and the public root URL without a trailing slash.

    `is_loopback` is whether only this machine can reach the service."""

    host: str
    port: int
    root_url: str
    is_loopback: bool


def listen_address(public_url: str, host: str, port: int) -> ListenAddress:
    """Return the listen address of a service. An empty `public_url` means the address that the service listens on.

    The service counts as loopback if it listens on a loopback address and the host of its public URL, if it has one, is
    a loopback address too.
    """
    if public_url:
        root_url = public_url.rstrip("/")
        return ListenAddress(host, port, root_url, is_loopback(host) and is_loopback(urlsplit(root_url).hostname or ""))
    # A client cannot connect to an unspecified address (0.0.0.0 or ::), so publish the loopback address instead.
    url_host = host if not _address(host, "is_unspecified") else "::1" if ":" in host else "127.0.0.1"
    bracketed_host = f"[{url_host}]" if ":" in url_host else url_host
    return ListenAddress(host, port, f"http://{bracketed_host}:{port}", is_loopback(host))


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the host."""
    return host == "localhost" or _address(host, "is_loopback")


def _address(host: str, kind: Literal["is_loopback", "is_unspecified"]) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback if kind == "is_loopback" else address.is_unspecified


def local_url(host: str, port: int) -> str:
    """Return a URL for reaching this host and port from the same machine."""
    try:
        address = ip_address(host or "::")
    except ValueError:
        return f"http://{host}:{port}"
    if address.is_unspecified:
        return f"http://localhost:{port}"
    return f"http://[{address}]:{port}" if address.version == 6 else f"http://{address}:{port}"
