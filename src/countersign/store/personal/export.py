"""GET /me/export: everything that the store keeps about a person, as one JSON document."""

from collections.abc import AsyncIterator, Callable
from typing import Any, Literal, NamedTuple

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Row
from countersign.kernel.http.response import Moment, Response, Uuid, encode
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.callers import StoreRequest
from countersign.store.context import Store
from countersign.store.personal.follows import PRIVATE, READ_LIBRARY, Kind
from countersign.store.personal.notifications import seen_at
from countersign.store.personal.sessions import OwnSession, SessionRequired, current_session, sessions_of

PAGE_ROWS = 500
MAX_EXPORTED_SESSIONS = 10_000
PERSON = "SELECT id, email, created_at, proven_at, password_hash IS NOT NULL FROM person WHERE id = $1"
# Each page begins after the key in the first column, so that a large document needs little memory and no connection
# while it is sent.
ROLES = """
    SELECT o.id, o.slug, o.name, m.role, m.created_at
    FROM membership m
    JOIN organisation o ON o.id = m.org_id
    WHERE m.person_id = $1 AND m.org_id > $2
    ORDER BY m.org_id
    LIMIT $3
"""
LIBRARY = """
    SELECT e.product_id, p.slug, p.title, e.granted_at, e.source, e.revoked_at, coalesce(i.hidden, 0), i.note,
        i.downloaded_version, i.downloaded_platform, i.downloaded_at
    FROM entitlement e
    JOIN product p ON p.id = e.product_id
    LEFT JOIN library_item i ON i.owner = e.owner AND i.product_id = e.product_id
    WHERE e.owner = $1 AND e.product_id > $2
    ORDER BY e.product_id
    LIMIT $3
"""
CODES = """
    SELECT r.code_hash, c.batch_id, r.redeemed_at
    FROM redemption r
    JOIN code c ON c.code_hash = r.code_hash
    WHERE r.owner = $1 AND r.code_hash > $2
    ORDER BY r.code_hash
    LIMIT $3
"""
FOLLOWS = """
    SELECT f.target_id, f.kind, coalesce(p.slug, o.slug), f.since
    FROM follow f
    LEFT JOIN product p ON f.kind = 'product' AND p.id = f.target_id
    LEFT JOIN organisation o ON f.kind = 'org' AND o.id = f.target_id
    WHERE f.owner = $1 AND f.target_id > $2
    ORDER BY f.target_id
    LIMIT $3
"""
COLLECTIONS = """
    SELECT id, name, created_at FROM product_collection WHERE owner = $1 ORDER BY name, id
"""
ITEMS = """
    SELECT i.product_id, p.slug, i.added_at
    FROM product_collection_item i
    JOIN product p ON p.id = i.product_id
    WHERE i.collection_id = $1 AND i.product_id > $2
    ORDER BY i.product_id
    LIMIT $3
"""
AGENTS = """
    SELECT id, kind, status, agent, email, issuer, address, scopes, created_at, claimed_at, used_at
    FROM registration
    WHERE person_id = $1 AND id > $2
    ORDER BY id
    LIMIT $3
"""
CONSENTS = """
    SELECT c.id, c.client_id, coalesce(o.name, d.name), c.scopes, c.sites, c.created_at, c.used_at
    FROM consent c
    LEFT JOIN oauth_client o ON o.id = c.client_id
    LEFT JOIN dynamic_client d ON d.id = c.client_id
    WHERE c.person_id = $1 AND c.id > $2
    ORDER BY c.id
    LIMIT $3
"""
IDENTITIES = """
    SELECT issuer || ' ' || subject, issuer, subject, created_at
    FROM delegation
    WHERE person_id = $1 AND issuer || ' ' || subject > $2
    ORDER BY 1
    LIMIT $3
"""
LINKS = """
    SELECT token_hash, created_at, expires_at, used_at
    FROM email_proof
    WHERE email = $1 AND token_hash > $2
    ORDER BY token_hash
    LIMIT $3
"""


class ExportedPerson(msgspec.Struct):
    """The account. `email_proven_at` is null until the address is proven."""

    id: Uuid
    email: str
    created_at: Moment
    email_proven_at: Moment | None
    has_password: bool


class ExportedRole(msgspec.Struct):
    """A role in an organisation."""

    org: str
    name: str
    role: str
    since: Moment


