"""Sets of products in memory, to count the products of a list. Each value of a filter has a set, with one bit for each
product.

The sets of a worker are a copy of the table `catalog_index`. When a product changes, its row gets the catalog's new
version in `changed`. A worker with older sets then reads only the newer rows. A count is the size of an intersection of
sets.
"""

import asyncio
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Row, Transaction
from countersign.store.catalog.schemas import ProductDetail

KINDS, ACCESS = ("game", "app", "tool"), ("free", "entitled")
PLATFORMS = ("windows", "macos", "linux", "android", "ios", "web")
CHANNELS = ("stable", "beta", "nightly", "alpha")
MAX_WORDS = 128
"""The maximum number of tags, and of organisations, that have a set in memory. Only the most frequent have a set. The
products of a rare value are read when they are needed, which is quick because they are few."""
MAX_DAYS = 16
"""The maximum number of days for which there is a set of the products that were released since the day."""
MAX_STEP = 2_000
"""If more rows than this have changed, all sets are read again."""
MAX_STRAYS = 5_000
"""After this many changes of values without a set, all sets are read again: such a value may have become frequent."""

PUT = """
    INSERT INTO catalog_index (
        product_id, number, changed, is_public, kind, platforms, channels, is_free, org_slug, tags, published_at,
        updated_at, releases, downloads_7d
    )
    VALUES (
        $1, (SELECT coalesce(max(number), 0) + 1 FROM catalog_index), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0
    )
    ON CONFLICT (product_id) DO UPDATE SET
        changed = excluded.changed, is_public = excluded.is_public, kind = excluded.kind,
        platforms = excluded.platforms, channels = excluded.channels, is_free = excluded.is_free,
        org_slug = excluded.org_slug, tags = excluded.tags, published_at = excluded.published_at,
        updated_at = excluded.updated_at, releases = excluded.releases
"""
COUNTED = "SELECT is_public, releases FROM catalog_index WHERE product_id = $1"
PUBLISHED_RELEASES = "SELECT count(*) FROM release WHERE product_id = $1 AND status = 'published'"
PUT_PUBLISHER = """
    INSERT INTO catalog_publisher (org_id, slug, product_count, release_count, last_release_at)
    SELECT id, slug, 0, 0, NULL FROM organisation WHERE slug = $1
    ON CONFLICT DO NOTHING
"""
COUNT_PUBLISHER = """
    UPDATE catalog_publisher
    SET product_count = product_count + $2, release_count = release_count + $3,
        last_release_at = (SELECT max(c.last_at) FROM catalog_public c WHERE c.org_slug = $1)
    WHERE slug = $1
"""
RANK = """
    UPDATE catalog_index
    SET downloads_7d = coalesce((
        SELECT sum(d.value) FROM daily_count d
        WHERE d.metric = 'downloads' AND d.day >= $1 AND d.day < $2 AND d.product_id = catalog_index.product_id
    ), 0)
    WHERE downloads_7d > 0 OR product_id IN (
        SELECT product_id FROM daily_count WHERE metric = 'downloads' AND day >= $1 AND day < $2
    )
"""
_COLUMNS = "number, changed, is_public, kind, platforms, channels, is_free, org_slug, tags, published_at"
EVERY_ROW = f"SELECT {_COLUMNS} FROM catalog_index"
CHANGED_ROWS = f"SELECT {_COLUMNS} FROM catalog_index WHERE changed > $1 ORDER BY changed LIMIT {MAX_STEP + 1}"
SET_DOWNLOADS = "UPDATE catalog_index SET downloads_7d = $2 WHERE product_id = $1"


async def put_downloads(transaction: Transaction, product_id: str, downloads: int) -> None:
    """Set the downloads of a product in the last seven days, before they are counted. Used for demonstration data."""
    await transaction.run(SET_DOWNLOADS, product_id, downloads)


