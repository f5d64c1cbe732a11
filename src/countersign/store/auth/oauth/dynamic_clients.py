"""Clients that register themselves (RFC 7591): who may, what of it is kept, and which of them end."""

import re
import unicodedata
from urllib.parse import urlsplit

import msgspec

from countersign.kernel import clock, ids, telemetry
from countersign.kernel.clock import Instant
from countersign.kernel.database import versions
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.normalization import normalized
from countersign.kernel.security import secrets
from countersign.store import scopes
from countersign.store.auth import clients, queries
from countersign.store.auth.agents import registrations
from countersign.store.auth.oauth.schemas import ClientMetadata, ClientRegistered
from countersign.store.auth.queries import Client
from countersign.store.context import Store

PATH = "/auth/clients"
GRANT = "authorization_code"
MAX_UNUSED = 10_000
MAX_REDIRECT_URIS = 10
MAX_NAME_LENGTH = 60
MAX_ENDED_AT_ONCE = 1_000
METHODS = ("client_secret_basic", "client_secret_post")

INSERT = """
    INSERT INTO dynamic_client (id, name, secret_hash, scopes, redirect_uris, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)
"""
OLDEST_TO_END = """
    SELECT created_at, id FROM dynamic_client WHERE used_at IS NULL ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET $1
"""
END_OLDEST = "DELETE FROM dynamic_client WHERE used_at IS NULL AND (created_at < $1 OR (created_at = $1 AND id <= $2))"
END_UNUSED = "DELETE FROM dynamic_client WHERE used_at IS NULL AND created_at <= $1"
USED = "UPDATE dynamic_client SET used_at = $2 WHERE id = $1"
# Used by nobody for long, or let in by nobody any more for a while.
ENDED = """
    SELECT d.id
    FROM dynamic_client d
    WHERE (d.used_at <= $1
            AND NOT EXISTS (SELECT 1 FROM consent c WHERE c.client_id = d.id AND c.used_at > $1))
        OR (d.used_at <= $2
            AND NOT EXISTS (SELECT 1 FROM consent c WHERE c.client_id = d.id AND (c.scopes <> '' OR c.used_at > $2)))
    ORDER BY d.used_at, d.id
    LIMIT $3
"""
END = "DELETE FROM dynamic_client WHERE id = $1 AND used_at <= $2"
END_CODES = "DELETE FROM authorization_code WHERE client_id = $1"
END_CONSENTS = "DELETE FROM consent WHERE client_id = $1"

# Everything else in a name is shown as a space: what is invisible or changes the direction of writing, letters that
# look like Latin ones, quotation marks that would end the name, and what makes a host or an address of it.
_NOT_SHOWN = re.compile(r"[^A-Za-z0-9 &+_'-]+")


class DynamicClientsNotEnabled(Refused):
    """The operator lets no clients register themselves."""

    status = 403
    code = "dynamic_clients_not_enabled"
    title = "Dynamic clients not enabled"
    resolution = "Ask an administrator of an organisation for a client."


class InvalidRedirectUri(Refused):
    """A redirect address is missing or not safe for people to be sent to (RFC 7591 §3.2.2)."""

    code = "invalid_redirect_uri"
    title = "Invalid redirect URI"
    resolution = "Register https addresses, or http ones of 127.0.0.1, [::1] or localhost."


class InvalidClientMetadata(Refused):
    """The client wants what clients that register themselves cannot have (RFC 7591 §3.2.2)."""

    code = "invalid_client_metadata"
    title = "Invalid client metadata"
    resolution = "Register for grant_types authorization_code and response_types code."


async def register(store: Store, sent: ClientMetadata, address: str) -> ClientRegistered:
    """A new client with a secret, which is kept as a hash and shown this once.

    Raises:
        DynamicClientsNotEnabled: the setting is off.
        InvalidRedirectUri: no address, too many, or one that people cannot safely be sent to.
        InvalidClientMetadata: no code is asked for, or no scope that the client could have.
        RateLimited: the address has registered too many in this hour.
    """
    if not store.settings.dynamic_clients:
        raise DynamicClientsNotEnabled("clients cannot register themselves here")
    uris = _redirect_uris(store, sent)
    _require_code(sent)
    held = _scopes(sent.scope)
    await registrations.count_client(store, address)
    secret = secrets.new_secret("ccs")
    client_id = queries.DYNAMIC_PREFIX + ids.new_uuid().replace("-", "")
    now = clock.now()
    name = shown_name(sent.client_name or "")
    kept = (name, secrets.digest(secret), scopes.words(held), msgspec.json.encode(uris).decode(), now)
    async with store.database.transaction() as transaction:
        await _make_room(transaction)
        await transaction.run(INSERT, client_id, *kept)
    telemetry.logger("oauth").info("client registered", client=client_id)
    method = sent.token_endpoint_auth_method
    return ClientRegistered(
        client_id=client_id,
        client_secret=secret,
        client_id_issued_at=now // clock.SECOND,
        client_secret_expires_at=0,
        client_name=name,
        redirect_uris=uris,
        grant_types=(GRANT,),
        response_types=("code",),
        scope=scopes.words(held),
        token_endpoint_auth_method=method if method in METHODS else "client_secret_post",
    )


