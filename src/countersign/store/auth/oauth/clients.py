"""OAuth clients of organisations, dynamic clients (which register themselves, RFC 7591), and redirect URIs."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address
from urllib.parse import urlsplit

import msgspec

from countersign.kernel import clock, ids, telemetry
from countersign.kernel.clock import Instant
from countersign.kernel.database import versions
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import NotFound, Refused, invalid_member
from countersign.kernel.normalization import normalized
from countersign.kernel.security import secrets
from countersign.store import scopes
from countersign.store.auth import organisations, queries
from countersign.store.auth.agents import registration_limits
from countersign.store.auth.queries import Client
from countersign.store.auth.schemas import ClientMetadata, ClientRegistered
from countersign.store.auth.tokens import InvalidScope
from countersign.store.context import Store

_MAX_URI_LENGTH = 2_000
# An address must not contain anything that a browser, a header or a policy could parse differently: no user
# information, no fragment, no backslash, no wildcard.
_ADDRESS = re.compile(r"""(https?)://([A-Za-z0-9.-]+|\[::1\])(?::([0-9]{1,5}))?(?:[/?][!"$-\[\]-~]*)?""")
_MAX_HOST = 253
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_LOOPBACK_URI_HOSTS = ("127.0.0.1", "[::1]", "localhost")
LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")
"""The hosts of the person's own machine, as a parsed address names them."""
# The port may differ from the registered one only if the host is a literal IP address. It may not if the host is
# `localhost`, because the machine's resolver determines its address (RFC 8252 §8.3).
_ANY_PORT = re.compile(r"(http://(?:127\.0\.0\.1|\[::1\]))(?::[0-9]{1,5})?((?:[/?].*)?)")


def require_safe_uris(uris: Sequence[str]) -> None:
    """Require safe redirect URIs: https, or http on the person's own machine; no fragment, no user information, nothing
    that a browser would parse differently from this server.

    Raises:
        InvalidRequest: a URI is not safe; the pointer names its index.
    """
    for index, uri in enumerate(uris):
        fault = redirect_uri_error(uri)
        if fault is not None:
            raise invalid_member(f"/redirect_uris/{index}", fault)


def redirect_uri_error(uri: str) -> str | None:
    """Return the reason why an address cannot be registered as a redirect URI, or None if it can be registered."""
    match = _ADDRESS.fullmatch(uri)
    if match is None or len(uri) > _MAX_URI_LENGTH:
        return (
            "must be an https address (or an http one of 127.0.0.1, [::1] or localhost) in printable ASCII, without "
            f"user information, fragment, backslash or wildcard, {_MAX_URI_LENGTH} characters at most"
        )
    scheme, host, port = match.groups()
    if not _is_canonical(host):
        return "must name a host, or an IPv4 address in the form of 192.0.2.1"
    if port is not None and not 0 < int(port) < 65_536:
        return "must name a valid port"
    if scheme == "http" and host not in _LOOPBACK_URI_HOSTS:
        return "must be https, unless its host is 127.0.0.1, [::1] or localhost"
    return None


def _is_canonical(host: str) -> bool:
    """Whether all programs interpret the host in the same way. Browsers parse `0x7f000001`, `2130706433` and `127.1` as
    IP addresses (WHATWG URL, "ends in a number"), so that a browser would show a different host than the consent
    page."""
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


def is_registered_uri(uri: str, registered_uris: Sequence[str]) -> bool:
    """Whether the address is equal to a registered address. A loopback address may have any port, because a program
    does not know its port beforehand (RFC 8252 §7.3)."""
    if uri in registered_uris:
        return True
    portless = _split_at_port(uri)
    return portless is not None and any(_split_at_port(uri) == portless for uri in registered_uris)


def _split_at_port(uri: str) -> tuple[str, str] | None:
    """Return the parts before and after the port of a valid loopback URI; None for any other URI."""
    match = _ANY_PORT.fullmatch(uri)
    return None if match is None or redirect_uri_error(uri) is not None else (match[1], match[2])


def origin(uri: str) -> str:
    """Scheme, host and port of a registered address, for display."""
    url_parts = urlsplit(uri)
    return f"{url_parts.scheme}://{url_parts.netloc}"


def lowercase_origin(uri: str) -> str:
    """The origin in lower case, so that no capital letter looks like another letter."""
    return origin(uri).lower()


def is_loopback(uri: str) -> bool:
    """Whether the host of an address is the person's own machine."""
    host = (urlsplit(uri).hostname or "").removesuffix(".")
    return host in LOOPBACK_HOSTS or host.endswith(".localhost") or _is_loopback_address(host)


