"""SQL of the keys' own table, which this folder alone writes."""

from collections.abc import Mapping

from countersign.distribution.identity.provisioned import PREFIX, Tier
from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database import versions
from countersign.kernel.database.port import Transaction

INSERT = "INSERT INTO api_key (key_hash, tier, created_at, used_at) VALUES ($1, $2, $3, $3)"
USED = "UPDATE api_key SET used_at = $2 WHERE key_hash = $1 AND used_at < $2"
DELETE_UNUSED = "DELETE FROM api_key WHERE used_at <= $1"


async def add(transaction: Transaction, key_hash: bytes, tier: Tier) -> None:
    """Keep a new key by its hash."""
    await transaction.run(INSERT, key_hash, tier, clock.now())


async def record_uses(transaction: Transaction, uses: Mapping[str, Instant]) -> None:
    """Write down when keys were last used; other ids than of keys are left alone."""
    for key_id, at in uses.items():
        if key_id.startswith(PREFIX):
            await transaction.run(USED, bytes.fromhex(key_id.removeprefix(PREFIX)), at)


async def forget_unused(transaction: Transaction, days: int) -> None:
    """Remove keys that nobody used for so many days; workers that knew one look again."""
    if await transaction.run(DELETE_UNUSED, clock.later(clock.now(), seconds=-86_400 * days)):
        await versions.bump(transaction, "identity")
