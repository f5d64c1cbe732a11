"""Self-serve keys as they are presented: recognised by their form, known by their hash, each a caller of its own."""

from typing import Literal, NamedTuple, TypeAlias

from countersign.distribution.context import Store
from countersign.distribution.identity import queries
from countersign.distribution.identity.callers import Caller
from countersign.kernel import clock
from countersign.kernel.security.secrets import digest, looks_like_secret

Tier: TypeAlias = Literal["community", "sandbox", "agent"]

KEY_PREFIXES: dict[Tier, str] = {"community": "csk_community", "sandbox": "csk_sandbox", "agent": "csk_agent"}
PREFIX = "key_"
"""Before the hash of a key it makes the id by which its last use is noted."""


class Key(NamedTuple):
    """A key that is known; `id` names it without telling it."""

    id: str
    tier: Tier

    @property
    def caller(self) -> Caller:
        """The key as a caller, who is nobody and holds nothing."""
        quota = "agent" if self.tier == "agent" else "community"
        return Caller("key", self.id, granted_quota=quota)


def is_key(credential: str) -> bool:
    """Whether the credential means to be a self-serve key, rather than a token."""
    return credential.startswith(tuple(f"{prefix}_" for prefix in KEY_PREFIXES.values()))


async def known(store: Store, credential: str) -> Key | None:
    """The key, unless it is mistyped, unknown, or was not used for too long. A mistyped one is told by its checksum,
    without asking the database."""
    if not is_key(credential) or not looks_like_secret(credential):
        return None
    key_hash = digest(credential)
    alive_since = clock.later(clock.now(), seconds=-86_400 * store.settings.key_days)
    tier = await queries.tier_of_key(store.database, key_hash, alive_since)
    return None if tier is None else Key(PREFIX + key_hash.hex(), tier)
