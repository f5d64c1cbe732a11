"""GET and POST /api/keys, below the versioned address and at the root (API document; decisions 8)."""

from typing import Literal

from countersign.distribution.context import Store
from countersign.distribution.identity.callers import StoreRequest
from countersign.distribution.identity.provisioned import KEY_PREFIXES
from countersign.distribution.keys import queries
from countersign.distribution.keys.schemas import KeyQuery, ProvisionedKey
from countersign.kernel.http import response
from countersign.kernel.http.rate_limit import DOCUMENTS, RateLimited
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, Route, route
from countersign.kernel.security.secrets import digest, new_secret

WINDOW_S = 3600


async def provision_key(call: StoreRequest[KeyQuery, Nothing]) -> Response:
    """Provision a key: `community` for public reads, `agent` for those and the sandbox, `sandbox` for that alone."""
    store = call.context
    standing = await store.counters.hit(f"keys\0{call.address}", store.settings.rate_keys, WINDOW_S)
    if not standing.allowed:
        raise RateLimited(f"more than {standing.limit} keys in an hour; a key you have can be used again", standing)
    key = new_secret(KEY_PREFIXES[call.query.tier])
    async with store.database.transaction() as transaction:
        await queries.add(transaction, digest(key), call.query.tier)
    return response.json(ProvisionedKey("provisioned", key, self_serve=True, free_tier=True))


def _route(method: Literal["GET", "POST"], *, at_root: bool) -> Route[Store]:
    return route(
        method,
        "/api/keys",
        provision_key,
        query=KeyQuery,
        answers={200: ProvisionedKey},
        secret=True,
        quota=DOCUMENTS,
        documented=method == "GET" and not at_root,
        at_root=at_root,
    )


ROUTES = tuple(_route(method, at_root=at_root) for at_root in (False, True) for method in ("GET", "POST"))
