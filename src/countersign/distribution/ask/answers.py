"""A question to its answer: read, run, and answered with what was not understood of it.

Three outcomes: `answered`, where every word that has a meaning was used; `partial`, the rows of what was understood
with the words that were not; `refused`, with the reason. An answer is made of nothing but the rows that the filter
finds.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from countersign.distribution.ask.parser import Reading, read
from countersign.distribution.catalog import filter_queries
from countersign.distribution.catalog.filter import KNOWN, Filter, Values, conditions, slot, with_slots
from countersign.distribution.catalog.public import CHANNELS
from countersign.distribution.catalog.schemas import ProductDetail
from countersign.distribution.catalog.statements import Statement
from countersign.distribution.context import Store
from countersign.kernel import clock
from countersign.kernel.database.port import Database

Status = Literal["answered", "partial", "refused"]
MAX_BEFORE = 5
"""Questions before this one that are read."""
MAX_SUGGESTIONS = 3
MAX_ROWS = 200
MAX_SHOWN = 20
MAX_OF_RANGE = 50
MAX_NOTES = 600
CORRECTED, BY_MODEL, PARTIAL = 0.8, 0.6, 0.5
"""How sure an answer is of what was asked."""
CAN_ANSWER = (
    "I answer from the catalog: which products and releases there are, or how many, by kind, platform, channel, tag, "
    "license and date; what a product is, who publishes it and what changed."
)
PLATFORM_NAMES = {
    "windows": "Windows", "macos": "macOS", "linux": "Linux", "android": "Android", "ios": "iOS", "web": "the web"
}  # fmt: skip
_DETAIL = """
    SELECT e.detail, o.name
    FROM catalog_public c
    JOIN catalog_entry e ON e.product_id = c.product_id
    JOIN organisation o ON o.slug = c.org_slug
    WHERE c.slug IN ({slugs})
"""
_FILES = """
    SELECT a.filename, a.size, a.sha256, a.platform
    FROM catalog_public c
    JOIN release r ON r.product_id = c.product_id
    JOIN artifact a ON a.release_id = r.id
    WHERE c.slug = $1 AND r.version = $2 AND r.status = 'published' AND a.status = 'ready'
    ORDER BY a.filename
    LIMIT 50
"""
_WEIGHTS = {"text": 0, "title": 0, "version": 0, "tag": 2, "org": 2, "license": 2, "product": 2}
"""How much a condition says of what was meant, where other words were not used."""
_OF_RELEASES = frozenset(["versions", "published_at", "notes", "artifacts"])
_COLUMNS = {"tag": "c.tags", "kind": "c.kind", "org": "c.org_slug", "license": "coalesce(c.license, 'none')"}


class Source(msgspec.Struct, frozen=True):
    """Where a statement of an answer is from; `release` is a version of the product."""

    product: str
    release: str | None
    url: str


class Answered(msgspec.Struct, frozen=True):
    """A question answered. `candidates` are titles that could be meant, `unused` the words that were not used."""

    status: Status
    text: str
    sources: tuple[Source, ...] = ()
    total: int = 0
    filter: Filter | None = None
    confidence: float = 1.0
    suggestions: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()


class Facts(NamedTuple):
    """What the catalog says of a product, and its publisher's name."""

    detail: ProductDetail
    publisher: str


class Row(NamedTuple):
    """A release."""

    slug: str
    title: str
    version: str
    channel: str
    published_at: clock.Instant
    notes: str | None


async def answer(
    store: Store, question: str, now: clock.Instant, previous: Sequence[str] = (), *, with_model: bool = False
) -> Answered:
    """The answer to the question as of `now`, out of what anybody may see in the catalog. `previous` are the questions
    before it, the oldest first; `with_model`: the configured model reads it whatever the rules understand."""
    at = datetime.fromtimestamp(now / 1_000_000, UTC)
    base: Filter | None = None
    for earlier in previous[-MAX_BEFORE:]:
        base = (await read(store.database, earlier, at, base)).filter
    found = await _outcome(store, await read(store.database, question, at, base), at)
    if not store.settings.ask_model_url or (found.status == "answered" and not with_model):
        return found
    # Imported here: few have a model, and what speaks to it makes every start a tenth of a second longer.
    from countersign.distribution.ask import model

    filter = await model.filter_of(store, question, at)
    return found if filter is None else replace(await run(store, filter), confidence=BY_MODEL)


