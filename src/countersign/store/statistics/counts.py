"""Daily counts: one row a day for each metric of a release on a platform.

Downloads and follows are counted in the transaction in which they happen. Redemptions are counted every few minutes,
from the rows of the table of redemptions. If each redemption incremented a counter, redemptions of the same product
would wait for each other.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database import versions
from countersign.kernel.database.port import Database, Transaction
from countersign.store.catalog import catalog_index

DAY_S = 86_400
RANKED_DAYS = 7
MAX_DAYS = 31
"""The maximum number of days whose redemptions one run counts; older ones follow in the next runs."""

_ADD = "ON CONFLICT (org_id, metric, day, product_id, version, platform) DO UPDATE SET value = daily_count.value + {}"
_OF_ARTIFACT = """
    FROM artifact a
    JOIN release r ON r.id = a.release_id
    JOIN product p ON p.id = r.product_id
    WHERE a.id = $1
"""
_INSERT = "INSERT INTO daily_count (org_id, metric, day, product_id, version, platform, value)"
COUNT_DOWNLOAD = f"""
    {_INSERT}
    SELECT p.org_id, 'downloads', $2, p.id, r.version, coalesce(a.platform, ''), 1 {_OF_ARTIFACT}
    {_ADD.format("1")}
"""
COUNT_BYTES = f"""
    {_INSERT}
    SELECT p.org_id, 'bytes', $2, p.id, r.version, coalesce(a.platform, ''), a.size {_OF_ARTIFACT}
    {_ADD.format("excluded.value")}
"""
PUT_DOWNLOADS = f"""
    {_INSERT}
    SELECT p.org_id, 'downloads', $2, p.id, r.version, coalesce(a.platform, ''), CAST($3 AS BIGINT) {_OF_ARTIFACT}
"""
PUT_BYTES = f"""
    {_INSERT}
    SELECT p.org_id, 'bytes', $2, p.id, r.version, coalesce(a.platform, ''), a.size * CAST($3 AS BIGINT) {_OF_ARTIFACT}
"""
COUNT_UPDATE = f"""
    {_INSERT}
    SELECT p.org_id, 'updates', $2, p.id, r.version, coalesce(a.platform, ''), 1 {_OF_ARTIFACT}
    {_ADD.format("1")}
"""
COUNT_FOLLOWER = f"""
    {_INSERT}
    VALUES ($1, 'followers', $2, $3, '', '', $4)
    {_ADD.format("excluded.value")}
"""
FORGET_RELEASE = """
    DELETE FROM daily_count
    WHERE product_id = (SELECT product_id FROM release WHERE id = $1)
      AND version = (SELECT version FROM release WHERE id = $1)
"""
LOCK_STATE = "UPDATE statistics_state SET one = 1"
STATE = "SELECT counted_day, ranked_day FROM statistics_state"
SET_COUNTED = "UPDATE statistics_state SET counted_day = $1"
SET_RANKED = "UPDATE statistics_state SET ranked_day = $1"
OLDEST_REDEMPTION = "SELECT min(redeemed_at) FROM redemption"
REDEMPTIONS = """
    SELECT b.org_id, b.products, count(*)
    FROM redemption x
    JOIN code c ON c.code_hash = x.code_hash
    JOIN code_batch b ON b.id = c.batch_id
    WHERE x.redeemed_at >= $1 AND x.redeemed_at < $2
    GROUP BY b.id, b.org_id, b.products
"""
CLEAR_REDEMPTIONS = "DELETE FROM daily_count WHERE metric = 'redemptions' AND day = $1"
PUT_REDEMPTIONS = f"{_INSERT} VALUES ($1, 'redemptions', $2, $3, '', '', $4)"

_products = msgspec.json.Decoder(list[str])


def day_of(instant: Instant) -> str:
    """The day (UTC) as a date."""
    return clock.rfc3339(instant)[:10]


async def count_download(transaction: Transaction, artifact_id: str, *, is_update: bool) -> None:
    """Count a download of a file, with its bytes. With `is_update`, count that a client begins to install a build, or
    to update to it; the number of bytes is then not known."""
    day = day_of(clock.now())
    await transaction.run(COUNT_DOWNLOAD, artifact_id, day)
    await transaction.run(COUNT_UPDATE if is_update else COUNT_BYTES, artifact_id, day)


async def count_follower(transaction: Transaction, org_id: str, product_id: str, change: int) -> None:
    """Add `change` to the number of followers of the product or, with an empty id, of the organisation."""
    await transaction.run(COUNT_FOLLOWER, org_id, day_of(clock.now()), product_id, change)


async def forget_release(transaction: Transaction, release_id: str) -> None:
    """Remove the counts of a release that is about to be removed."""
    await transaction.run(FORGET_RELEASE, release_id)


async def roll_up(database: Database) -> None:
    """Count the redemptions of the days since the last run and of today, and once a day rank products by downloads.

    Counting a day again has no effect. Concurrent runs wait for each other.
    """
    now = clock.now()
    async with database.transaction() as transaction:
        await transaction.run(LOCK_STATE)
        row = await transaction.fetch_one(STATE)
        counted_day, ranked_day = row or ("1970-01-01", "1970-01-01")
        oldest_row = await transaction.fetch_one(OLDEST_REDEMPTION)
        if oldest_row is not None and oldest_row[0] is not None:
            counted_day = max(counted_day, day_of(oldest_row[0]))
            await _count_redemptions(transaction, counted_day, now)
        if ranked_day < day_of(now):
            await rank_products(transaction, now)
            await versions.bump(transaction, "catalog")


async def rank_products(transaction: Transaction, now: Instant) -> None:
    """Write the downloads of the last seven whole days into the catalog's index."""
    start = day_of(clock.later(now, seconds=-RANKED_DAYS * DAY_S))
    await catalog_index.write_downloads(transaction, start, day_of(now))
    await transaction.run(SET_RANKED, day_of(now))


async def put_downloads(transaction: Transaction, rows: Sequence[tuple[str, str, int]]) -> None:
    """Write downloads of new days with their bytes: artifact, day, downloads. Used for demonstration data."""
    await transaction.run_many(PUT_DOWNLOADS, rows)
    await transaction.run_many(PUT_BYTES, rows)


async def put_counts(transaction: Transaction, rows: Iterable[tuple[str, str, str, str, str, str, int]]) -> None:
    """Write rows of new days: organisation, metric, day, product, version, platform, value."""
    await transaction.run_many(f"{_INSERT} VALUES ($1, $2, $3, $4, $5, $6, $7)", rows)


async def _count_redemptions(transaction: Transaction, first_day: str, now: Instant) -> None:
    """Count the redemptions of the first day and of each later day again."""
    start = clock.from_datetime(datetime.fromisoformat(f"{first_day}T00:00:00Z"))
    for _ in range(MAX_DAYS):
        if start > now:
            return
        day, end = day_of(start), clock.later(start, seconds=DAY_S)
        counts: Counter[tuple[str, str]] = Counter()
        for org_id, products, count in await transaction.fetch(REDEMPTIONS, start, end):
            counts.update({(org_id, product_id): int(count) for product_id in _products.decode(products)})
        await transaction.run(CLEAR_REDEMPTIONS, day)
        rows = [(org_id, day, product_id, count) for (org_id, product_id), count in sorted(counts.items())]
        await transaction.run_many(PUT_REDEMPTIONS, rows)
        await transaction.run(SET_COUNTED, day)
        start = end
