"""Trusted issuers: the list that the operator edits, their keys, and the tokens of theirs that were used."""

import hashlib
from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from countersign.kernel import clock, safe_http_client, telemetry
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Row, Transaction
from countersign.kernel.errors import InvalidRequest, NotFound, Refused, Unavailable
from countersign.kernel.safe_http_client import Document
from countersign.kernel.security import external_jwt
from countersign.kernel.security.external_jwt import CannotFetchKeySet, ExternalToken, JwksCache, PublicKey
from countersign.settings import Settings
from countersign.store.context import Store


class Issuer(NamedTuple):
    """An identity provider whose assertions are believed. Without `client_ids` it may speak to every client, without
    `domains` for e-mail addresses of every domain."""

    issuer: str
    name: str
    jwks_uri: str
    algorithms: frozenset[str]
    client_ids: frozenset[str]
    domains: frozenset[str]
    created_at: Instant


ISSUER = """
    SELECT issuer, name, jwks_uri, algorithms, client_ids, domains, created_at
    FROM trusted_issuer
    WHERE issuer = $1
"""
ISSUERS = """
    SELECT issuer, name, jwks_uri, algorithms, client_ids, domains, created_at
    FROM trusted_issuer
    ORDER BY issuer
    LIMIT 1000
"""
INSERT_ISSUER = """
    INSERT INTO trusted_issuer (issuer, name, jwks_uri, algorithms, client_ids, domains, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT DO NOTHING
"""
DELETE_ISSUER = "DELETE FROM trusted_issuer WHERE issuer = $1"
INSERT_SEEN = """
    INSERT INTO seen_token (kind, issuer, jti_hash, expires_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
"""
DELETE_OLD_SEEN = "DELETE FROM seen_token WHERE expires_at <= $1"


async def issuer(reader: Reader, name: str) -> Issuer | None:
    """The trusted issuer of exactly this identifier, character by character."""
    row = await reader.fetch_one(ISSUER, name)
    return None if row is None else _issuer(row)


async def issuers(reader: Reader) -> list[Issuer]:
    """Every trusted issuer, in the order of their identifiers; 1,000 at most."""
    return [_issuer(row) for row in await reader.fetch(ISSUERS)]


async def insert_issuer(transaction: Transaction, made: Issuer) -> bool:
    """Trust an issuer; False when one of this identifier is trusted already, which stays as it was."""
    lists = [_stored(each) for each in (made.algorithms, made.client_ids, made.domains)]
    return bool(
        await transaction.run(INSERT_ISSUER, made.issuer, made.name, made.jwks_uri, *lists, int(made.created_at))
    )


def _stored(words: frozenset[str]) -> str:
    return msgspec.json.encode(sorted(words)).decode()


def _issuer(row: Row) -> Issuer:
    identifier, name, jwks_uri, *lists, created_at = row
    algorithms, client_ids, domains = (frozenset(msgspec.json.decode(each, type=list[str])) for each in lists)
    return Issuer(identifier, name, jwks_uri, algorithms, client_ids, domains, Instant(created_at))


async def forget_old_tokens(transaction: Transaction) -> int:
    """Forget used tokens that nobody would accept any more; how many there were."""
    return await transaction.run(DELETE_OLD_SEEN, clock.now())


USUAL_ALGORITHMS = ("ES256", "RS256")
MAX_ISSUER_LENGTH = 255
MAX_NAME_LENGTH = 80


class IssuerExists(Refused):
    """An issuer of this identifier is trusted already; it was not changed."""

    status = 409
    code = "issuer_exists"
    title = "Issuer exists"
    resolution = "Remove it first to say something else of it: countersign issuers remove ISSUER"


class IssuerNotFound(NotFound):
    """No issuer of this identifier is trusted."""

    resolution = "See which ones are: countersign issuers list"


