"""The exchange of assertions for access tokens (RFC 7521, RFC 7523; ID-JAG at the token endpoint)."""

from countersign.distribution.agents import assertions, register, rules
from countersign.distribution.agents.assertions import InvalidGrant
from countersign.distribution.agents.register import Waiting
from countersign.distribution.agents.registrations import Applicant, Registration
from countersign.distribution.context import Store
from countersign.distribution.identity import queries, scopes, tokens
from countersign.distribution.identity.queries import Client, Grant
from countersign.distribution.identity.schemas import TokenResponse
from countersign.distribution.issuers import id_jag
from countersign.kernel.database.port import Reader
from countersign.kernel.errors import Refused


async def own_assertion(store: Store, assertion: str, scope: str | None) -> TokenResponse:
    """An access token for an assertion of this service; it may be exchanged again until it expires.

    Raises:
        InvalidGrant: it does not hold, or its registration was claimed anew, revoked or removed since.
        InvalidScope: a scope the registration does not hold.
    """
    claims = assertions.read(store, assertion)
    grant = await queries.grant(store.database, claims.sub)
    if grant is None or not grant.is_live or grant.generation != claims.gen:
        raise InvalidGrant("the registration behind the assertion has ended or was claimed since")
    return token_of(store, grant, tokens.requested(scope, await tokens.held_through(store.database, grant)))


async def foreign_assertion(store: Store, assertion: str, client: Client, scope: str | None) -> TokenResponse:
    """An access token for a trusted provider's ID-JAG, presented by the client it was made for.

    Raises:
        InvalidGrant: the assertion does not hold, is another client's, was used, is stale, or its person has to
            confirm first, which registration offers.
        InvalidScope: a scope that it does not carry or the person does not hold.
    """
    try:
        believed = await id_jag.verified(store, assertion)
        if believed.client_id != client.id:
            raise InvalidGrant("the assertion was made for another client")
        id_jag.require_fresh(believed)
        wanted = register.asserted_scopes(believed, scope) & client.scopes
        if not wanted:
            raise tokens.InvalidScope("the client holds none of the scopes asked for")
        applicant = Applicant(rules.name_of(client.name), "", wanted)
        outcome = await register.admit(store, believed, applicant)
    except (InvalidGrant, tokens.InvalidScope):
        raise
    except Refused as refused:
        if refused.status >= 500:
            raise
        raise InvalidGrant(refused.detail, resolution=refused.remedy) from refused
    if isinstance(outcome, Waiting):
        remedy = "Register with the assertion at /api/v1/auth/register: the person confirms there once."
        raise InvalidGrant("the person has to confirm the agent first", resolution=remedy)
    grant = await of_registration(store.database, outcome)
    granted = tokens.requested(scopes.words(wanted), await tokens.held_through(store.database, grant))
    return token_of(store, grant, granted, client_id=client.id, auth_time_s=believed.auth_time_s)


async def of_registration(reader: Reader, registration: Registration) -> Grant:
    """What a registration gives at this moment.

    Raises:
        InvalidGrant: it has ended.
    """
    grant = await queries.grant(reader, registration.id)
    if grant is None or not grant.is_live:
        raise InvalidGrant("the registration has ended")
    return grant


def token_of(
    store: Store,
    grant: Grant,
    granted: frozenset[str],
    *,
    client_id: str | None = None,
    auth_time_s: int | None = None,
) -> TokenResponse:
    """A fresh access token of a registration; of an OAuth client that presented the assertion, it is the client's and
    ends with it."""
    subject = grant.person_id or grant.id
    token, _ = tokens.issue_through(store, subject, client_id or grant.id, granted, grant, auth_time_s)
    return TokenResponse(token, "Bearer", store.settings.token_ttl_s, scopes.words(granted))
