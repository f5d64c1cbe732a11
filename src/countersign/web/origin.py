"""Whether a request was made by a page of this very service (Fetch Metadata; RFC 6454), and what its cookies say."""

from typing import NamedTuple
from urllib.parse import urlsplit

from countersign.kernel.http.request import Headers

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Home(NamedTuple):
    """The address that the service gives out for itself, and whether only this machine reaches it."""

    root_url: str
    is_loopback: bool

    @property
    def is_secure(self) -> bool:
        """Whether browsers come by https."""
        return self.root_url.startswith("https://")

    @property
    def may_sign_in(self) -> bool:
        """Whether passwords and cookies travel unread: over https, or inside this machine."""
        return self.is_secure or self.is_loopback

    @property
    def origin(self) -> str:
        """The origin of the service's pages."""
        parts = urlsplit(self.root_url)
        return f"{parts.scheme}://{parts.netloc}"


def is_own_page(headers: Headers, home: Home) -> bool:
    """Whether a page of this service sent the request. Sec-Fetch-Site and Origin have to say so wherever they are
    sent, and one of them has to be: what tells nothing of where it comes from is not ours."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is None and origin is None:
        return False
    return site in (None, "same-origin") and (origin is None or _place(origin, home) == _place(home.root_url, home))


def is_own_or_typed(headers: Headers, home: Home) -> bool:
    """Whether our own page led here, or a person who typed the address or has it in the bookmarks."""
    return headers.get("sec-fetch-site") == "none" or is_own_page(headers, home)


def _place(origin: str, home: Home) -> tuple[str, str, int | None] | None:
    """Scheme, host and port; on this machine all names of the machine are one. None is no origin."""
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname:
        return None
    host = "localhost" if home.is_loopback and parts.hostname in LOOPBACK else parts.hostname
    return parts.scheme, host, port


def cookie(headers: Headers, name: str) -> str | None:
    """The cookie's value; None when there is none of the name, or it is empty."""
    # Split by hand: what another service of this host keeps in its cookies need not be well-formed (RFC 6265 §5.4).
    # Only what browsers put around a pair is taken off: a name that begins with another white space is another name,
    # which any subdomain may set, whatever prefix follows.
    for pair in (headers.get("cookie") or "").split(";"):
        found, _, value = pair.strip(" \t").partition("=")
        if found == name:
            return value or None
    return None
