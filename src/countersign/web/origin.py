"""Checks whether a request comes from a page of this service (Fetch Metadata, RFC 6454), and reads its cookies."""

from typing import NamedTuple
from urllib.parse import urlsplit

from countersign.kernel.http.request import Headers

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class PublicAddress(NamedTuple):
    """The public address of the service, and whether it is reachable from this machine only."""

    root_url: str
    is_loopback: bool

    @property
    def is_secure(self) -> bool:
        """Whether browsers use https."""
        return self.root_url.startswith("https://")

    @property
    def may_sign_in(self) -> bool:
        """Whether passwords and cookies are protected in transit: by https, or within this machine."""
        return self.is_secure or self.is_loopback

    @property
    def origin(self) -> str:
        """The origin of the service's pages."""
        url_parts = urlsplit(self.root_url)
        return f"{url_parts.scheme}://{url_parts.netloc}"


def is_same_origin(headers: Headers, address: PublicAddress) -> bool:
    """Whether a page of this service sent the request. At least one of Sec-Fetch-Site and Origin must be present, and
    each of them must name this service if it is present."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is None and origin is None:
        return False
    if site not in (None, "same-origin"):
        return False
    return origin is None or _parse_origin(origin, address) == _parse_origin(address.root_url, address)


def is_same_origin_or_direct(headers: Headers, address: PublicAddress) -> bool:
    """Whether the visitor followed a link on a page of this service, typed the address, or used a bookmark."""
    return headers.get("sec-fetch-site") == "none" or is_same_origin(headers, address)


def _parse_origin(origin: str, address: PublicAddress) -> tuple[str, str, int | None] | None:
    """Return scheme, host and port, or None if the origin is invalid. If only this machine is served, all loopback
    names count as equal."""
    try:
        url_parts = urlsplit(origin)
        port = url_parts.port
    except ValueError:
        return None
    if not url_parts.hostname:
        return None
    host = "localhost" if address.is_loopback and url_parts.hostname in LOOPBACK else url_parts.hostname
    return url_parts.scheme, host, port


def cookie(headers: Headers, name: str) -> str | None:
    """The value of the cookie; None if it is missing or empty."""
    # Split the header here, without a parser of the standard library, since cookies of other services on this host need
    # not be well-formed (RFC 6265 §5.4). Only spaces and tabs are stripped: if other white space were stripped too, a
    # subdomain could set a cookie that passes for the __Host- cookie of this site.
    for pair in (headers.get("cookie") or "").split(";"):
        cookie_name, _, value = pair.strip(" \t").partition("=")
        if cookie_name == name:
            return value or None
    return None
