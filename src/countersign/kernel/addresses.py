"""Addresses of other servers in settings, which may hold a password: none is quoted when it cannot be read.

What parses an address quotes what it stumbles over: after an unencoded `/` in a password, a part of the password.
"""

from urllib.parse import SplitResult, urlsplit

REMEDY = "percent-encode special characters of user and password (/ is %2F, @ %40, : %3A, # %23, ? %3F, [ %5B, % %25)"
_MAX_PORT = 65_535
# Names of users may hold an @, which does no harm there.
_LOGIN = ("user=", "username=", "password=")


def require_readable(url: str, setting: str) -> SplitResult:
    """The parts of the address `scheme://user:password@host:port/…`, with one host or several after commas.

    Raises:
        ValueError: a port is no number, or the password seems to be cut in two; `setting` is named, and nothing quoted.
    """
    parts = _parts(url)
    if parts is None or _is_cut(parts) or not are_hosts(parts.netloc.rpartition("@")[2]):
        raise unreadable(setting)
    return parts


def unreadable(setting: str) -> ValueError:
    """The error that names the setting and the remedy."""
    return ValueError(f"{setting} cannot be read as an address: {REMEDY}")


def are_hosts(hosts: str) -> bool:
    """Whether these are hosts, separated by commas, each with a port or none."""
    return all(_is_host(each.strip()) for each in hosts.split(","))


def is_port(port: str) -> bool:
    """Whether this is a port's number."""
    return port.isascii() and port.isdecimal() and len(port) <= len(str(_MAX_PORT)) and int(port) <= _MAX_PORT


def _parts(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _is_cut(parts: SplitResult) -> bool:
    """Whether the @ that ends a password comes after what ends the place of hosts."""
    if not parts.netloc or "@" in parts.netloc:
        return False
    fields = [field for field in parts.query.split("&") if not field.startswith(_LOGIN)]
    return any("@" in each for each in (parts.path, parts.fragment, *fields))


def _is_host(host: str) -> bool:
    if host.startswith("["):
        name, bracket, after = host.partition("]")
        is_named = bool(name and bracket) and after[:1] in ("", ":")
        port = after[1:]
    else:
        _, _, port = host.partition(":")
        is_named = True
    return is_named and (not port or is_port(port))
