"""Consents of people to OAuth clients, and their authorization codes (RFC 6749 §4.1, RFC 7636, RFC 9700)."""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database import versions
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import InvalidRequest
from countersign.kernel.security import secrets
from countersign.store import scopes
from countersign.store.auth import queries, tokens
from countersign.store.auth.agents.registrations import InvalidGrant
from countersign.store.auth.queries import Client, Grant
from countersign.store.auth.schemas import TokenRequest, TokenResponse
from countersign.store.context import Store

SELECT_CONSENT = "SELECT id, scopes, sites FROM consent WHERE person_id = $1 AND client_id = $2"
# Locks the row, so that a concurrent revocation happens either before or after this transaction.
LOCK_CONSENT = "UPDATE consent SET used_at = used_at WHERE person_id = $1 AND client_id = $2"
INSERT_CONSENT = """
    INSERT INTO consent (id, person_id, client_id, scopes, generation, created_at)
    VALUES ($1, $2, $3, '', 1, $4)
    ON CONFLICT DO NOTHING
"""
WIDEN_CONSENT = """
    UPDATE consent
    SET scopes = $2, sites = $3, created_at = CASE WHEN scopes = '' THEN $4 ELSE created_at END
    WHERE id = $1
"""
REVOKE_CONSENT = """
    UPDATE consent SET scopes = '', sites = '[]', generation = generation + 1
    WHERE id = $1 AND person_id = $2 AND scopes <> ''
"""
REVOKE_EVERY_CONSENT = "UPDATE consent SET scopes = '', sites = '[]', generation = generation + 1 WHERE scopes <> ''"
END_EVERY_CODE = "DELETE FROM authorization_code"
END_CODES = "DELETE FROM authorization_code WHERE consent_id = $1"
SET_USED_AT = "UPDATE consent SET used_at = $2 WHERE id = $1 AND (used_at IS NULL OR used_at < $2)"
CLIENTS_OF_PERSON = """
    SELECT c.id, coalesce(o.name, d.name), coalesce(n.name, ''), coalesce(d.redirect_uris, '[]'), c.sites, c.scopes,
        c.created_at, c.used_at
    FROM consent c
    LEFT JOIN oauth_client o ON o.id = c.client_id
    LEFT JOIN organisation n ON n.id = o.org_id
    LEFT JOIN dynamic_client d ON d.id = c.client_id
    WHERE c.person_id = $1 AND c.scopes <> '' AND coalesce(o.id, d.id) IS NOT NULL
    ORDER BY c.created_at DESC, c.id DESC
    LIMIT 200
"""


class Consent(NamedTuple):
    """The scopes that a person allows a client, and the sites that the person was redirected to. A consent without
    scopes is revoked."""

    id: str
    scopes: frozenset[str]
    sites: tuple[str, ...]


class ConnectedClient(NamedTuple):
    """A client that can act for a person, as the page of connected agents shows it. A dynamic client has no
    organisation. `sites` contains the sites that the person was redirected to. It is empty for old consents, which were
    given before sites were stored; the person was then redirected to one of `redirect_uris`."""

    id: str
    client: str
    organisation: str
    redirect_uris: tuple[str, ...]
    sites: tuple[str, ...]
    scopes: frozenset[str]
    created_at: Instant
    used_at: Instant | None


async def find_consent(transaction: Transaction, person_id: str, client_id: str) -> Consent | None:
    """The person's consent to the client, locked until the transaction ends."""
    await transaction.run(LOCK_CONSENT, person_id, client_id)
    row = await transaction.fetch_one(SELECT_CONSENT, person_id, client_id)
    return None if row is None else Consent(row[0], frozenset(row[1].split()), _sites(row[2]))


