"""/org/signing-keys: the keys an organisation's builds are signed with, for admin:org."""

from countersign.distribution.auth.callers import StoreRequest
from countersign.distribution.auth.organisations import organisation_of
from countersign.distribution.auth.schemas import OrgQuery
from countersign.distribution.signing import keys, queries
from countersign.distribution.signing.keys import KeyJustRotated
from countersign.kernel.http import response
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route
from countersign.updates.wire import PublicKey

ADMIN = "admin:org"


async def list_signing_keys(call: StoreRequest[OrgQuery, Nothing]) -> Response:
    """List the organisation's signing keys, oldest first; the last one signs."""
    found = await organisation_of(call.context.database, call.caller, call.query.org, ADMIN)
    listed, _ = await queries.chain(call.context.database, found.id)
    return response.json(listed)


async def rotate_signing_key(call: StoreRequest[OrgQuery, Nothing]) -> Response:
    """Sign with a fresh key, named by the one before it; those who trust that one go on without a word."""
    found = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    return response.json(await keys.rotate(call.transaction, call.context, found.id, found.slug), 201)


ROUTES = (
    route("GET", "/org/signing-keys", list_signing_keys, query=OrgQuery, answers={200: list[PublicKey]}, scope=ADMIN),
    route(
        "POST",
        "/org/signing-keys",
        rotate_signing_key,
        query=OrgQuery,
        answers={201: PublicKey},
        refusals=(KeyJustRotated,),
        scope=ADMIN,
        writes=True,
    ),
)
