"""The IP address of a client, from its connection or from X-Forwarded-For of trusted proxies."""

from collections.abc import Container
from ipaddress import IPv6Address, IPv6Network, ip_address, ip_network

from countersign.kernel.http.request import Headers
from countersign.settings import BadSetting, Settings


class TrustedProxies:
    """The addresses and networks of trusted proxies (`10.0.0.7`, `10.42.0.0/16`, `fd00::/64`). A network may be written
    with any of its addresses (`10.42.3.1/16`)."""

    def __init__(self, text: str) -> None:
        """Parse a comma-separated list.

        Raises:
            ValueError: an entry with a slash is not a network; the message names the entry.
        """
        parts = [part for part in map(str.strip, text.split(",")) if part]
        self._addresses = frozenset(part for part in parts if "/" not in part)
        self._networks = tuple(ip_network(part, strict=False) for part in parts if "/" in part)

    def __contains__(self, address: object) -> bool:
        if not isinstance(address, str):
            return False
        if address in self._addresses:
            return True
        if not self._networks:
            return False
        try:
            ip = ip_address(address)
        except ValueError:
            return False
        return any(ip in network for network in self._networks)


def configured_proxies(settings: Settings) -> TrustedProxies:
    """Return the configured proxies.

    Raises:
        BadSetting: an entry with a slash is not a network.
    """
    try:
        return TrustedProxies(settings.trusted_proxies)
    except ValueError as error:
        raise BadSetting(f"COUNTERSIGN_TRUSTED_PROXIES: {error}") from error


def client_address(client: tuple[str, int] | None, headers: Headers, trusted_proxies: Container[str]) -> str:
    """Return the client's IP address. `client` is the other end of the connection. X-Forwarded-For is read from right
    to left, and addresses of trusted proxies are skipped."""
    address: str = client[0] if client else "local"
    if address not in trusted_proxies:
        return _limited_address(address)
    forwarded_for = headers.get("x-forwarded-for") or ""
    for hop in reversed([part.strip() for part in forwarded_for.split(",") if part.strip()]):
        address = hop
        if hop not in trusted_proxies:
            break
    return _limited_address(address)


def _limited_address(address: str) -> str:
    """Return the form of an address for limits and logs. An IPv6 address becomes its /64 network, because one client
    usually owns the whole network."""
    if ":" not in address:
        return address
    try:
        ipv6 = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if ipv6.ipv4_mapped is not None:
        return str(ipv6.ipv4_mapped)
    return str(IPv6Network((int(ipv6) >> 64 << 64, 64)))