async def put_row(
    transaction: Transaction, detail: ProductDetail, version: int, published_at: Instant, updated_at: Instant
) -> None:
    """Write the product's row, and update the counts of its publisher. `version` is the catalog's new version, whose
    row is locked by this transaction."""
    earlier_counts = await transaction.fetch_one(COUNTED, detail.id) or (0, 0)
    (releases,) = await transaction.fetch_one(PUBLISHED_RELEASES, detail.id) or (0,)
    is_public = int(detail.status == "public")
    await transaction.run(
        PUT,
        detail.id,
        version,
        is_public,
        detail.kind,
        sum(1 << PLATFORMS.index(platform) for platform in detail.platforms),
        sum(1 << CHANNELS.index(channel.channel) for channel in detail.channels),
        int(detail.access == "free"),
        detail.org,
        f" {' '.join(detail.tags)} ",
        published_at,
        max(published_at, updated_at),
        releases,
    )
    difference = is_public * releases - earlier_counts[0] * earlier_counts[1]
    await transaction.run(PUT_PUBLISHER, detail.org)
    await transaction.run(COUNT_PUBLISHER, detail.org, is_public - earlier_counts[0], difference)


async def write_downloads(transaction: Transaction, first_day: str, end: str) -> None:
    """Write the number of downloads of each product, from `first_day` to the day before `end`."""
    await transaction.run(RANK, first_day, end)


class IndexRow(NamedTuple):
    """A row of the table `catalog_index`."""

    number: int
    changed: int
    is_public: int
    kind: str
    platforms: int
    channels: int
    is_free: int
    org_slug: str
    tags: str
    published_at: Instant

    def facets(self) -> Iterator[str]:
        """The values of the product, as the table `catalog_facet` names them, without tags and organisation."""
        if self.is_public:
            yield "public"
        yield f"kind:{self.kind}"
        yield f"access:{ACCESS[1 - self.is_free]}"
        yield from (f"platform:{platform}" for bit, platform in enumerate(PLATFORMS) if self.platforms >> bit & 1)
        yield from (f"channel:{channel}" for bit, channel in enumerate(CHANNELS) if self.channels >> bit & 1)

    def words(self) -> list[str]:
        """The values that have a set only if they are frequent."""
        return [f"org:{self.org_slug}", *(f"tag:{tag}" for tag in self.tags.split())]


class ProductSet:
    """A set of products by their numbers. `bits` is the set as an integer, for conjunctions."""

    __slots__ = ("_bits", "_raw")

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._raw = bytearray()
        self._bits: int | None = None
        for number in numbers:
            self.add(number)

    def add(self, number: int) -> None:
        """Add a product."""
        byte_index = number >> 3
        if byte_index >= len(self._raw):
            self._raw.extend(bytes(byte_index + 1024 - len(self._raw)))
        self._raw[byte_index] |= 1 << (number & 7)
        self._bits = None

    def discard(self, number: int) -> None:
        """Remove a product, if it is in the set."""
        byte_index, bit = number >> 3, 1 << (number & 7)
        if byte_index < len(self._raw) and self._raw[byte_index] & bit:
            self._raw[byte_index] ^= bit
            self._bits = None

    @property
    def bits(self) -> int:
        """The set as an integer: bit n is set if product n is in it."""
        if self._bits is None:
            self._bits = int.from_bytes(self._raw, "little")
        return self._bits