async def _outcome(store: Store, reading: Reading, at: datetime) -> Answered:
    """The answer to what was read, or why there is none."""
    filter, unused = reading.filter, tuple(dict.fromkeys([*reading.guards, *reading.unused]))
    reason = _reason(reading, unused)
    if reason:
        suggestions = await _suggestions(store, filter, at)
        could = f"You could ask: {_quoted(suggestions, '; ')}." if suggestions else CAN_ANSWER
        text = f"I cannot tell: {reason}. {could}"
        return Answered("refused", text, confidence=0.0, suggestions=suggestions, unused=unused)
    return await _qualified(store, reading, unused, at)


async def _qualified(store: Store, reading: Reading, unused: tuple[str, ...], at: datetime) -> Answered:
    """The answer, with what was not used of the question or was read as something else."""
    filter = reading.filter
    found = await run(store, filter)
    if unused and found.status != "refused":
        text = f"Read as: {described(filter)}. Not used: {_quoted(unused)}. {found.text}"
        suggestions = await _suggestions(store, filter, at)
        partial = replace(found, status="partial", text=text, confidence=PARTIAL)
        return replace(partial, suggestions=suggestions, unused=unused)
    if reading.is_about_text and found.total > 1 and [name for name, _ in conditions(filter)] == ["text"]:
        # "What is Slow?": several titles could be meant.
        near = await facts(store.database, [source.product for source in found.sources[:MAX_SUGGESTIONS]])
        return replace(found, confidence=CORRECTED, candidates=tuple(each.detail.title for each in near))
    return _corrected(reading, found) if reading.corrected else found


def _reason(reading: Reading, unused: Sequence[str]) -> str:
    """Why there is no answer; empty where there is one."""
    plain = with_slots(reading.filter, version=Values())
    if reading.beyond:
        return f"the catalog has no {joined(list(dict.fromkeys(reading.beyond)), 'or')}"
    if reading.unknown:
        return f'the catalog has nothing called "{reading.unknown}"'
    if unused and (reading.guards or not _is_worth_telling(reading.filter)):
        return f"I do not know what {_quoted(unused)} means here"
    return "I do not understand what is asked for" if replace(plain, limit=None) == Filter() else ""


def _corrected(reading: Reading, found: Answered) -> Answered:
    """The answer with the name that was taken, and the others that fit too."""
    several = [each for each in reading.corrected if each.others]
    taken = joined([f'"{each.written}" as {each.title}' for each in several])
    others = joined([other for each in several for other in each.others])
    also = f" (I read {taken}; {others} would fit too.)" if several else ""
    candidates = tuple(title for each in several for title in (each.title, *each.others))
    return replace(found, confidence=CORRECTED, text=found.text + also, candidates=candidates)


def _is_worth_telling(filter: Filter) -> bool:
    """Whether the rows of a reading that did not use every word are of use: there are two conditions at least, and it
    is not one product of which something else was asked."""
    weights = [_WEIGHTS.get(name, 1) for name, _ in conditions(filter)]
    weight = sum(weights) + bool(filter.since or filter.until) + (filter.find != "products")
    is_list = filter.answer == "list" and len(filter.where.product.any) != 1
    return weight > 1 and (is_list or (filter.answer == "fields" and bool(filter.fields)))


