"""The proxies in front, whose X-Forwarded-For and traceparent are believed."""

from ipaddress import ip_address, ip_network

from countersign.settings import BadSetting, Settings


class Proxies:
    """Addresses and networks (`10.0.0.7`, `10.42.0.0/16`, `fd00::/64`); a network may be told by any address in it."""

    def __init__(self, text: str) -> None:
        """Take them from a list that is separated by commas.

        Raises:
            ValueError: what has a slash is no network; the text says which.
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
            found = ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks)


def trusted(settings: Settings) -> Proxies:
    """Those that are configured.

    Raises:
        BadSetting: one of them is no network.
    """
    try:
        return Proxies(settings.trusted_proxies)
    except ValueError as error:
        raise BadSetting(f"COUNTERSIGN_TRUSTED_PROXIES: {error}") from error
