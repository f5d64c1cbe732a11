"""URLs of other servers in settings, which may contain a password: an unreadable URL is never quoted.

A parser's message quotes the part that the parser cannot read. If the password contains an unencoded `/`, that part is
the rest of the password.
"""

import re
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

REMEDY = "percent-encode special characters of user and password (/ is %2F, @ %40, : %3A, # %23, ? %3F, [ %5B, % %25)"
_MAX_PORT = 65_535
# User names and passwords in the query string may contain an @.
_LOGIN = ("user=", "username=", "password=")


def require_readable(url: str, setting: str) -> SplitResult:
    """Parse the URL `scheme://user:password@host:port/…`, with one host or several, separated by commas.

    Raises:
        ValueError: a port is not a number, or the password contains an unencoded delimiter; the message names the
            setting and quotes no part of the URL.
    """
    url_parts = _parts(url)
    is_cut = url_parts is not None and _has_unencoded_delimiter(url_parts)
    if url_parts is None or is_cut or not is_host_list(url_parts.netloc.rpartition("@")[2]):
        raise unreadable_error(setting)
    return url_parts


def unreadable_error(setting: str) -> ValueError:
    """Return the error that names the setting and the remedy."""
    return ValueError(f"{setting} cannot be read as an address: {REMEDY}")


def is_host_list(hosts: str) -> bool:
    """Return whether the text is a list of hosts, separated by commas, each with an optional port."""
    return all(_is_host(word.strip()) for word in hosts.split(","))


def is_port(port: str) -> bool:
    """Return whether the text is a port number."""
    return port.isascii() and port.isdecimal() and len(port) <= len(str(_MAX_PORT)) and int(port) <= _MAX_PORT


def _parts(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _has_unencoded_delimiter(url_parts: SplitResult) -> bool:
    """Return whether the @ that ends the user info comes after the end of the authority."""
    if not url_parts.netloc or "@" in url_parts.netloc:
        return False
    fields = [field for field in url_parts.query.split("&") if not field.startswith(_LOGIN)]
    return any("@" in component for component in (url_parts.path, url_parts.fragment, *fields))


def _is_host(host: str) -> bool:
    if host.startswith("["):
        name, bracket, rest_of_host = host.partition("]")
        is_named = bool(name and bracket) and rest_of_host[:1] in ("", ":")
        port = rest_of_host[1:]
    else:
        _, _, port = host.partition(":")
        is_named = True
    return is_named and (not port or is_port(port))


DATABASE_SETTING = "COUNTERSIGN_DATABASE_URL"
POSTGRES_SCHEMES = ("postgresql://", "postgres://")

# Matches invalid percent-encodings: libpq refuses a URL with one, and quotes the URL.
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")


def require_postgres(url: str, setting: str = DATABASE_SETTING) -> None:
    """Check that the URL can be parsed: the drivers quote unreadable parts, which may contain the password.

    Raises:
        ValueError: the URL cannot be parsed; the message names the setting and the remedy, and quotes no part of the
            URL.
    """
    url_parts = require_readable(url, setting)
    # asyncpg ends the password at the first @, and would resolve the rest as a host.
    is_clear = url_parts.netloc.count("@") <= 1 and not _BAD_ESCAPE.search(url) and not url_parts.fragment
    if not is_clear or not _is_readable_query(url_parts.query):
        raise unreadable_error(setting)


def describe_postgres(url: str) -> str:
    """Describe the database for messages: the user, if the URL names one, the hosts, ports and name, but never the
    password.

    Raises:
        ValueError: the URL cannot be parsed. The message quotes no part of the URL.
    """
    url_parts = require_readable(url, DATABASE_SETTING)
    user = url_parts.username or "".join(parse_qs(url_parts.query).get("user", ()))
    return f"{unquote(user)}@{postgres_location(url)}" if user else postgres_location(url)


def postgres_location(url: str) -> str:
    """Return the hosts, ports and name of the database, which identify it for every user.

    Raises:
        ValueError: the URL cannot be parsed. The message quotes no part of the URL.
    """
    url_parts = require_readable(url, DATABASE_SETTING)
    hosts = url_parts.netloc.rpartition("@")[2]
    if "," in hosts:
        return f"{hosts}{url_parts.path}"
    return f"{url_parts.hostname or 'localhost'}:{url_parts.port or 5432}{url_parts.path}"


def _is_readable_query(query: str) -> bool:
    try:
        fields = parse_qs(query, strict_parsing=bool(query))
    except ValueError:
        return False
    ports = ",".join(fields.get("port", ())).split(",")
    return all(not port or is_port(port) for port in ports) and all(map(is_host_list, fields.get("host", ())))