async def _suggestions(store: Store, filter: Filter, at: datetime) -> tuple[str, ...]:
    """Questions about what was understood, each of which was tried and has an answer."""
    plain = Filter(where=filter.where, since=filter.since, until=filter.until, when=filter.when, channel=filter.channel)
    plain = with_slots(plain, version=Values())
    if not any(conditions(plain)):
        return ()
    tried: list[str] = []
    for question in await _questions(store, plain):
        reading = await read(store.database, question, at)
        is_same = plain.where.product.any or reading.filter.where == plain.where
        if reading.is_whole and is_same and await _has_rows(store.database, reading.filter):
            tried.append(question)
    return tuple(tried)


async def _questions(store: Store, plain: Filter) -> list[str]:
    titles = [each.detail.title for each in await facts(store.database, plain.where.product.any)]
    if len(titles) == 1:
        about = ("What is {}?", "What is the newest version of {}?", "What changed in {}?")
        return [each.format(titles[0]) for each in about]
    text = described(plain)
    return [f"Compare {joined(titles)}"] if titles else [f"Which {text} are there?", f"How many {text} are there?"]


_NOUNS = {"game": "games", "app": "apps", "tool": "tools"}
_PHRASES = {"platform": "on", "channel": "in", "tag": "tagged", "org": "by", "license": "licensed", "title": "titled",
    "text": "about", "product": "called", "version": "in version"}  # fmt: skip
_RELEASED = {"none": "with no release", "first": "first released", "last": "last released", "any": "released"}


def described(filter: Filter) -> str:
    """The filter in words that mean the same when they are asked."""
    where = filter.where
    noun = joined([_NOUNS[kind] for kind in where.kind.any], "or") or filter.find
    text = " ".join([*where.access.any, *where.tag.any[:1], noun])
    text += "".join(_condition(name, values) for name, values in conditions(filter))
    if filter.since or filter.until:
        text += f" {_RELEASED[filter.when]}"
        text += f" since {filter.since[:10]}" if filter.since else ""
        text += f" before {filter.until[:10]}" if filter.until else ""
    return text


def _condition(name: str, values: Values) -> str:
    phrase = _PHRASES.get(name, "")
    is_said = name in ("kind", "access") or (name == "tag" and len(values.any) == 1)
    said = [] if is_said else [PLATFORM_NAMES.get(each, each) for each in (*values.all, *values.any)]
    denied = [PLATFORM_NAMES.get(each, each) for each in values.none]
    text = f" {phrase} {joined(said, 'and' if values.all else 'or')}" if said else ""
    return f"{text} not {phrase} {joined(denied, 'or')}" if denied else text


def _quoted(texts: Sequence[str], separator: str = "") -> str:
    quoted = [f'"{text}"' for text in dict.fromkeys(texts)]
    return separator.join(quoted) if separator else joined(quoted, "or")


