"""Fills a store in seconds with bulk inserts of rows that the product's encoders create, on SQLite or PostgreSQL."""

import asyncio
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from itertools import count
from pathlib import Path

import apsw
import asyncpg
import msgspec
from processes import Cluster

from countersign.kernel import clock, ids
from countersign.kernel.database.port import Database
from countersign.kernel.http import cursor
from countersign.kernel.http.response import encode, etag_of
from countersign.settings import Settings
from countersign.store.app import open_store
from countersign.store.auth import tokens
from countersign.store.catalog.product_assembly import card_of, cover_of
from countersign.store.catalog.projection import ENCODING, WEIGHT_OF_TITLE, word_weights
from countersign.store.catalog.schemas import Channel, ProductDetail, Release
from countersign.store.catalog.search import deletion_variants
from countersign.store.context import Store
from countersign.store.lifespan import MIGRATIONS
from countersign.store.redeem import codes

ROOT_URL = "http://store.bench"
MASTER_KEY = "YmVuY2gtYmVuY2gtYmVuY2gtYmVuY2gtYmVuY2gtYmU="
UNLIMITED = 4_000_000_000
START = clock.Instant(1_767_225_600 * clock.SECOND)  # 2026-01-01T00:00:00Z
ORG_ID, ORG_SLUG = "019b0000-0000-7000-8000-000000000001", "benchmark-works"
BATCHES = 250
MEMBER_TOKENS = 2_000

# The index that the author of hand-written SQL on these tables would add.
FLOOR_INDEX = "CREATE INDEX bench_product_by_title ON product (status, title, id)"

# The facets that `index_catalog` adds have no date yet.
DATE_FACETS = """
    UPDATE catalog_facet
    SET published_at = (SELECT e.published_at FROM catalog_entry e WHERE e.product_id = catalog_facet.product_id)
    WHERE published_at = 0
"""

_ADJECTIVES = ("Amber", "Brisk", "Calm", "Deep", "Early", "Fallow", "Gentle", "Hollow", "Iron", "Jolly")
_NOUNS = ("Harbor", "Lantern", "Meadow", "Orchard", "Pilot", "Quarry", "River", "Signal", "Tower", "Valley")
_KINDS = ("game", "app", "tool")
_PLATFORMS = (("linux",), ("linux", "windows"), ("windows", "macos", "linux"))

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Size:
    """The number of rows. Each person owns `owned` products, and each code has one use."""

    products: int
    persons: int = 0
    owned: int = 0
    codes: int = 0


@dataclass(slots=True)
class Seeded:
    """A filled store: its database and data directory, and data for the requests of clients.

    `pages` contains the title and the id of every product in the order of the list, each the end of a page. `cursors`
    contains the store's cursors for the same positions. `tokens` contains bearer tokens of the first persons.
    """

    database_url: str
    data: Path
    pages: list[tuple[str, str]] = field(default_factory=lambda: list[tuple[str, str]]())
    cursors: list[str] = field(default_factory=lambda: list[str]())
    slugs: list[str] = field(default_factory=lambda: list[str]())
    persons: list[str] = field(default_factory=lambda: list[str]())
    tokens: list[str] = field(default_factory=lambda: list[str]())
    codes: list[str] = field(default_factory=lambda: list[str]())


def settings_of(seed_data: Seeded) -> Settings:
    """Return the settings of the store: the defaults, with rate limits that are counted but never reached."""
    return Settings(
        data=str(seed_data.data),
        database_url=seed_data.database_url if seed_data.database_url.startswith("postgresql:") else "",
        master_key=MASTER_KEY,
        rate_anonymous=UNLIMITED,
        rate_person=UNLIMITED,
        rate_token=UNLIMITED,
    )