async def add(
    transaction: Transaction,
    store: Store,
    issuer: str,
    *,
    name: str,
    jwks_uri: str,
    algorithms: Iterable[str] = (),
    client_ids: Iterable[str] = (),
    domains: Iterable[str] = (),
) -> Issuer:
    """Believe what this issuer asserts from now on, on every worker; without algorithms with ES256 and RS256.

    `name` is what people see on the claim page. Tokens are matched with `issuer` character by character.

    Raises:
        InvalidRequest: issuer or address of its keys is no https address (http where COUNTERSIGN_PRIVATE_ISSUERS
            allows it), the issuer is this store itself, the name is blank or long, an algorithm is not supported, a
            domain is none.
        IssuerExists: it is trusted already.
    """
    made = Issuer(
        _identifier(store, issuer),
        _name(name),
        _address("the address of the keys", jwks_uri, store),
        _algorithms(algorithms),
        frozenset(client_ids),
        frozenset(map(_domain, domains)),
        clock.now(),
    )
    if not await insert_issuer(transaction, made):
        raise IssuerExists(f"{issuer} is trusted already")
    return made


async def remove(transaction: Transaction, issuer: str) -> None:
    """Believe nothing of this issuer any more, on every worker; what was registered through it, the caller ends.

    Raises:
        IssuerNotFound: it was not trusted.
    """
    if not await transaction.run(DELETE_ISSUER, issuer):
        raise IssuerNotFound(f"{issuer[:MAX_ISSUER_LENGTH]} is not trusted")


def _address(what: str, url: str, store: Store) -> str:
    try:
        safe_http_client.address(url, private=store.settings.private_issuers)
    except ValueError as error:
        raise InvalidRequest(f"{what}: {error}", resolution="") from error
    return url


def _identifier(store: Store, issuer: str) -> str:
    """An issuer identifier is an address without a query (RFC 8414 §2)."""
    _address("the issuer", issuer, store)
    if "?" in issuer or len(issuer) > MAX_ISSUER_LENGTH:
        raise InvalidRequest(f"the issuer has no query and {MAX_ISSUER_LENGTH} characters at most", resolution="")
    if issuer.rstrip("/") == store.root_url:
        raise InvalidRequest("the issuer is this store itself, whose own tokens are verified otherwise", resolution="")
    return issuer


def _name(name: str) -> str:
    if not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise InvalidRequest(f"the name has 1 to {MAX_NAME_LENGTH} printable characters", resolution="")
    return name.strip()


def _algorithms(given: Iterable[str]) -> frozenset[str]:
    wanted = frozenset(given) or frozenset(USUAL_ALGORITHMS)
    unknown = sorted(wanted - frozenset(external_jwt.ALGORITHMS))
    if unknown:
        raise InvalidRequest(f"{unknown[0]} is none of {', '.join(external_jwt.ALGORITHMS)}", resolution="")
    return wanted


def _domain(domain: str) -> str:
    made = domain.strip().lower()
    if not made or not made.isascii() or "@" in made or "." not in made.strip(".") or made.split() != [made]:
        raise InvalidRequest(f"{domain} is no e-mail domain, like example.com", resolution="")
    return made


def key_sets(settings: Settings) -> JwksCache:
    """An empty cache of key sets; COUNTERSIGN_PRIVATE_ISSUERS says whether they may come from a private network."""

    async def fetch(address: str) -> Document:
        try:
            return await safe_http_client.get_json(address, private=settings.private_issuers)
        except safe_http_client.Unreachable as error:
            raise CannotFetchKeySet(str(error)) from error

    return JwksCache(fetch)


async def key_of(store: Store, trusted: Issuer, token: ExternalToken) -> PublicKey | None:
    """The issuer's key that the token's header means, if its algorithm is allowed to the issuer.

    Raises:
        Unavailable: the issuer's keys cannot be had now. Why is in the log: an answer that told it would let a
            stranger look around in our network.
    """
    if token.algorithm not in trusted.algorithms:
        return None
    try:
        return await store.key_sets.key(trusted.jwks_uri, token.algorithm, token.kid)
    except CannotFetchKeySet as error:
        telemetry.logger("issuers").warning("keys cannot be fetched", issuer=trusted.issuer, reason=str(error))
        raise Unavailable("the keys of the token's issuer cannot be had at the moment") from error


async def note(
    transaction: Transaction, kind: Literal["id-jag", "event"], issuer: str, jti: str, expires_at: Instant
) -> bool:
    """Note the token's use; False when it was used before. Of two at the same moment one is first: the other waits
    for its transaction to end."""
    digest = hashlib.sha256(jti.encode()).digest()
    return bool(await transaction.run(INSERT_SEEN, kind, issuer, digest, expires_at))
