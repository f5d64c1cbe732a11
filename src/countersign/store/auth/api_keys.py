"""Self-serve API keys, which anyone can create without an account: format, storage, and GET and POST /api/keys."""

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database import versions
from countersign.kernel.database.port import Transaction
from countersign.kernel.http import response
from countersign.kernel.http.rate_limit import DOCUMENTS, RateLimited
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, Route, route
from countersign.kernel.security.secrets import digest, looks_like_secret, new_secret
from countersign.store.auth import queries
from countersign.store.auth.callers import Caller, StoreRequest
from countersign.store.context import Store

Tier: TypeAlias = Literal["community", "sandbox", "agent"]

KEY_PREFIXES: dict[Tier, str] = {"community": "csk_community", "sandbox": "csk_sandbox", "agent": "csk_agent"}
PREFIX = "key_"
"""The prefix of a key's id. The hash of the key follows. The last use of a key is recorded under this id."""


class ApiKey(NamedTuple):
    """A valid key. `id` identifies the key, but does not disclose the key itself."""

    id: str
    tier: Tier

    @property
    def caller(self) -> Caller:
        """Return the caller of a request with this key. The caller is not a person, and has no scopes."""
        quota = "agent" if self.tier == "agent" else "community"
        return Caller("key", self.id, granted_quota=quota)


def is_api_key(credential: str) -> bool:
    """Whether the credential is a self-serve key instead of a token, according to its prefix."""
    return credential.startswith(tuple(f"{prefix}_" for prefix in KEY_PREFIXES.values()))


async def find_key(store: Store, credential: str) -> ApiKey | None:
    """Return the key, or None if the key is mistyped or unknown, or has expired because it was not used. The checksum
    detects a mistyped key without a query."""
    if not is_api_key(credential) or not looks_like_secret(credential):
        return None
    key_hash = digest(credential)
    alive_since = clock.later(clock.now(), seconds=-86_400 * store.settings.key_days)
    tier = await queries.tier_of_key(store.database, key_hash, alive_since)
    return None if tier is None else ApiKey(PREFIX + key_hash.hex(), tier)


INSERT = "INSERT INTO api_key (key_hash, tier, created_at, used_at) VALUES ($1, $2, $3, $3)"
SET_USED_AT = "UPDATE api_key SET used_at = $2 WHERE key_hash = $1 AND used_at < $2"
DELETE_UNUSED = "DELETE FROM api_key WHERE used_at <= $1"


async def add_key(transaction: Transaction, key_hash: bytes, tier: Tier) -> None:
    """Store the hash of a new key."""
    await transaction.run(INSERT, key_hash, tier, clock.now())


async def record_uses(transaction: Transaction, uses: Mapping[str, Instant]) -> None:
    """Store when keys were last used; other ids are skipped."""
    for key_id, used_at in uses.items():
        if key_id.startswith(PREFIX):
            await transaction.run(SET_USED_AT, bytes.fromhex(key_id.removeprefix(PREFIX)), used_at)


async def delete_unused(transaction: Transaction, days: int) -> None:
    """Remove keys that were not used for `days` days, and invalidate the caches of the workers."""
    if await transaction.run(DELETE_UNUSED, clock.later(clock.now(), seconds=-86_400 * days)):
        await versions.bump(transaction, "identity")


_TIERS = (
    "What the key is for: `community` for public reads; `agent` for public reads and the sandbox, with a higher quota; "
    "`sandbox` only for the sandbox."
)


class KeyQuery(msgspec.Struct, forbid_unknown_fields=True):
    """What the key is for."""

    tier: Annotated[Tier, msgspec.Meta(description=_TIERS)] = "community"


class ProvisionedKey(msgspec.Struct):
    """The provisioned key of the API document; only this response contains the key."""

    status: str
    api_key: str
    self_serve: bool
    free_tier: bool


WINDOW_S = 3600


async def count_key(call: StoreRequest[KeyQuery, Nothing]) -> None:
    """Count a key of the client's address.

    Raises:
        RateLimited: the address got too many keys within an hour.
    """
    store = call.context
    quota_left = await store.counters.hit(f"keys\0{call.address}", store.settings.rate_keys, WINDOW_S)
    if not quota_left.allowed:
        raise RateLimited(f"more than {quota_left.limit} keys in an hour; a key you have can be used again", quota_left)


async def provision_key(call: StoreRequest[KeyQuery, Nothing]) -> Response:
    """Provision a key: `community` for public reads, `agent` for public reads and the sandbox, `sandbox` only for the
    sandbox."""
    key = new_secret(KEY_PREFIXES[call.query.tier])
    async with call.context.database.transaction() as transaction:
        await add_key(transaction, digest(key), call.query.tier)
    return response.json(ProvisionedKey("provisioned", key, self_serve=True, free_tier=True))


def _route(method: Literal["GET", "POST"], *, at_root: bool) -> Route[Store]:
    return route(
        method,
        "/api/keys",
        provision_key,
        query=KeyQuery,
        prepare=count_key,
        prepare_before_batch=count_key,
        answers={200: ProvisionedKey},
        secret=True,
        quota=DOCUMENTS,
        documented=method == "GET" and not at_root,
        at_root=at_root,
    )


ROUTES = tuple(_route(method, at_root=at_root) for at_root in (False, True) for method in ("GET", "POST"))