def joined(items: Sequence[str], last: str = "and") -> str:
    """a, b and c."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}" if items else ""


def _listed(names: Sequence[str], count: int) -> str:
    return f"{', '.join(names[:MAX_SHOWN])}, and {count - MAX_SHOWN} more" if count > MAX_SHOWN else joined(names)


def _day(at: clock.Instant) -> str:
    return clock.rfc3339(at)[:10]


async def facts(database: Database, slugs: Sequence[str]) -> list[Facts]:
    """The public products with these slugs, in their order."""
    statement = Statement()
    rows = await database.fetch(_DETAIL.format(slugs=statement.list(slugs)), *statement.values) if slugs else []
    known = [Facts(msgspec.json.decode(detail, type=ProductDetail), publisher) for detail, publisher in rows]
    by_slug = {each.detail.slug: each for each in known}
    return [by_slug[slug] for slug in slugs if slug in by_slug]


async def total(database: Database, asked: Filter) -> int:
    """How many rows there are, whatever the limit."""
    text, values = filter_queries.count(asked)
    return int((await database.scan(text, *values))[0][0])


async def _has_rows(database: Database, asked: Filter) -> bool:
    text, values = filter_queries.rows(asked, 1)
    return bool(await database.scan(text, *values))


async def _rows(database: Database, asked: Filter) -> list[Row]:
    text, values = filter_queries.rows(replace(asked, find="releases"), min(asked.limit or MAX_ROWS, MAX_ROWS))
    return [Row(*row) for row in await database.scan(text, *values)]


async def _products(database: Database, asked: Filter) -> list[tuple[str, str]]:
    text, values = filter_queries.rows(replace(asked, find="products"), min(asked.limit or MAX_ROWS, MAX_ROWS))
    return [(slug, title) for slug, title in await database.scan(text, *values)]


def _source(store: Store, slug: str, version: str | None = None) -> Source:
    address = f"{store.base_url}/products/{slug}"
    return Source(slug, version, address if version is None else f"{address}/releases")


def _of_releases(store: Store, rows: Sequence[Row]) -> tuple[Source, ...]:
    return tuple(dict.fromkeys(_source(store, row.slug, row.version) for row in rows))


async def run(store: Store, asked: Filter) -> Answered:
    """The answer to the filter."""
    ways = {"count": _count, "breakdown": _breakdown, "fields": _fields, "compare": _fields, "exists": _exists}
    return replace(await ways.get(asked.answer, _list)(store, asked), filter=asked)


async def _list(store: Store, asked: Filter) -> Answered:
    if asked.find == "publishers":
        return await _list_of_publishers(store, asked)
    if asked.find == "releases":
        found = await _rows(store.database, asked)
        return Answered("answered", _releases_text(found, asked), _of_releases(store, found), len(found))
    rows = await _products(store.database, asked)
    count = len(rows)
    text = f"{_listed([title for _, title in rows], count)}." if rows else "None: no product fits."
    if count > 1 and not asked.limit:
        # To count more of them would be to read all.
        text = f"{'At least ' if count == MAX_ROWS else ''}{count} products: {text}"
    return Answered("answered", text, tuple(_source(store, slug) for slug, _ in rows), count)


async def _list_of_publishers(store: Store, asked: Filter) -> Answered:
    text, values = filter_queries.rows(asked, min(asked.limit or MAX_ROWS, MAX_ROWS))
    found = [(name, count) for _, name, count in await store.database.scan(text, *values)]
    names = [f"{name} ({count})" if asked.order == "products" else name for name, count in found]
    text = f"{_listed(names, len(names))}." if names else "None: no publisher has such a product."
    return Answered("answered", text, total=len(names))


def _releases_text(rows: Sequence[Row], asked: Filter) -> str:
    if not rows:
        return "None: no published release fits."
    if len(rows) == 1 and asked.order in ("newest", "oldest"):
        row, which = rows[0], "latest" if asked.order == "newest" else "first"
        name = f"{row.title} {row.version} ({row.channel})"
        return f"The {which} release is {name}, published on {_day(row.published_at)}."
    names = [f"{row.title} {row.version} ({row.channel}, {_day(row.published_at)})" for row in rows]
    return f"{len(rows)} releases: {_listed(names, len(rows))}."


async def _count(store: Store, asked: Filter) -> Answered:
    count = await total(store.database, asked)
    noun = asked.find if count != 1 else asked.find[:-1]
    rows = await _products(store.database, asked) if asked.find == "products" and count else []
    return Answered("answered", f"{count} {noun}.", tuple(_source(store, slug) for slug, _ in rows), count)


async def _exists(store: Store, asked: Filter) -> Answered:
    """Yes or no: whether there is one; of named products, whether all of them are so."""
    named = (*asked.where.product.any, *asked.where.product.all)
    if asked.where.version and asked.order in ("newest", "oldest"):
        return await _is_extreme(store, asked)
    rows = await facts(store.database, named)
    if len(rows) > 1 and (asked.fields or asked.order != "title"):
        return await _is_alike(store, asked, rows)
    of_products = replace(asked, find="products", limit=None, order="title")
    wanted, least = (asked, 1) if asked.find == "releases" else (of_products, max(1, len(named)))
    found = await _list(store, wanted)
    if found.total >= least:
        return replace(found, text=f"Yes: {found.text}")
    about = "; ".join(map(_about, rows))
    text = f"No. {about}" if named else "No: there is none."
    return replace(found, text=text, sources=tuple(_source(store, each.detail.slug) for each in rows))


async def _is_alike(store: Store, asked: Filter, rows: Sequence[Facts]) -> Answered:
    """Whether the named products have the same fields; with an order, whether the first of them comes first."""
    sources = tuple(_source(store, each.detail.slug) for each in rows)
    texts = [_about(each, asked.fields) for each in rows]
    is_so = len({text.removeprefix(each.detail.title) for text, each in zip(texts, rows, strict=True)}) == 1
    text = " ".join(texts)
    if asked.order != "title":
        first = await _products(store.database, replace(asked, limit=1))
        is_so = [slug for slug, _ in first] == [rows[0].detail.slug]
        text = f"{first[0][1]} comes first." if first else "None of them fits."
    return Answered("answered", f"{'Yes' if is_so else 'No'}. {text}", sources, len(rows))


async def _is_extreme(store: Store, asked: Filter) -> Answered:
    """Whether the version is the newest or oldest of those that fit otherwise."""
    rows = await _rows(store.database, replace(with_slots(asked, version=Values()), limit=1))
    versions = [text.lower().removeprefix("v") for text in asked.where.version.any]
    is_so = any(row.version.lower().removeprefix("v") in versions for row in rows)
    text = f"{'Yes' if is_so else 'No'}. {_releases_text(rows, asked)}"
    return Answered("answered", text, _of_releases(store, rows), len(rows))


async def _breakdown(store: Store, asked: Filter) -> Answered:
    by = asked.by or "kind"
    counts = Counter(dict(await _counts_of_slot(store, asked, by)) if by in ("platform", "channel") else {})
    if not counts:
        text, values = filter_queries.breakdown(asked, _COLUMNS.get(by, "c.kind"))
        for value, count in await store.database.scan(text, *values):
            counts.update(dict.fromkeys(str(value).split() if by == "tag" else [str(value)], int(count)))
    shown = [f"{PLATFORM_NAMES.get(value, value)}: {count}" for value, count in counts.most_common(MAX_SHOWN) if count]
    return Answered("answered", f"{', '.join(shown) or 'None'}.", total=len(counts))


async def _counts_of_slot(store: Store, asked: Filter, name: str) -> list[tuple[str, int]]:
    held = slot(asked, name)
    narrowed = [(each, with_slots(asked, **{name: replace(held, all=(*held.all, each))})) for each in KNOWN[name]]
    return [(each, await total(store.database, filter)) for each, filter in narrowed]


async def _fields(store: Store, asked: Filter) -> Answered:
    """What is asked of each product: of its releases where versions, dates, notes or files are."""
    where = replace(asked.where, version=Values(), text=Values() if asked.where.product.any else asked.where.text)
    products = await _products(store.database, Filter(where=where, limit=MAX_SHOWN))
    if not products:
        return Answered("answered", "None: no product fits.")
    is_of_releases = all((len(products) > 1, _OF_RELEASES & {*asked.fields}))
    texts: list[str] = []
    sources: list[Source] = []
    for product in await facts(store.database, [slug for slug, _ in products]):
        text, of = await _fields_of(store, asked, product)
        if not is_of_releases or any(source.release for source in of):
            texts.append(text)
            sources += of
    words = _quoted((*asked.where.text.any, *asked.where.text.all)) or "this"
    refused = Answered("refused", f"I cannot tell: no release notes mention {words}.", confidence=0.0)
    return Answered("answered", " ".join(texts), tuple(sources), len(products)) if any(texts) else refused


async def _fields_of(store: Store, asked: Filter, product: Facts) -> tuple[str, list[Source]]:
    slug = product.detail.slug
    if asked.fields == ("channels",):
        return _newest_of_channels(store, asked, product)
    if asked.answer == "compare" or not _OF_RELEASES & {*asked.fields}:
        return _about(product, asked.fields if asked.answer == "fields" else ()), [_source(store, slug)]
    return await _releases_of(store, with_slots(asked, product=Values(any=(slug,))), product)


async def _releases_of(store: Store, asked: Filter, product: Facts) -> tuple[str, list[Source]]:
    is_open = not any((asked.where.version, asked.where.text, asked.since, asked.until))
    limit = asked.limit or (1 if is_open else MAX_OF_RANGE)
    rows = await _rows(store.database, replace(asked, limit=limit))
    if not rows:
        return _none_of(asked, product), [] if asked.where.text else [_source(store, product.detail.slug)]
    text = ". ".join([await _release(store, asked, row) for row in rows]).rstrip(".") + "."
    other = [name for name in asked.fields if name not in _OF_RELEASES]
    sources = [_source(store, row.slug, row.version) for row in rows]
    return f"{text} {_about(product, other)}" if other else text, sources


def _none_of(asked: Filter, product: Facts) -> str:
    versions = ", ".join((*asked.where.version.any, *asked.where.version.all))
    what = f"published version {versions}" if versions else "such published release"
    return "" if asked.where.text else f"{product.detail.title} has no {what}."


async def _release(store: Store, asked: Filter, row: Row) -> str:
    text = f"{row.title} {row.version} ({row.channel}) was published on {_day(row.published_at)}"
    if "notes" in asked.fields:
        head = f"{row.title} {row.version} ({row.channel}, {_day(row.published_at)})"
        text = f"{head}: {(row.notes or 'no notes')[:MAX_NOTES]}"
    if "artifacts" in asked.fields:
        files = await store.database.fetch(_FILES, row.slug, row.version)
        names = [f"{name} ({size} bytes, sha256 {digest}, {platform})" for name, size, digest, platform in files]
        text += f"; files: {', '.join(names) or 'none'}"
    return text


def _newest_of_channels(store: Store, asked: Filter, product: Facts) -> tuple[str, list[Source]]:
    wanted = (*asked.channel.any, *asked.channel.all)
    found = [each for each in product.detail.channels if each.channel in (wanted or CHANNELS)]
    names = joined([f"{each.version} ({each.channel}, {each.published_at[:10]})" for each in found])
    text = f"{product.detail.title} has releases in {len(found)} channel{'s' * (len(found) != 1)}: {names or 'none'}."
    return text, [_source(store, product.detail.slug, each.version) for each in found]


def _about(product: Facts, fields: Sequence[str] = ()) -> str:
    """What is said of a product: the fields, or all of them."""
    detail = product.detail
    platforms = [PLATFORM_NAMES[name] for name in detail.platforms]
    channels = joined([f"{each.channel} ({each.version})" for each in detail.channels])
    tags = ", ".join(detail.tags)
    parts = {
        "kind": f"is {'an' if detail.kind == 'app' else 'a'} {detail.kind}",
        "org": f"is published by {product.publisher}",
        "platforms": f"runs on {joined(platforms)} ({len(platforms)} platform{'s' * (len(platforms) != 1)})",
        "access": {"free": "is free", "entitled": "has to be owned (entitled)"}[detail.access],
        "license": _or_none("has the license {}", detail.license, "states no license"),
        "homepage": _or_none("has the homepage {}", detail.homepage, "has no homepage"),
        "tags": _or_none("is tagged {}", tags, "has no tags"),
        "channels": _or_none("has releases in {}", channels, "has no releases"),
    }
    if fields:
        return f"{detail.title} {joined([parts[name] for name in fields if name in parts])}."
    newest = [f"{each.version} ({each.channel}, {each.published_at[:10]})" for each in detail.channels[:1]]
    also = "".join(f"; its newest version is {each}" for each in newest)
    return f"{detail.title} {joined([*parts.values()])}{also}. {detail.description or ''}".rstrip()


def _or_none(text: str, value: str | None, otherwise: str) -> str:
    return text.format(value) if value else otherwise
