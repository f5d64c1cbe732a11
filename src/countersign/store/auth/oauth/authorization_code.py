"""The authorization-code grant: a code that a person's consent gave, spent once (RFC 6749 §4.1, RFC 7636, RFC 9700)."""

import base64
import hashlib
import hmac
import re
from typing import NamedTuple

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import InvalidRequest
from countersign.kernel.security import secrets
from countersign.store import scopes
from countersign.store.auth import queries, tokens
from countersign.store.auth.agents.registrations import InvalidGrant
from countersign.store.auth.oauth import consents
from countersign.store.auth.oauth.schemas import TokenRequest
from countersign.store.auth.queries import Client, Grant
from countersign.store.auth.schemas import TokenResponse
from countersign.store.context import Store

VALID_S = 60
# A used code that comes back ends its token; kept while that could still live.
REMEMBERED_S = 86_400

INSERT = """
    INSERT INTO authorization_code (code_hash, client_id, consent_id, redirect_uri, challenge, scopes, token_jti,
        auth_time, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""
SPEND = "UPDATE authorization_code SET used_at = $2 WHERE code_hash = $1 AND used_at IS NULL"
CODE = """
    SELECT client_id, consent_id, redirect_uri, challenge, scopes, token_jti, auth_time, expires_at
    FROM authorization_code
    WHERE code_hash = $1
"""
FORGET = "DELETE FROM authorization_code WHERE expires_at <= $1"

_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_NOT_HELD = "the code is unknown, used, expired, or was given to another client"


class Code(NamedTuple):
    """A code as it is stored; `token_jti` is the id of the token that it gives, chosen beforehand so that the code's
    second coming can end that token."""

    client_id: str
    consent_id: str
    redirect_uri: str
    challenge: str
    scopes: str
    token_jti: str
    auth_time: Instant
    expires_at: Instant


async def give(
    transaction: Transaction,
    client: Client,
    consent_id: str,
    granted: frozenset[str],
    *,
    redirect_uri: str,
    challenge: str,
    auth_time: Instant,
) -> str:
    """A code for what was granted, valid for a minute; only its hash is kept. `challenge` is that of S256."""
    code = secrets.new_secret("cac")
    expires_at = clock.later(clock.now(), seconds=VALID_S)
    kept = Code(
        client.id, consent_id, redirect_uri, challenge, scopes.words(granted), ids.new_uuid(), auth_time, expires_at
    )
    await transaction.run(INSERT, secrets.digest(code), *kept)
    return code


async def exchange(store: Store, client: Client, request: TokenRequest) -> TokenResponse:
    """An access token for a code. Whatever comes of it, the code is spent; one that was spent before ends the token it
    gave (RFC 6749 §4.1.2, §10.5).

    Raises:
        InvalidRequest: no code.
        InvalidGrant: unknown, spent, expired, another client's, for another redirect_uri, or with a wrong verifier.
        InvalidScope: the person has lost a scope since, or taken it back.
    """
    if request.code is None:
        raise InvalidRequest("code is required", resolution="Send the code you were called back with.")
    async with store.database.transaction() as transaction:
        found = await _spent(store, transaction, client, request)
    # Raised here, since inside it would give the code back.
    if isinstance(found, InvalidGrant):
        raise found
    code, grant = found
    granted = tokens.requested(code.scopes, await tokens.held_through(store.database, grant))
    auth_time_s = code.auth_time // clock.SECOND
    token, _ = tokens.issue_through(
        store, str(grant.person_id), client.id, granted, grant, auth_time_s, jti=code.token_jti
    )
    return TokenResponse(token, "Bearer", store.settings.token_ttl_s, scopes.words(granted))


async def forget_old(transaction: Transaction) -> int:
    """Remove codes whose tokens have ended since; how many there were."""
    return await transaction.run(FORGET, clock.later(clock.now(), seconds=-REMEMBERED_S))


async def _spent(
    store: Store, transaction: Transaction, client: Client, request: TokenRequest
) -> tuple[Code, Grant] | InvalidGrant:
    """The code and the consent behind it, once."""
    name = secrets.digest(request.code or "")
    is_first = await transaction.run(SPEND, name, clock.now())
    row = await transaction.fetch_one(CODE, name)
    if row is None:
        return InvalidGrant(_NOT_HELD)
    code = Code(*row)
    if not is_first:
        ends_at = clock.later(clock.now(), seconds=store.settings.token_ttl_s)
        await queries.revoke_token(transaction, code.token_jti, ends_at)
        return InvalidGrant(_NOT_HELD)
    grant = await queries.grant(transaction, code.consent_id)
    fault = _fault(code, client, request)
    if fault is not None or grant is None or not grant.scopes:
        return InvalidGrant(fault or _NOT_HELD)
    await consents.record_uses(transaction, {grant.id: clock.now()})
    return code, grant


def _fault(code: Code, client: Client, request: TokenRequest) -> str | None:
    if code.client_id != client.id or clock.now() >= code.expires_at:
        return _NOT_HELD
    if request.redirect_uri != code.redirect_uri:
        return "redirect_uri is not the one the code was given for"
    if not _is_proof(request.code_verifier or "", code.challenge):
        return "code_verifier does not fit the challenge"
    return None


def _is_proof(verifier: str, challenge: str) -> bool:
    """Whether the verifier's SHA-256 is the challenge (RFC 7636 §4.6)."""
    if _VERIFIER.fullmatch(verifier) is None:
        return False
    made = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    return hmac.compare_digest(made, challenge)