def _is_loopback_address(host: str) -> bool:
    try:
        return IPv4Address(host).is_loopback
    except ValueError:
        return False


def policy_source(uri: str) -> str:
    """Return the Content-Security-Policy source for a registered address. For an IPv6 address, return only the scheme,
    because a policy cannot name an IPv6 address."""
    url_parts = urlsplit(uri)
    return f"{url_parts.scheme}:" if "[" in url_parts.netloc else origin(uri)


class ClientNotFound(NotFound):
    """The organisation has no client with this id."""

    resolution = "List the clients with GET /api/v1/org/clients."


async def create_client(
    transaction: Transaction,
    org_id: str,
    name: str,
    scope: Iterable[str],
    *,
    redirect_uris: Sequence[str] = (),
    is_implicit: bool = False,
) -> tuple[queries.Client, str]:
    """Add a client, and return it with its secret. Only a hash of the secret is stored. `redirect_uris` contains the
    redirect URIs of the client; a redirect carries a code, or a token if `is_implicit` is true.

    Raises:
        InvalidScope: a scope does not exist.
        InvalidRequest: a redirect URI is not safe.
    """
    secret = secrets.new_secret("ccs")
    client_id = "cc_" + ids.new_uuid().replace("-", "")
    require_safe_uris(redirect_uris)
    client = await add_client(
        transaction, org_id, client_id, secret, name, scope, redirect_uris=redirect_uris, is_implicit=is_implicit
    )
    return client, secret


async def add_client(
    transaction: Transaction,
    org_id: str,
    client_id: str,
    secret: str,
    name: str,
    scope: Iterable[str],
    *,
    redirect_uris: Sequence[str] = (),
    is_implicit: bool = False,
) -> queries.Client:
    """Add a client with a chosen id and secret.

    Raises:
        InvalidScope: a scope does not exist.
        InvalidRequest: the name cannot be displayed.
    """
    organisations.require_name(name)
    requested_scopes = frozenset(scope)
    unknown_scopes = sorted(requested_scopes - frozenset(scopes.ALL))
    if unknown_scopes:
        remedy = f"Name scopes among: {' '.join(scopes.ALL)}."
        raise InvalidScope(f"the scope {unknown_scopes[0][:64]} does not exist", resolution=remedy)
    client = queries.Client(
        client_id,
        org_id,
        name,
        secrets.digest(secret),
        requested_scopes,
        clock.now(),
        tuple(redirect_uris),
        is_implicit,
    )
    await transaction.run(
        queries.INSERT_CLIENT,
        client.id,
        org_id,
        name,
        client.secret_hash,
        scopes.words(requested_scopes),
        client.created_at,
        msgspec.json.encode(client.redirect_uris).decode(),
        int(is_implicit),
    )
    return client


async def delete_client(transaction: Transaction, org_id: str, client_id: str) -> None:
    """Remove a client; its tokens become invalid at once, on every worker.

    Raises:
        ClientNotFound: the organisation has no such client.
    """
    if not await transaction.run(queries.DELETE_CLIENT, client_id, org_id):
        raise ClientNotFound("the organisation has no client with this id")
    await versions.bump(transaction, "identity")


REGISTRATION_PATH = "/auth/clients"
DYNAMIC_GRANT = "authorization_code"
MAX_UNUSED = 10_000
MAX_REDIRECT_URIS = 10
MAX_NAME_LENGTH = 60
MAX_DELETED_AT_ONCE = 1_000
AUTH_METHODS = ("client_secret_basic", "client_secret_post")

INSERT_DYNAMIC = """
    INSERT INTO dynamic_client (id, name, secret_hash, scopes, redirect_uris, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)
"""
NEWEST_TO_DELETE = """
    SELECT created_at, id FROM dynamic_client WHERE used_at IS NULL ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET $1
"""
DELETE_OLDEST_UNUSED = (
    "DELETE FROM dynamic_client WHERE used_at IS NULL AND (created_at < $1 OR (created_at = $1 AND id <= $2))"
)
DELETE_UNUSED = "DELETE FROM dynamic_client WHERE used_at IS NULL AND created_at <= $1"
SET_USED_AT = "UPDATE dynamic_client SET used_at = $2 WHERE id = $1"
# Selects a client if one of two conditions is true:
# - neither the client nor a person's consent to it was used after $1;
# - neither the client nor a person's consent to it was used after $2, and no consent to it contains a scope.
IDLE_CLIENTS = """
    SELECT d.id
    FROM dynamic_client d
    WHERE (d.used_at <= $1
            AND NOT EXISTS (SELECT 1 FROM consent c WHERE c.client_id = d.id AND c.used_at > $1))
        OR (d.used_at <= $2
            AND NOT EXISTS (SELECT 1 FROM consent c WHERE c.client_id = d.id AND (c.scopes <> '' OR c.used_at > $2)))
    ORDER BY d.used_at, d.id
    LIMIT $3
"""
DELETE_IDLE = "DELETE FROM dynamic_client WHERE id = $1 AND used_at <= $2"
DELETE_CODES_OF_CLIENT = "DELETE FROM authorization_code WHERE client_id = $1"
DELETE_CONSENTS_OF_CLIENT = "DELETE FROM consent WHERE client_id = $1"