async def allow(
    transaction: Transaction, person_id: str, client_id: str, scopes_to_allow: frozenset[str], *, site: str
) -> Consent:
    """Add scopes and the site of the redirect to the person's consent to the client."""
    now = clock.now()
    fresh_id = queries.CONSENT_PREFIX + ids.new_uuid().replace("-", "")
    await transaction.run(INSERT_CONSENT, fresh_id, person_id, client_id, now)
    existing_consent = await find_consent(transaction, person_id, client_id)
    if existing_consent is None:
        raise LookupError("the consent was not stored")
    granted_scopes = existing_consent.scopes | scopes_to_allow
    # If the consent was given before sites were stored, do not add a site: the list would be incomplete.
    has_unknown_sites = bool(existing_consent.scopes) and not existing_consent.sites
    sites = () if has_unknown_sites else tuple(sorted({*existing_consent.sites, site}))
    await transaction.run(
        WIDEN_CONSENT, existing_consent.id, scopes.words(granted_scopes), msgspec.json.encode(sites).decode(), now
    )
    return Consent(existing_consent.id, granted_scopes, sites)


async def revoke(transaction: Transaction, consent_id: str, person_id: str) -> bool:
    """Revoke a consent of the person: its codes and tokens become invalid at once on every worker. Return False if the
    consent belongs to another person, or was revoked before."""
    if not await transaction.run(REVOKE_CONSENT, consent_id, person_id):
        return False
    await transaction.run(END_CODES, consent_id)
    await versions.bump(transaction, "identity")
    return True


async def revoke_all(transaction: Transaction) -> None:
    """Revoke every consent, so that each person must allow each client again."""
    await transaction.run(REVOKE_EVERY_CONSENT)
    await transaction.run(END_EVERY_CODE)
    await versions.bump(transaction, "identity")


async def connected_clients(reader: Reader, person_id: str) -> list[ConnectedClient]:
    """The clients that can act for a person, newest first; 200 at most."""
    rows = await reader.fetch(CLIENTS_OF_PERSON, person_id)
    return [
        ConnectedClient(
            consent_id,
            client,
            organisation,
            _sites(uris),
            _sites(sites),
            frozenset(scope_words.split()),
            created_at,
            used_at,
        )
        for consent_id, client, organisation, uris, sites, scope_words, created_at, used_at in rows
    ]


def _sites(stored_sites: str) -> tuple[str, ...]:
    return msgspec.json.decode(stored_sites, type=tuple[str, ...])


async def record_uses(transaction: Transaction, uses: Mapping[str, Instant]) -> None:
    """Store when consents were last used; other ids are skipped."""
    for consent_id, used_at in uses.items():
        if consent_id.startswith(queries.CONSENT_PREFIX):
            await transaction.run(SET_USED_AT, consent_id, used_at)


CODE_VALID_S = 60
# A code that is sent again revokes the token that was issued for it, so a code is stored for as long as its token can
# be valid.
CODE_REMEMBERED_S = 86_400

INSERT_CODE = """
    INSERT INTO authorization_code (code_hash, client_id, consent_id, redirect_uri, challenge, scopes, token_jti,
        auth_time, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""
SPEND_CODE = "UPDATE authorization_code SET used_at = $2 WHERE code_hash = $1 AND used_at IS NULL"
SELECT_CODE = """
    SELECT client_id, consent_id, redirect_uri, challenge, scopes, token_jti, auth_time, expires_at
    FROM authorization_code
    WHERE code_hash = $1