class ExportedLibraryItem(msgspec.Struct):
    """A product of the library, also one whose entitlement was revoked. `source` is the origin of the entitlement, such
    as `batch:` with the id of the batch of a code."""

    product: str
    title: str
    since: Moment
    source: str
    revoked_at: Moment | None
    hidden: bool
    note: str | None
    downloaded_version: str | None
    downloaded_platform: str | None
    downloaded_at: Moment | None


class ExportedCode(msgspec.Struct):
    """A redeemed code, by its batch. The code itself is not stored."""

    batch_id: Uuid
    redeemed_at: Moment


class ExportedFollow(msgspec.Struct):
    """A followed product or organisation."""

    type: Kind
    slug: str | None
    since: Moment


class ExportedCollectionItem(msgspec.Struct):
    """A product of a collection."""

    product: str
    added_at: Moment


class ExportedCollection(msgspec.Struct):
    """A collection with its products."""

    id: Uuid
    name: str
    created_at: Moment
    items: list[ExportedCollectionItem]


class ExportedAgent(msgspec.Struct):
    """An agent that registered for the person, also one whose access has ended. `address` is the IP address that it
    registered from."""

    id: str
    kind: str
    status: str
    name: str
    email: str | None
    issuer: str | None
    address: str
    scopes: list[str]
    created_at: Moment
    claimed_at: Moment | None
    last_used_at: Moment | None


class ExportedConsent(msgspec.Struct):
    """The scopes that the person allowed an OAuth client. A consent without scopes was revoked."""

    client_id: str
    name: str | None
    scopes: list[str]
    sites: list[str]
    created_at: Moment
    last_used_at: Moment | None


class ExportedIdentity(msgspec.Struct):
    """The person at an identity provider."""

    issuer: str
    subject: str
    since: Moment


class ExportedEmailLink(msgspec.Struct):
    """A link that was mailed to the address of the person."""

    created_at: Moment
    expires_at: Moment
    used_at: Moment | None


class OwnExport(msgspec.Struct):
    """Everything that the store keeps about the person, without secrets. Self-serve API keys belong to no person, and
    what a person published belongs to the organisation, so neither is part of it."""

    exported_at: Moment
    person: ExportedPerson
    notifications_seen_until: Moment | None
    sessions: list[OwnSession]
    roles: list[ExportedRole]
    library: list[ExportedLibraryItem]
    redeemed_codes: list[ExportedCode]
    follows: list[ExportedFollow]
    agents: list[ExportedAgent]
    consents: list[ExportedConsent]
    identities: list[ExportedIdentity]
    email_links: list[ExportedEmailLink]
    collections: list[ExportedCollection]


class _Section(NamedTuple):
    """A list of the document. `owner_kind` names the key that selects the person's rows, and `first_key` is lower than
    the key of every row."""

    name: str
    statement: str
    owner_kind: Literal["id", "owner", "email"]
    encode_row: Callable[[Row], object]
    first_key: str | bytes = ""


def _moment(instant: Instant | None) -> str | None:
    return None if instant is None else clock.rfc3339(instant)


def _role(row: Row) -> ExportedRole:
    _, slug, name, role, since = row
    return ExportedRole(slug, name, role, clock.rfc3339(since))


def _library_item(row: Row) -> ExportedLibraryItem:
    _, slug, title, granted_at, source, revoked_at, hidden, note, version, platform, downloaded_at = row
    return ExportedLibraryItem(
        product=slug,
        title=title,
        since=clock.rfc3339(granted_at),
        source=source,
        revoked_at=_moment(revoked_at),
        hidden=bool(hidden),
        note=note,
        downloaded_version=version,
        downloaded_platform=platform or None,
        downloaded_at=_moment(downloaded_at),
    )


def _code(row: Row) -> ExportedCode:
    _, batch_id, redeemed_at = row
    return ExportedCode(batch_id, clock.rfc3339(redeemed_at))


def _follow(row: Row) -> ExportedFollow:
    _, kind, slug, since = row
    return ExportedFollow(kind, slug, clock.rfc3339(since))


def _collection_item(row: Row) -> ExportedCollectionItem:
    _, slug, added_at = row
    return ExportedCollectionItem(slug, clock.rfc3339(added_at))