# Every run of characters outside this list becomes a space. This excludes invisible characters, characters that change
# the text direction, letters that look like Latin letters, quotation marks that would end the name, and characters that
# form a host or an address.
_NOT_DISPLAYED = re.compile(r"[^A-Za-z0-9 &+_'-]+")


class DynamicClientsNotEnabled(Refused):
    """The operator has disabled dynamic registration of clients."""

    status = 403
    code = "dynamic_clients_not_enabled"
    title = "Dynamic clients not enabled"
    resolution = "Ask an administrator of an organisation for a client."


class InvalidRedirectUri(Refused):
    """A redirect URI is missing or not safe (RFC 7591 §3.2.2)."""

    code = "invalid_redirect_uri"
    title = "Invalid redirect URI"
    resolution = "Register https addresses, or http ones of 127.0.0.1, [::1] or localhost."


class InvalidClientMetadata(Refused):
    """The client requests what dynamic clients cannot have (RFC 7591 §3.2.2)."""

    code = "invalid_client_metadata"
    title = "Invalid client metadata"
    resolution = "Register for grant_types authorization_code and response_types code."


async def register_client(store: Store, client_metadata: ClientMetadata, address: str) -> ClientRegistered:
    """Register a dynamic client, with a secret that is stored as a hash.

    Raises:
        DynamicClientsNotEnabled: the setting is off.
        InvalidRedirectUri: there are no redirect URIs or too many, or one is not safe.
        InvalidClientMetadata: the client does not register for the authorization code grant, or requests no scope that
            it can have.
        RateLimited: too many clients were registered by the address in this hour.
    """
    if not store.settings.dynamic_clients:
        raise DynamicClientsNotEnabled("clients cannot register themselves here")
    uris = _checked_redirect_uris(store, client_metadata)
    _require_code(client_metadata)
    allowed_scopes = _permitted_scopes(client_metadata.scope)
    await registration_limits.count_client(store, address)
    secret = secrets.new_secret("ccs")
    client_id = queries.DYNAMIC_PREFIX + ids.new_uuid().replace("-", "")
    now = clock.now()
    name = displayed_name(client_metadata.client_name or "")
    values = (name, secrets.digest(secret), scopes.words(allowed_scopes), msgspec.json.encode(uris).decode(), now)
    async with store.database.transaction() as transaction:
        await _delete_oldest_unused(transaction)
        await transaction.run(INSERT_DYNAMIC, client_id, *values)
    telemetry.logger("oauth").info("client registered", client=client_id)
    method = client_metadata.token_endpoint_auth_method
    return ClientRegistered(
        client_id=client_id,
        client_secret=secret,
        client_id_issued_at=now // clock.SECOND,
        client_secret_expires_at=0,
        client_name=name,
        redirect_uris=uris,
        grant_types=(DYNAMIC_GRANT,),
        response_types=("code",),
        scope=scopes.words(allowed_scopes),
        token_endpoint_auth_method=method if method in AUTH_METHODS else "client_secret_post",
    )


async def record_use(transaction: Transaction, client: Client) -> bool:
    """Record the use of a client that a person allows. Return False if a concurrent request removed the client."""
    return not client.is_dynamic or bool(await transaction.run(SET_USED_AT, client.id, clock.now()))


async def delete_unused(transaction: Transaction) -> int:
    """Remove dynamic clients that no person allowed within 30 days of registration; return their number."""
    removed_count = await transaction.run(DELETE_UNUSED, clock.later(clock.now(), seconds=-queries.UNUSED_CLIENT_S))
    _log_deleted(removed_count)
    return removed_count