class _Sets:
    """All sets at one version of the catalog."""

    def __init__(self, rows: Sequence[Row] = ()) -> None:
        self.version = -1
        self.by_facet: dict[str, ProductSet] = {"public": ProductSet()}
        self.since: dict[Instant, ProductSet] = {}
        self.published = array("q")
        self.changes_without_set = 0
        all_rows = [IndexRow(*row) for row in rows]
        self.words = {"tag": 0, "org": 0}
        word_counts = Counter(word for row in all_rows for word in row.words())
        for word, _ in sorted(word_counts.items(), key=lambda item: (-item[1], item[0])):
            self._new_value_set(word)
        for index_row in all_rows:
            self._add(index_row)
        self.changes_without_set = 0

    def apply(self, rows: Sequence[Row]) -> None:
        """Replace the products of these rows, which are newer."""
        for row in rows:
            index_row = IndexRow(*row)
            for product_set in (*self.by_facet.values(), *self.since.values()):
                product_set.discard(index_row.number)
            self._add(index_row)

    def _add(self, row: IndexRow) -> None:
        number = row.number
        for facet in row.facets():
            self.by_facet.setdefault(facet, ProductSet()).add(number)
        for word in row.words():
            product_set = self.by_facet[word] if word in self.by_facet else self._new_value_set(word)
            if product_set is None:
                self.changes_without_set += 1
            else:
                product_set.add(number)
        if number >= len(self.published):
            self.published.extend([0] * (number + 1024 - len(self.published)))
        self.published[number] = row.published_at
        for moment, product_set in self.since.items():
            if row.published_at >= moment:
                product_set.add(number)
        self.version = max(self.version, row.changed)

    def _new_value_set(self, word: str) -> ProductSet | None:
        """Add an empty set for the value. Return None if the maximum number of sets is reached."""
        name = word.partition(":")[0]
        if self.words[name] >= MAX_WORDS:
            return None
        self.words[name] += 1
        product_set = self.by_facet[word] = ProductSet()
        return product_set

    def add_published_since(self, moment: Instant) -> None:
        """Add the set of products that were published since the moment."""
        while len(self.since) >= MAX_DAYS:
            self.since.pop(next(iter(self.since)))
        self.since[moment] = ProductSet(
            number for number, published_at in enumerate(self.published) if number and published_at >= moment
        )


class CatalogIndex:
    """The sets of one worker. They are read at their first use."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sets = _Sets()
        self._is_read = False
        self._lock = asyncio.Lock()

    async def update(self, version: int, since_instants: Iterable[Instant] = ()) -> None:
        """Update the sets to this version of the catalog. Add the sets of products that were published since
        `since_instants`.

        Raises:
            Unavailable: the database cannot be reached, or the read exceeded its deadline.
        """
        wanted_since = set(since_instants)
        if self._is_read and self._sets.version >= version and wanted_since <= self._sets.since.keys():
            return
        async with self._lock:
            if not self._is_read or self._sets.changes_without_set > MAX_STRAYS:
                await self._read_all()
            elif self._sets.version < version:
                rows = await self._database.fetch(CHANGED_ROWS, self._sets.version)
                if len(rows) > MAX_STEP:
                    await self._read_all()
                else:
                    self._sets.apply(rows)
            # If no row has this version, the change does not affect the sets.
            self._sets.version = max(self._sets.version, version)
            for moment in sorted(wanted_since - self._sets.since.keys()):
                await asyncio.to_thread(self._sets.add_published_since, moment)

    async def _read_all(self) -> None:
        # The snapshot may be newer than the requested version. Its newest changes are then applied a second time later.
        rows = await self._database.scan(EVERY_ROW)
        self._sets = await asyncio.to_thread(_Sets, rows)
        self._is_read = True

    def products(self, facet: str) -> int | None:
        """The products with this value as bits; None if the value has no set because it is rare."""
        product_set = self._sets.by_facet.get(facet)
        if product_set is None:
            return None if facet.startswith(("tag:", "org:")) else 0
        return product_set.bits

    def published_since(self, moment: Instant) -> int:
        """The products that were published since a time, which must be one of the times of the last `update`."""
        return self._sets.since[moment].bits

    def tags(self) -> dict[str, int]:
        """The most frequent tags, each with its products as bits."""
        sets_by_facet = self._sets.by_facet.items()
        return {
            facet.removeprefix("tag:"): facet_sets.bits
            for facet, facet_sets in sets_by_facet
            if facet.startswith("tag:")
        }

    def has_every_tag(self) -> bool:
        """Whether every tag has a set."""
        return self._sets.words["tag"] < MAX_WORDS