def _agent(row: Row) -> ExportedAgent:
    agent_id, kind, status, name, email, issuer, address, scope_words, created_at, claimed_at, used_at = row
    return ExportedAgent(
        id=agent_id,
        kind=kind,
        status=status,
        name=name,
        email=email,
        issuer=issuer,
        address=address,
        scopes=scope_words.split(),
        created_at=clock.rfc3339(created_at),
        claimed_at=_moment(claimed_at),
        last_used_at=_moment(used_at),
    )


def _consent(row: Row) -> ExportedConsent:
    _, client_id, name, scope_words, sites, created_at, used_at = row
    return ExportedConsent(
        client_id=client_id,
        name=name,
        scopes=scope_words.split(),
        sites=msgspec.json.decode(sites, type=list[str]),
        created_at=clock.rfc3339(created_at),
        last_used_at=_moment(used_at),
    )


def _identity(row: Row) -> ExportedIdentity:
    _, issuer, subject, since = row
    return ExportedIdentity(issuer, subject, clock.rfc3339(since))


def _email_link(row: Row) -> ExportedEmailLink:
    _, created_at, expires_at, used_at = row
    return ExportedEmailLink(clock.rfc3339(created_at), clock.rfc3339(expires_at), _moment(used_at))


SECTIONS = (
    _Section("roles", ROLES, "id", _role),
    _Section("library", LIBRARY, "owner", _library_item),
    _Section("redeemed_codes", CODES, "owner", _code, b""),
    _Section("follows", FOLLOWS, "owner", _follow),
    _Section("agents", AGENTS, "id", _agent),
    _Section("consents", CONSENTS, "id", _consent),
    _Section("identities", IDENTITIES, "id", _identity),
    _Section("email_links", LINKS, "email", _email_link, b""),
)
_COLLECTION_ITEMS = _Section("items", ITEMS, "id", _collection_item)


async def export_own_data(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Export everything that the store keeps about the caller, as one JSON document."""
    store, caller, current = call.context, call.caller, current_session(call.caller)
    row = await store.database.fetch_one(PERSON, caller.id)
    if row is None:
        raise SessionRequired("the account was removed")
    person_id, email, created_at, proven_at, has_password = row
    person = ExportedPerson(person_id, email, clock.rfc3339(created_at), _moment(proven_at), bool(has_password))
    seen_until = await seen_at(store.database, caller.owner)
    head: dict[str, Any] = {
        "exported_at": clock.rfc3339(clock.now()),
        "person": person,
        "notifications_seen_until": _moment(seen_until or None),
        "sessions": await sessions_of(store.database, store.uses, caller.id, current, MAX_EXPORTED_SESSIONS),
    }
    keys = {"id": caller.id, "owner": caller.owner, "email": email}
    headers = (*PRIVATE, ("Content-Disposition", 'attachment; filename="countersign-account.json"'))
    return Response(200, _document(store, encode(head), keys), headers=headers)


async def _document(store: Store, head: bytes, keys: dict[str, str]) -> AsyncIterator[bytes]:
    yield head[:-1]
    for section in SECTIONS:
        yield b',"%b":[' % section.name.encode()
        async for part in _section_items(store.database, section, keys[section.owner_kind]):
            yield part
        yield b"]"
    yield b',"collections":['
    separator = b""
    for collection_id, name, created_at in await store.database.scan(COLLECTIONS, keys["owner"]):
        collection = {"id": collection_id, "name": name, "created_at": clock.rfc3339(created_at)}
        yield separator + encode(collection)[:-1] + b',"items":['
        async for part in _section_items(store.database, _COLLECTION_ITEMS, collection_id):
            yield part
        yield b"]}"
        separator = b","
    yield b"]}"


async def _section_items(database: Database, section: _Section, owner_key: str) -> AsyncIterator[bytes]:
    """The items of a section, page by page, separated by commas."""
    key, separator = section.first_key, b""
    while rows := await database.scan(section.statement, owner_key, key, PAGE_ROWS):
        yield separator + b",".join(encode(section.encode_row(row)) for row in rows)
        key, separator = rows[-1][0], b","


ROUTES = (
    route(
        "GET",
        "/me/export",
        export_own_data,
        answers={200: OwnExport},
        refusals=(SessionRequired,),
        scope=READ_LIBRARY,
        sends={200: ("Cache-Control", "Content-Disposition")},
    ),
)