async def delete_idle(transaction: Transaction, days: int) -> int:
    """Remove dynamic clients, with their consents, in two cases:

    - a client was not used for `days` days;
    - a client was not used for 30 days, and no person allows it any longer.

    Remove 1,000 clients at most, and return their number.
    """
    now = clock.now()
    idle_since = clock.later(now, seconds=-86_400 * days)
    unwanted_since = clock.later(now, seconds=-queries.UNUSED_CLIENT_S)
    rows = await transaction.fetch(IDLE_CLIENTS, idle_since, unwanted_since, MAX_DELETED_AT_ONCE)
    removed_ids = [
        client_id
        for (client_id,) in rows
        if await _delete_idle_client(transaction, client_id, max(idle_since, unwanted_since))
    ]
    for client_id in removed_ids:
        telemetry.logger("oauth").info("client ended", client=client_id, reason="unused")
    if removed_ids:
        await versions.bump(transaction, "identity")
    return len(removed_ids)


async def _delete_idle_client(transaction: Transaction, client_id: str, unused_since: Instant) -> bool:
    """Remove a client, unless a person allowed it in a concurrent request."""
    if not await transaction.run(DELETE_IDLE, client_id, unused_since):
        return False
    await transaction.run(DELETE_CODES_OF_CLIENT, client_id)
    await transaction.run(DELETE_CONSENTS_OF_CLIENT, client_id)
    return True


def _log_deleted(count: int) -> None:
    if count:
        telemetry.logger("oauth").info("unused clients ended", count=count)


def is_enabled(store: Store, client: Client) -> bool:
    """Whether the operator has enabled clients of this kind."""
    return store.settings.dynamic_clients or not client.is_dynamic


def displayed_name(name: str) -> str:
    """A client's name for display: Latin letters without diacritics, digits and a few signs."""
    letters = (character for character in normalized("NFKD", name) if not unicodedata.combining(character))
    return " ".join(_NOT_DISPLAYED.sub(" ", "".join(letters)).split())[:MAX_NAME_LENGTH].rstrip()


async def _delete_oldest_unused(transaction: Transaction) -> None:
    """Remove the oldest unused clients, so that MAX_UNUSED are left after adding one."""
    newest_to_delete = await transaction.fetch_one(NEWEST_TO_DELETE, MAX_UNUSED - 1)
    if newest_to_delete is not None:
        _log_deleted(await transaction.run(DELETE_OLDEST_UNUSED, *newest_to_delete))


def _checked_redirect_uris(store: Store, client_metadata: ClientMetadata) -> tuple[str, ...]:
    if not client_metadata.redirect_uris or len(client_metadata.redirect_uris) > MAX_REDIRECT_URIS:
        raise InvalidRedirectUri(f"redirect_uris must name 1 to {MAX_REDIRECT_URIS} addresses")
    for index, uri in enumerate(client_metadata.redirect_uris):
        fault = redirect_uri_error(uri)
        if fault is None and _comparable_origin(uri) == _comparable_origin(store.root_url):
            # Reject the address, because the consent page would name this service as the recipient of access.
            fault = "must not be an address of this service"
        if fault is not None:
            raise InvalidRedirectUri(f"/redirect_uris/{index}: {fault}")
    return tuple(client_metadata.redirect_uris)


def _comparable_origin(uri: str) -> tuple[str, str, int]:
    """Return the origin of an address in a comparable form: without a final dot of the host, and with the same host for
    all names of the person's own machine."""
    url_parts = urlsplit(uri)
    host = (url_parts.hostname or "").rstrip(".")
    if host in LOOPBACK_HOSTS:
        host = "localhost"
    return url_parts.scheme, host, url_parts.port or (443 if url_parts.scheme == "https" else 80)


def _require_code(client_metadata: ClientMetadata) -> None:
    """Require that the client registers for the authorization code grant. Other requested grants are not given."""
    for name, requested_values, needed_value in (
        ("grant_types", client_metadata.grant_types, DYNAMIC_GRANT),
        ("response_types", client_metadata.response_types, "code"),
    ):
        if requested_values is not None and needed_value not in requested_values:
            raise InvalidClientMetadata(f"{name} must include {needed_value}")


def _permitted_scopes(scope: str | None) -> frozenset[str]:
    """Return the scopes that the client may request from people: the named scopes, or all scopes if none are named. The
    scope for administration is never included."""
    allowed_scopes = (frozenset((scope or "").split()) or scopes.DELEGABLE) & scopes.DELEGABLE
    if not allowed_scopes:
        raise InvalidClientMetadata(
            "none of these scopes can be given to a client that registers itself",
            resolution=f"Register for scopes among: {scopes.words(scopes.DELEGABLE)}.",
        )
    return allowed_scopes
