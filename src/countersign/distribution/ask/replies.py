"""Answers about sets: the typed query is run and what it found is put into words."""

from dataclasses import dataclass, field

from msgspec.structs import replace

from countersign.distribution.ask import phrases, statements
from countersign.distribution.ask.answers import ReplyKind
from countersign.distribution.ask.query import Count, Exists, Products, Publishers, Releases
from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database

MOST_ROWS = 200
MOST_TOLD = 50


@dataclass(frozen=True, slots=True)
class Reply:
    """What was found, and how it is said; see `answers` for the members. `sources` are slugs with versions."""

    kind: ReplyKind
    text: str
    rows: tuple[tuple[str, ...], ...] = ()
    total: int = 0
    value: bool | None = None
    sources: tuple[tuple[str, str | None], ...] = field(default=())


def day(moment: Instant) -> str:
    """The day of the moment in UTC."""
    return clock.rfc3339(moment)[:10]


def capital(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def told(items: list[str], total: int) -> str:
    """The items, the first fifty of them by name."""
    shown = items[:MOST_TOLD]
    if total <= len(shown):
        return phrases.joined(shown)
    return f"{', '.join(shown)} and {total - len(shown)} more"


@dataclass(frozen=True, slots=True)
class Listed:
    """The rows of a set: how many there are, the first of them, and each as it is told."""

    rows: tuple[tuple[str, ...], ...]
    items: list[str]
    total: int
    sources: tuple[tuple[str, str | None], ...]


async def listed(database: Database, asked: Products | Releases | Publishers) -> Listed:
    """The set that is asked for."""
    if isinstance(asked, Products):
        return await _products(database, asked)
    return await (_releases(database, asked) if isinstance(asked, Releases) else _publishers(database, asked))


async def _products(database: Database, asked: Products) -> Listed:
    text, values = statements.products(asked, asked.limit or MOST_ROWS)
    found = await database.scan(text, *values)
    total = len(found)
    if asked.limit is None and total == MOST_ROWS:
        total = await _number(database, statements.count_products(asked))
    slugs = [str(slug) for slug, _ in found]
    return Listed(
        tuple((slug,) for slug in slugs), [title for _, title in found], total, tuple((slug, None) for slug in slugs)
    )


async def _releases(database: Database, asked: Releases) -> Listed:
    text, values = statements.releases(asked, asked.limit or MOST_ROWS)
    found = await database.scan(text, *values)
    total = len(found)
    if asked.limit is None and total == MOST_ROWS:
        total = await _number(database, statements.count_releases(asked))
    pairs = tuple((str(slug), str(version)) for slug, _, version, _, _ in found)
    items = [f"{title} {version} ({channel}, {day(Instant(at))})" for _, title, version, channel, at in found]
    return Listed(pairs, items, total, pairs)


async def _publishers(database: Database, asked: Publishers) -> Listed:
    text, values = statements.publishers(asked, MOST_ROWS)
    found = await database.scan(text, *values)
    total = len(found)
    if total == MOST_ROWS:
        total = await _number(database, statements.count_publishers(asked))
    return Listed(tuple((str(slug),) for slug, _ in found), [name for _, name in found], total, ())


async def _number(database: Database, built: statements.Built) -> int:
    text, values = built
    return int((await database.scan(text, *values))[0][0])


async def which(database: Database, asked: Products | Releases | Publishers) -> Reply:
    """Which there are."""
    found = await listed(database, asked)
    kind: ReplyKind = "text"
    if not isinstance(asked, Publishers):
        kind = "products" if isinstance(asked, Products) else "releases"
    if not found.total:
        return Reply(kind, f"There are no {phrases.of_set(asked)}.")
    is_one = found.total == 1
    if not isinstance(asked, Publishers) and asked.limit is not None and asked.limit > found.total:
        asked = replace(asked, limit=found.total)
    count = f" ({found.total} in all)" if found.total > MOST_TOLD else ""
    text = f"{capital(phrases.of_set(asked, is_one=is_one))}: {told(found.items, found.total)}{count}."
    return Reply(kind, text, found.rows, found.total, None, found.sources)


async def count(database: Database, query: Count) -> Reply:
    """How many there are."""
    asked = query.of
    if isinstance(asked, Products):
        built = statements.count_products(asked)
    elif isinstance(asked, Releases):
        built = statements.count_releases(asked)
    else:
        built = statements.count_publishers(asked)
    total = await _number(database, built)
    verb = "is" if total == 1 else "are"
    return Reply("count", f"There {verb} {phrases.number(total, asked)}.", (), total)


async def exists(database: Database, query: Exists) -> Reply:
    """Whether there are any, and which."""
    found = await listed(database, query.of)
    if not found.total:
        return Reply("yes_no", f"No, there are no {phrases.of_set(query.of)}.", (), 0, value=False)
    text = f"Yes: {phrases.number(found.total, query.of)}: {told(found.items, found.total)}."
    return Reply("yes_no", text, found.rows, found.total, value=True, sources=found.sources)
