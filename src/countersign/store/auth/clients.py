"""OAuth clients of an organisation and their redirect URIs."""

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address
from urllib.parse import urlsplit

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.database import versions
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import NotFound, invalid_member
from countersign.kernel.security import secrets
from countersign.store import scopes
from countersign.store.auth import organisations, queries
from countersign.store.auth.tokens import InvalidScope

_MAX_LENGTH = 2_000
# Nothing in it that a browser, a header or a policy could read differently from us: no user information, no fragment,
# no backslash, no wildcard.
_ADDRESS = re.compile(r"""(https?)://([A-Za-z0-9.-]+|\[::1\])(?::([0-9]{1,5}))?(?:[/?][!"$-\[\]-~]*)?""")
_MAX_HOST = 253
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_LOOPBACK = ("127.0.0.1", "[::1]", "localhost")
LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")
"""The hosts of the person's own machine, as a parsed address names them."""
# Only the addresses themselves: what `localhost` leads to is for the machine's resolver to say (RFC 8252 §8.3).
_ANY_PORT = re.compile(r"(http://(?:127\.0\.0\.1|\[::1\]))(?::[0-9]{1,5})?((?:[/?].*)?)")


def require_safe(uris: Sequence[str]) -> None:
    """Insist that people can safely be sent to these: https, or http on their own machine; no fragment, no user
    information, nothing that a browser would read differently from us.

    Raises:
        InvalidRequest: one is not; it is named by its place.
    """
    for place, uri in enumerate(uris):
        found = fault(uri)
        if found is not None:
            raise invalid_member(f"/redirect_uris/{place}", found)


def fault(uri: str) -> str | None:
    """What is wrong with an address that is to be registered; None when people can safely be sent there."""
    found = _ADDRESS.fullmatch(uri)
    if found is None or len(uri) > _MAX_LENGTH:
        return (
            "must be an https address (or an http one of 127.0.0.1, [::1] or localhost) in printable ASCII, without "
            f"user information, fragment, backslash or wildcard, {_MAX_LENGTH} characters at most"
        )
    scheme, host, port = found.groups()
    if not _is_canonical(host):
        return "names no host, or an IPv4 address in another form than 192.0.2.1"
    if port is not None and not 0 < int(port) < 65_536:
        return "names a port that does not exist"
    if scheme == "http" and host not in _LOOPBACK:
        return "must be https, unless it leads to 127.0.0.1, [::1] or localhost"
    return None


def _is_canonical(host: str) -> bool:
    """Whether a host is read by everybody as it is written: browsers take `0x7f000001`, `2130706433` and `127.1` for
    addresses (WHATWG URL, "ends in a number"), and show another host than the consent page would."""
    if host == "[::1]":
        return True
    name = host.removesuffix(".")
    if len(name) > _MAX_HOST or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        return False
    if _NUMBER.fullmatch(name.rpartition(".")[2]) is None:
        return True
    try:
        return str(IPv4Address(host)) == host
    except ValueError:
        return False


def is_among(given: str, registered: Sequence[str]) -> bool:
    """Whether the address is one of the registered ones, byte for byte; of a loopback address the port may be any,
    as a program on the person's machine cannot know it beforehand (RFC 8252 §7.3)."""
    if given in registered:
        return True
    portless = _portless(given)
    return portless is not None and any(_portless(each) == portless for each in registered)


def _portless(uri: str) -> tuple[str, str] | None:
    """Host and rest of a loopback address that would itself be safe to register."""
    found = _ANY_PORT.fullmatch(uri)
    return None if found is None or fault(uri) is not None else (found[1], found[2])


def site(uri: str) -> str:
    """Scheme, host and port of a registered address, for people."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc}"


def lowered_site(uri: str) -> str:
    """The same in lower case, where no capital letter looks like another letter."""
    return site(uri).lower()


def is_loopback(uri: str) -> bool:
    """Whether an address leads to the person's own machine."""
    host = (urlsplit(uri).hostname or "").removesuffix(".")
    return host in LOOPBACK_HOSTS or host.endswith(".localhost") or _is_loopback_address(host)


def _is_loopback_address(host: str) -> bool:
    try:
        return IPv4Address(host).is_loopback
    except ValueError:
        return False


def policy_source(uri: str) -> str:
    """What a Content-Security-Policy calls the site of a registered address; of one by an IPv6 address, which no
    policy can name, its scheme."""
    parts = urlsplit(uri)
    return f"{parts.scheme}:" if "[" in parts.netloc else site(uri)


class ClientNotFound(NotFound):
    """The organisation has no client with this id."""

    resolution = "List the clients with GET /api/v1/org/clients."


async def create_client(
    transaction: Transaction,
    org_id: str,
    name: str,
    scope: Iterable[str],
    *,
    returns_to: Sequence[str] = (),
    is_implicit: bool = False,
) -> tuple[queries.Client, str]:
    """A new client and its secret, which is kept as a hash and shown this once. `returns_to` are the addresses people
    may be sent back to with a code, or with a token where `is_implicit`.

    Raises:
        InvalidScope: a scope does not exist.
        InvalidRequest: an address is none that people can safely be sent to.
    """
    secret = secrets.new_secret("ccs")
    client_id = "cc_" + ids.new_uuid().replace("-", "")
    require_safe(returns_to)
    added = await add_client(
        transaction, org_id, client_id, secret, name, scope, returns_to=returns_to, is_implicit=is_implicit
    )
    return added, secret


async def add_client(
    transaction: Transaction,
    org_id: str,
    client_id: str,
    secret: str,
    name: str,
    scope: Iterable[str],
    *,
    returns_to: Sequence[str] = (),
    is_implicit: bool = False,
) -> queries.Client:
    """A client with an id and a secret chosen beforehand.

    Raises:
        InvalidScope: a scope does not exist.
        InvalidRequest: the name cannot be shown to people as it is.
    """
    organisations.require_name(name)
    wanted = frozenset(scope)
    unknown = sorted(wanted - frozenset(scopes.ALL))
    if unknown:
        remedy = f"Name scopes among: {' '.join(scopes.ALL)}."
        raise InvalidScope(f"there is no scope {unknown[0][:64]}", resolution=remedy)
    made = queries.Client(
        client_id, org_id, name, secrets.digest(secret), wanted, clock.now(), tuple(returns_to), is_implicit
    )
    await transaction.run(
        queries.INSERT_CLIENT,
        made.id,
        org_id,
        name,
        made.secret_hash,
        scopes.words(wanted),
        made.created_at,
        msgspec.json.encode(made.redirect_uris).decode(),
        int(is_implicit),
    )
    return made


async def delete_client(transaction: Transaction, org_id: str, client_id: str) -> None:
    """Remove a client; its tokens end at once, on every worker.

    Raises:
        ClientNotFound: the organisation has no such client.
    """
    if not await transaction.run(queries.DELETE_CLIENT, client_id, org_id):
        raise ClientNotFound("the organisation has no client with this id")
    await versions.bump(transaction, "identity")
