"""The address of a PostgreSQL database, as both of its drivers read it."""

import re
from urllib.parse import parse_qs, unquote

from countersign.kernel import addresses

SETTING = "COUNTERSIGN_DATABASE_URL"
POSTGRES = ("postgresql://", "postgres://")

# libpq refuses such an address, and quotes it.
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")


def require_postgres(url: str, setting: str = SETTING) -> None:
    """Insist that the address can be read: the drivers quote what they cannot read, which may be of the password.

    Raises:
        ValueError: it cannot; the text names the setting and the remedy, and quotes nothing.
    """
    parts = addresses.require_readable(url, setting)
    # The first @ ends the password for asyncpg, and what comes after it would be looked up as a host.
    is_clear = parts.netloc.count("@") <= 1 and not _BAD_ESCAPE.search(url) and not parts.fragment
    if not is_clear or not _is_query(parts.query):
        raise addresses.unreadable(setting)


def shown(url: str) -> str:
    """The database in words: user, where the address names one, hosts, ports and name; never the password.

    Raises:
        ValueError: as `require_postgres`.
    """
    parts = addresses.require_readable(url, SETTING)
    user = parts.username or "".join(parse_qs(parts.query).get("user", ()))
    return f"{unquote(user)}@{place(url)}" if user else place(url)


def place(url: str) -> str:
    """Hosts, ports and name of the database, the same whoever comes.

    Raises:
        ValueError: as `require_postgres`.
    """
    parts = addresses.require_readable(url, SETTING)
    hosts = parts.netloc.rpartition("@")[2]
    if "," in hosts:
        return f"{hosts}{parts.path}"
    return f"{parts.hostname or 'localhost'}:{parts.port or 5432}{parts.path}"


def _is_query(query: str) -> bool:
    try:
        fields = parse_qs(query, strict_parsing=bool(query))
    except ValueError:
        return False
    ports = ",".join(fields.get("port", ())).split(",")
    return all(not port or addresses.is_port(port) for port in ports) and all(
        map(addresses.are_hosts, fields.get("host", ()))
    )
