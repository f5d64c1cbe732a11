"""Who may send a browser here: the defence against DNS rebinding (2025-11-25, Transports, Security Warning 1)."""

from urllib.parse import urlsplit

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def is_allowed(origin: str | None, root_url: str) -> bool:
    """Whether a request with this Origin may be served: none is sent by what is no browser; pages of this machine and
    of the service's own address are let in."""
    if origin is None:
        return True
    try:
        sent, own = urlsplit(origin), urlsplit(root_url)
        same = (sent.scheme, sent.hostname, sent.port) == (own.scheme, own.hostname, own.port)
    except ValueError:
        return False
    return same or (sent.scheme in ("http", "https") and sent.hostname in LOOPBACK)