"""
DELETE_OLD_CODES = "DELETE FROM authorization_code WHERE expires_at <= $1"

_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_INVALID_CODE = "the code is unknown, used, expired, or was issued to another client"


class AuthorizationCode(NamedTuple):
    """A stored code. `token_jti` is the id of the token that is issued for the code. The id is chosen beforehand, so
    that a replay of the code can revoke the token."""

    client_id: str
    consent_id: str
    redirect_uri: str
    challenge: str
    scopes: str
    token_jti: str
    auth_time: Instant
    expires_at: Instant


async def issue_code(
    transaction: Transaction,
    client: Client,
    consent_id: str,
    granted_scopes: frozenset[str],
    *,
    redirect_uri: str,
    challenge: str,
    auth_time: Instant,
) -> str:
    """Issue a code for the granted scopes that is valid for a minute. Only the hash of the code is stored. `challenge`
    is the S256 challenge of the request."""
    code = secrets.new_secret("cac")
    expires_at = clock.later(clock.now(), seconds=CODE_VALID_S)
    stored_code = AuthorizationCode(
        client.id,
        consent_id,
        redirect_uri,
        challenge,
        scopes.words(granted_scopes),
        ids.new_uuid(),
        auth_time,
        expires_at,
    )
    await transaction.run(INSERT_CODE, secrets.digest(code), *stored_code)
    return code


async def exchange_code(store: Store, client: Client, request: TokenRequest) -> TokenResponse:
    """Exchange a code for an access token. The code becomes invalid even if this call fails. A replayed code revokes
    the token that was issued for it (RFC 6749 §4.1.2, §10.5).

    Raises:
        InvalidRequest: the code is missing.
        InvalidGrant: the code is unknown, used or expired, belongs to another client or redirect_uri, or the
            verifier is wrong.
        InvalidScope: the person no longer has a granted scope, or has revoked the consent.
    """
    if request.code is None:
        raise InvalidRequest("code is required", resolution="Send the code of the redirect.")
    async with store.database.transaction() as transaction:
        outcome = await _use_code(store, transaction, client, request)
    # Raise the error outside the transaction. Otherwise the transaction would roll back the use of the code.
    if isinstance(outcome, InvalidGrant):
        raise outcome
    code, grant = outcome
    token_scopes = tokens.granted_scopes(code.scopes, await tokens.scopes_of_grant(store.database, grant))
    auth_time_s = code.auth_time // clock.SECOND
    token, _ = tokens.issue_for_grant(
        store, str(grant.person_id), client.id, token_scopes, grant, auth_time_s, jti=code.token_jti
    )
    return TokenResponse(token, "Bearer", store.settings.token_ttl_s, scopes.words(token_scopes))


async def forget_old_codes(transaction: Transaction) -> int:
    """Remove codes whose tokens have expired; return their number."""
    return await transaction.run(DELETE_OLD_CODES, clock.later(clock.now(), seconds=-CODE_REMEMBERED_S))


async def _use_code(
    store: Store, transaction: Transaction, client: Client, request: TokenRequest
) -> tuple[AuthorizationCode, Grant] | InvalidGrant:
    """Mark the code as used. Return the code with its consent, or the error."""
    name = secrets.digest(request.code or "")
    is_first = await transaction.run(SPEND_CODE, name, clock.now())
    row = await transaction.fetch_one(SELECT_CODE, name)
    if row is None:
        return InvalidGrant(_INVALID_CODE)
    code = AuthorizationCode(*row)
    if not is_first:
        ends_at = clock.later(clock.now(), seconds=store.settings.token_ttl_s)
        await queries.revoke_token(transaction, code.token_jti, ends_at)
        return InvalidGrant(_INVALID_CODE)
    grant = await queries.grant(transaction, code.consent_id)
    error = _code_error(code, client, request)
    if error is not None or grant is None or not grant.scopes:
        return InvalidGrant(error or _INVALID_CODE)
    await record_uses(transaction, {grant.id: clock.now()})
    return code, grant


def _code_error(code: AuthorizationCode, client: Client, request: TokenRequest) -> str | None:
    if code.client_id != client.id or clock.now() >= code.expires_at:
        return _INVALID_CODE
    if request.redirect_uri != code.redirect_uri:
        return "redirect_uri is not the one that the code was issued for"
    if not _matches_challenge(request.code_verifier or "", code.challenge):
        return "code_verifier does not match the challenge"
    return None


def _matches_challenge(verifier: str, challenge: str) -> bool:
    """Whether the challenge is the SHA-256 of the verifier (RFC 7636 §4.6)."""
    if _VERIFIER.fullmatch(verifier) is None:
        return False
    computed_challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    return hmac.compare_digest(computed_challenge, challenge)
