"""SQL of trusted issuers and of the tokens of theirs that were used."""

from typing import NamedTuple

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Row, Transaction


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