async def record_use(transaction: Transaction, client: Client) -> bool:
    """Keep a client that a person lets in; False when it has ended meanwhile."""
    return not client.is_dynamic or bool(await transaction.run(USED, client.id, clock.now()))


async def forget_unused(transaction: Transaction) -> int:
    """Remove clients that no person let in within 30 days of their registration; how many there were."""
    ended = await transaction.run(END_UNUSED, clock.later(clock.now(), seconds=-queries.UNUSED_CLIENT_S))
    _log_unused(ended)
    return ended


async def end_idle(transaction: Transaction, days: int) -> int:
    """Remove clients that nobody used for so many days, and those that no person allows anything any more 30 days after
    their last use, with what is left of their consents; how many there were, 1,000 at most."""
    now = clock.now()
    idle_since = clock.later(now, seconds=-86_400 * days)
    unwanted_since = clock.later(now, seconds=-queries.UNUSED_CLIENT_S)
    found = await transaction.fetch(ENDED, idle_since, unwanted_since, MAX_ENDED_AT_ONCE)
    ended = [client_id for (client_id,) in found if await _end(transaction, client_id, max(idle_since, unwanted_since))]
    for client_id in ended:
        telemetry.logger("oauth").info("client ended", client=client_id, reason="unused")
    if ended:
        await versions.bump(transaction, "identity")
    return len(ended)


async def _end(transaction: Transaction, client_id: str, unused_since: Instant) -> bool:
    """Remove a client, unless a person let it in a moment ago."""
    if not await transaction.run(END, client_id, unused_since):
        return False
    await transaction.run(END_CODES, client_id)
    await transaction.run(END_CONSENTS, client_id)
    return True


def _log_unused(count: int) -> None:
    if count:
        telemetry.logger("oauth").info("unused clients ended", count=count)


def is_enabled(store: Store, client: Client) -> bool:
    """Whether the operator lets clients of this kind act."""
    return store.settings.dynamic_clients or not client.is_dynamic


def shown_name(name: str) -> str:
    """A client's name as it is shown to people: Latin letters without their marks, digits and a few signs."""
    letters = (each for each in normalized("NFKD", name) if not unicodedata.combining(each))
    return " ".join(_NOT_SHOWN.sub(" ", "".join(letters)).split())[:MAX_NAME_LENGTH].rstrip()


async def _make_room(transaction: Transaction) -> None:
    """End the oldest unused clients, so that one more leaves MAX_UNUSED of them."""
    oldest = await transaction.fetch_one(OLDEST_TO_END, MAX_UNUSED - 1)
    if oldest is not None:
        _log_unused(await transaction.run(END_OLDEST, *oldest))


def _redirect_uris(store: Store, sent: ClientMetadata) -> tuple[str, ...]:
    if not sent.redirect_uris or len(sent.redirect_uris) > MAX_REDIRECT_URIS:
        raise InvalidRedirectUri(f"redirect_uris must name 1 to {MAX_REDIRECT_URIS} addresses")
    for place, uri in enumerate(sent.redirect_uris):
        fault = clients.fault(uri)
        if fault is None and _origin(uri) == _origin(store.root_url):
            # The consent page would name this service as the one that gets access.
            fault = "must not be an address of this service"
        if fault is not None:
            raise InvalidRedirectUri(f"/redirect_uris/{place}: {fault}")
    return tuple(sent.redirect_uris)


def _origin(uri: str) -> tuple[str, str, int]:
    """Where an address leads: a host with and without the dot of the root is one, and so are all names of loopback."""
    parts = urlsplit(uri)
    host = (parts.hostname or "").rstrip(".")
    if host in clients.LOOPBACK_HOSTS:
        host = "localhost"
    return parts.scheme, host, parts.port or (443 if parts.scheme == "https" else 80)


def _require_code(sent: ClientMetadata) -> None:
    """Insist that the client can do with a code; of other grants that it names too it gets none."""
    for name, wanted, needed in (
        ("grant_types", sent.grant_types, GRANT),
        ("response_types", sent.response_types, "code"),
    ):
        if wanted is not None and needed not in wanted:
            raise InvalidClientMetadata(f"{name} must include {needed}")


def _scopes(scope: str | None) -> frozenset[str]:
    """The scopes that the client may ask people for: those it names, or all, without administration."""
    held = (frozenset((scope or "").split()) or scopes.DELEGABLE) & scopes.DELEGABLE
    if not held:
        raise InvalidClientMetadata(
            "none of these scopes can be given to a client that registers itself",
            resolution=f"Register for scopes among: {scopes.words(scopes.DELEGABLE)}.",
        )
    return held