@contextmanager
def new(engine: str, size: Size, folder: Path, cluster: Cluster | None) -> Iterator[Seeded]:
    """Fill a store of this size on a new database of the engine. Delete its data when the block ends."""
    number = next(_numbers)
    data = folder / f"store-{number}"
    data.mkdir()
    url = f"sqlite:///{data}/distribution.sqlite"
    name = f"bench_{number}"
    if engine == "postgres":
        assert cluster is not None
        cluster.sql(f"CREATE DATABASE {name} TEMPLATE template0")
        url = cluster.url(name)
    try:
        seed_data = Seeded(url, data)
        asyncio.run(_fill(seed_data, size))
        yield seed_data
    finally:
        shutil.rmtree(data)
        if cluster is not None and engine == "postgres":
            cluster.sql(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def copy(seed_data: Seeded, cluster: Cluster | None) -> Iterator[Seeded]:
    """Copy a store, so that a benchmark can write to the copy. Delete the copy when the block ends."""
    number = next(_numbers)
    data = seed_data.data.with_name(f"store-{number}")
    shutil.copytree(seed_data.data, data)
    url = f"sqlite:///{data}/distribution.sqlite"
    name = f"bench_{number}"
    if seed_data.database_url.startswith("postgresql:"):
        assert cluster is not None
        cluster.sql(f"CREATE DATABASE {name} TEMPLATE {seed_data.database_url.rpartition('/')[2]}")
        url = cluster.url(name)
    try:
        yield Seeded(
            url,
            data,
            seed_data.pages,
            seed_data.cursors,
            seed_data.slugs,
            seed_data.persons,
            seed_data.tokens,
            seed_data.codes,
        )
    finally:
        shutil.rmtree(data)
        if cluster is not None and not url.startswith("sqlite"):
            cluster.sql(f"DROP DATABASE {name} WITH (FORCE)")


async def _fill(seed_data: Seeded, size: Size) -> None:
    async with open_store(settings_of(seed_data), ROOT_URL, is_loopback=True) as store:
        seed_data.persons = [ids.new_uuid() for _ in range(size.persons)]
        scopes = frozenset({"read:library"})
        members = seed_data.persons[:MEMBER_TOKENS]
        seed_data.tokens = [tokens.issue(store, person, tokens.FIRST_PARTY, scopes) for person in members]
        seed_data.codes = list(codes.derive_codes(bytes(codes.SEED_BYTES), 0, size.codes))
        products = [_product(number) for number in range(size.products)]
        seed_data.slugs = [detail.slug for detail in products]
        seed_data.pages = sorted((detail.title, detail.id) for detail in products)
        seed_data.cursors = [_cursor(store, title, product_id) for title, product_id in seed_data.pages]
    tables = [
        ("organisation", "id slug name created_at", [(ORG_ID, ORG_SLUG, "Benchmark Works", START)]),
        ("product", _PRODUCT_COLUMNS, (_product_row(detail) for detail in products)),
        ("release", _RELEASE_COLUMNS, (_release_row(detail) for detail in products)),
        ("catalog_entry", _ENTRY_COLUMNS, (_entry_row(detail) for detail in products)),
        ("person", "id email created_at", ((person, f"{person}@bench.example", START) for person in seed_data.persons)),
        ("entitlement", "owner product_id granted_at source", _entitlements(seed_data.persons, products, size.owned)),
        ("code_batch", _BATCH_COLUMNS, (_batch(number, detail.id) for number, detail in enumerate(products[:BATCHES]))),
        ("code", "code_hash batch_id uses", _codes(seed_data.codes)),
    ]
    if seed_data.database_url.startswith("sqlite"):
        _fill_sqlite(seed_data.database_url.removeprefix("sqlite:///"), tables)
    else:
        await _fill_postgres(seed_data.database_url, tables)


_Table = tuple[str, str, Iterable[tuple[object, ...]]]


def _fill_sqlite(path: str, tables: Sequence[_Table], *, index: bool = True) -> None:
    connection = apsw.Connection(path)
    for pragma in ("synchronous = OFF", "foreign_keys = OFF", "cache_size = -500000"):
        connection.execute(f"PRAGMA {pragma}")
    with connection:
        for table, columns, rows in tables:
            names = columns.split()
            placeholders = ", ".join("?" * len(names))
            connection.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({placeholders})", rows)
        if index:
            connection.execute(FLOOR_INDEX)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


async def _fill_postgres(url: str, tables: Sequence[_Table], *, index: bool = True) -> None:
    connection = await asyncpg.connect(
        url, server_settings={"search_path": "distribution", "session_replication_role": "replica"}
    )
    filled_tables: list[str] = []
    for table, columns, rows in tables:
        tag = await connection.copy_records_to_table(table, records=rows, columns=columns.split())
        filled_tables += [table] if tag != "COPY 0" else []
    if index:
        await connection.execute(FLOOR_INDEX)
    # Skip empty tables: the planner would assume that they stay empty until the next ANALYZE.
    await connection.execute(f"VACUUM ANALYZE {', '.join(filled_tables)}")
    await connection.execute("CHECKPOINT")
    await connection.close()


def _cursor(store: Store, title: str, product_id: str) -> str:
    return cursor.write(store.cursors, cursor.Position("products", [""] * 6, [title, product_id]))


def _product(number: int) -> ProductDetail:
    """Return the product with this number. Its title is chosen so that neighbours in the list have distant numbers."""
    name = f"{_ADJECTIVES[number % 10]} {_NOUNS[number // 10 % 10]} {number:06d}"
    platforms = list(_PLATFORMS[number % 3])
    published_at = clock.rfc3339(clock.later(START, seconds=number))
    members: dict[str, object] = {
        "id": ids.new_uuid(),
        "slug": name.lower().replace(" ", "-"),
        "title": name,
        "description": f"A {_NOUNS[number % 10].lower()} for quiet evenings, number {number}.",
        "kind": _KINDS[number % 3],
        "platforms": platforms,
        "summary": f"A {_NOUNS[number % 10].lower()} for quiet evenings, number {number}.",
        "org": ORG_SLUG,
        "publisher": {"slug": ORG_SLUG, "name": "Benchmark Works", "verified": False},
        "cover": cover_of(name.lower().replace(" ", "-"), _KINDS[number % 3], ("quiet", "evening")),
        "latest": {
            "version": "1.0.0",
            "channel": "stable",
            "published_at": published_at,
            "size_by_platform": dict.fromkeys(platforms, 40_000_000 + number),
            "first_published_at": published_at,
        },
        "access": "entitled",
        "is_free": False,
        "media_count": 0,
        "has_trailer": False,
        "status": "public",
        "channels": [Channel("stable", "1.0.0", published_at)],
        "media": [],
        "tags": ["quiet", "evening", _NOUNS[number % 10].lower()],
        "homepage": f"https://{ORG_SLUG}.example/{number}",
        "buy_url": None,
        "languages": [],
        "license": "Apache-2.0",
        "created_at": published_at,
        "updated_at": published_at,
    }
    return msgspec.convert(members, ProductDetail, from_attributes=True)


_PRODUCT_COLUMNS = (
    "id org_id slug title description kind platforms tags homepage license access status created_at updated_at"
)
_RELEASE_COLUMNS = "id product_id version sort_key channel notes status created_at published_at"
_ENTRY_COLUMNS = "product_id org_id org_slug slug title kind status published_at card detail newest etag encoding"
_BATCH_COLUMNS = "id org_id kind products count max_uses status created_by created_at"


def _moment(detail: ProductDetail) -> int:
    return START + int(detail.title[-6:]) * clock.SECOND


def _product_row(detail: ProductDetail) -> tuple[object, ...]:
    published_at = _moment(detail)
    texts = (encode(detail.platforms).decode(), encode(detail.tags).decode(), detail.homepage, detail.license)
    members = (detail.id, ORG_ID, detail.slug, detail.title, detail.description, detail.kind)
    return (*members, *texts, detail.access, detail.status, published_at, published_at)


def _release_row(detail: ProductDetail) -> tuple[object, ...]:
    published_at = _moment(detail)
    return (f"r-{detail.id}", detail.id, "1.0.0", "1", "stable", "First.", "published", published_at, published_at)


def _entry_row(detail: ProductDetail) -> tuple[object, ...]:
    at = _moment(detail)
    encoded_detail = encode(detail)
    newest_releases = [
        Release(version="1.0.0", channel="stable", published_at=clock.rfc3339(clock.Instant(at)), notes="First.")
    ]
    names = (detail.id, ORG_ID, ORG_SLUG, detail.slug, detail.title, detail.kind, "public", at)
    return (*names, encode(card_of(detail)), encoded_detail, encode(newest_releases), etag_of(encoded_detail), ENCODING)


def _entitlements(
    persons: Sequence[str], products: Sequence[ProductDetail], owned_count: int
) -> Iterator[tuple[object, ...]]:
    """Yield the entitlements of each person. The products of a person are far apart in the catalog."""
    for number, person in enumerate(persons):
        for position in range(owned_count):
            detail = products[(number * 7919 + position * 104_729) % len(products)]
            yield (f"person:{person}", detail.id, START + number * 1000 + position, f"batch:{number % 1000}")


def _batch_id(number: int) -> str:
    return f"019b0000-0000-7000-8000-{number:012d}"


def _batch(number: int, product_id: str) -> tuple[object, ...]:
    products = encode([product_id]).decode()
    return (_batch_id(number), ORG_ID, "license", products, 1000, 1, "active", "bench", START)


def _codes(code_texts: Sequence[str]) -> Iterator[tuple[object, ...]]:
    return ((codes.digest(code), _batch_id(number % BATCHES), 0) for number, code in enumerate(code_texts))


def search_tables(seed_data: Seeded) -> list[_Table]:
    """Return the rows of the facets and search words of the catalog, which only benchmarks of searches need."""
    products = [(each, _product(int(title[-6:]))) for title, each in seed_data.pages]
    described_products = [
        (product_id, detail, word_weights(detail.title, detail.tags, detail.description or ""))
        for product_id, detail in products
    ]
    facets = (
        (facet, detail.title, product_id, _moment(detail))
        for product_id, detail, _ in described_products
        for facet in (
            f"kind:{detail.kind}",
            f"org:{detail.org}",
            *(f"platform:{platform}" for platform in detail.platforms),
            *(f"tag:{tag}" for tag in dict.fromkeys(detail.tags)),
        )
    )
    terms = (
        (term, product_id, weight, detail.title if weight == WEIGHT_OF_TITLE else "")
        for product_id, detail, weights_by_term in described_products
        for term, weight in weights_by_term.items()
    )
    all_terms = sorted({term for _, _, weights_by_term in described_products for term in weights_by_term})
    typos = ((variant, term) for term in all_terms for variant in sorted(deletion_variants(term)))
    return [
        ("catalog_facet", "facet title product_id published_at", facets),
        ("catalog_term", "term product_id weight title", terms),
        ("catalog_typo", "shortened term", typos),
    ]


def add(seed_data: Seeded, tables: Sequence[_Table]) -> None:
    """Insert more rows into the tables of the store."""
    if seed_data.database_url.startswith("sqlite"):
        _fill_sqlite(seed_data.database_url.removeprefix("sqlite:///"), tables, index=False)
    else:
        asyncio.run(_fill_postgres(seed_data.database_url, tables, index=False))


async def index_catalog(database: Database) -> None:
    """Make a fifth of the products free, and write what the migrations would write for products that exist before
    them."""
    async with database.transaction() as transaction:
        await transaction.run("UPDATE product SET access = 'free' WHERE title LIKE '%0' OR title LIKE '%5'")
        for name in ("ask", "facets", "catalog_index"):
            (file,) = (path for path in resources.files(MIGRATIONS).iterdir() if path.name.endswith(f"_{name}.sql"))
            text = file.read_text()
            for statement in text[text.index("INSERT INTO") :].split(";\n"):
                if statement.strip():
                    await transaction.run(statement)
        await transaction.run(DATE_FACETS)
