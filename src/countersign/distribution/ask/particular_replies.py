"""Answers about particular products: their facts are read and put into words."""

from collections.abc import Callable
from typing import TypeAlias

from countersign.distribution.ask import extreme_replies, phrases, queries, replies, statements
from countersign.distribution.ask.queries import Facts, Release
from countersign.distribution.ask.query import (
    About,
    Aspect,
    Changes,
    Check,
    Compare,
    HasVersion,
    Most,
    Newest,
    WhenReleased,
)
from countersign.distribution.ask.query import Products as Asked
from countersign.distribution.ask.replies import MOST_ROWS, Reply, day
from countersign.distribution.ask.told import (
    AnyCondition,
    Either,
    Every,
    Named,
    Not,
    On,
    OnlyOn,
    Released,
    every,
    opposite,
)
from countersign.kernel import clock
from countersign.kernel.database.port import Database

MOST_NOTES = 20
LONGEST_NOTES = 4_000


Particular: TypeAlias = Newest | WhenReleased | HasVersion | Changes | Check | Compare | About


class UnknownProduct(Exception):
    """No public product has the slug of a typed query."""


async def known(database: Database, slug: str) -> Facts:
    """The product.

    Raises:
        UnknownProduct: there is none.
    """
    found = await queries.facts(database, slug)
    if found is None:
        raise UnknownProduct(slug)
    return found


def _release_of(title: str, found: Release) -> str:
    return f"{title} {found.version} ({found.channel})"


def _reply(slug: str, found: Release, text: str) -> Reply:
    pair = (slug, found.version)
    return Reply("releases", text, (pair,), 1, None, (pair,))


async def reply(database: Database, query: Particular) -> Reply:
    """The answer to a question about particular products.

    Raises:
        UnknownProduct: one of them is none of the public ones.
    """
    match query:
        case Newest():
            return await newest(database, query)
        case WhenReleased():
            return await when(database, query)
        case HasVersion():
            return await has_version(database, query)
        case Changes():
            return await changes(database, query)
        case Check():
            return await check(database, query)
        case Compare():
            return await compare(database, query)
        case About():
            return await about(database, query)


async def newest(database: Database, query: Newest) -> Reply:
    """The newest or oldest release, and the one the other order names where that differs."""
    facts = await known(database, query.product)
    detail, channel = facts.detail, query.channel or ""
    if query.platform is not None and query.platform not in detail.platforms:
        said = f"{detail.title} does not run on {phrases.NAMES[query.platform]}."
        return Reply("releases", said, sources=((detail.slug, None),))
    orders = (query.by, query.order), ("date" if query.by == "version" else "version", query.order)
    found, other = [
        await queries.releases(
            database, detail.slug, channel=channel, platform=query.platform or "", order=order, limit=1
        )
        for order in orders
    ]
    where = f" for {phrases.NAMES[query.platform]}" if query.platform else ""
    if not found:
        return _no_release(facts, query.channel, where)
    best = found[0]
    text = _newest_text(query, f"{detail.title}{where}", best)
    if other[0].version != best.version:
        text += f". {_other(query, other[0])}"
    return _reply(detail.slug, best, f"{text}.")


def _no_release(facts: Facts, channel: str | None, where: str = "") -> Reply:
    kind = f"{channel} release" if channel else "release"
    text = f"{facts.detail.title} has no published {kind}{where}."
    return Reply("releases", text, sources=((facts.detail.slug, None),))


def _newest_text(query: Newest, about: str, best: Release) -> str:
    which = "latest" if query.order == "newest" else "first"
    channel = f"{query.channel} " if query.channel else ""
    if query.about == "moment":
        text = f"The {which} {channel}release of {about}, {best.version}"
        return f"{text}{'' if channel else f' ({best.channel})'}, was published on {day(best.published_at)}"
    noun = "version" if query.by == "version" else "release"
    text = f"The {which} {channel}{noun} of {about} is {best.version}"
    return f"{text} ({best.channel}), published on {day(best.published_at)}"


def _other(query: Newest, other: Release) -> str:
    """What the other order of releases has first."""
    if query.by == "version":
        late = "later" if query.order == "newest" else "earlier"
        return f"{other.version} ({other.channel}) was published {late}, on {day(other.published_at)}"
    high = "highest" if query.order == "newest" else "lowest"
    return f"The {high} version is {other.version} ({other.channel}), published on {day(other.published_at)}"


async def _version(database: Database, facts: Facts, version: str) -> Release | None:
    return await queries.release(database, facts.detail.slug, version)


def _without(facts: Facts, version: str) -> str:
    return f"{facts.detail.title} has no published version {version}."


async def when(database: Database, query: WhenReleased) -> Reply:
    """When a version was published, and in which channel."""
    facts = await known(database, query.product)
    found = await _version(database, facts, query.version)
    if found is None:
        return Reply("releases", _without(facts, query.version), sources=((facts.detail.slug, None),))
    moment = clock.rfc3339(found.published_at)
    text = f"{_release_of(facts.detail.title, found)} was published on {moment[:10]} at {moment[11:16]} UTC."
    return _reply(facts.detail.slug, found, text)


async def has_version(database: Database, query: HasVersion) -> Reply:
    """Whether the product has the version, in the channel where one is named."""
    facts = await known(database, query.product)
    slug = facts.detail.slug
    found = await _version(database, facts, query.version)
    if found is None:
        text = f"No, {_without(facts, query.version)}"
        return Reply("yes_no", text, ((slug,),), 1, value=False, sources=((slug, None),))
    is_so = query.channel in (None, found.channel)
    is_then = query.since is None or statements.instant(query.since) <= found.published_at
    is_then = is_then and (query.until is None or found.published_at < statements.instant(query.until))
    text = f"{_release_of(facts.detail.title, found)} was published on {day(found.published_at)}"
    if not is_so:
        text = f"{facts.detail.title} {found.version} is in the {found.channel} channel, not in {query.channel}"
    value = is_so and is_then
    sources = ((slug, found.version),)
    return Reply("yes_no", f"{'Yes' if value else 'No'}: {text}.", ((slug,),), 1, value=value, sources=sources)


async def changes(database: Database, query: Changes) -> Reply:
    """What the notes of one release say, or those of several one after another."""
    facts = await known(database, query.product)
    if query.since is not None or query.until is not None:
        return await _changes_when(database, facts, query)
    if query.after is not None:
        return await _changes_since(database, facts, query.after, query.version)
    if query.version is None:
        found = await queries.releases(
            database, query.product, channel=query.channel or "", order=("date", query.order), limit=1
        )
        if not found:
            return _no_release(facts, query.channel)
        release = found[0]
    else:
        wanted = await _version(database, facts, query.version)
        if wanted is None:
            return Reply("releases", _without(facts, query.version), sources=((query.product, None),))
        release = wanted
    return _reply(query.product, release, _notes(facts, release))


def _notes(facts: Facts, release: Release) -> str:
    said = (release.notes or "").strip()[:LONGEST_NOTES]
    head = f"{_release_of(facts.detail.title, release)}, published on {day(release.published_at)}"
    return f"{head}: {said}" if said else f"{head}, has no notes."


def _is_within(release: Release, query: Changes) -> bool:
    """Whether it was published in the range."""
    is_late = query.since is None or statements.instant(query.since) <= release.published_at
    return is_late and (query.until is None or release.published_at < statements.instant(query.until))


async def _changes_when(database: Database, facts: Facts, query: Changes) -> Reply:
    slug, title = facts.detail.slug, facts.detail.title
    found = await queries.releases(
        database, slug, channel=query.channel or "", order=("date", "oldest"), limit=MOST_ROWS
    )
    held = [each for each in found if _is_within(each, query)]
    if not held:
        return Reply("releases", f"{title} has no release in that time.", sources=((slug, None),))
    pairs = tuple((slug, release.version) for release in held)
    text = " ".join(_notes(facts, release) for release in held[-MOST_NOTES:])
    return Reply("releases", text, pairs, len(pairs), None, pairs)


async def _changes_since(database: Database, facts: Facts, after: str, until: str | None) -> Reply:
    slug = facts.detail.slug
    ends: list[Release] = []
    for version in (after, until):
        if version is None:
            found = (await queries.releases(database, slug, order=("version", "newest"), limit=1))[:1]
        else:
            one = await _version(database, facts, version)
            found = [one] if one else []
        if not found:
            return Reply("releases", _without(facts, version or ""), sources=((slug, None),))
        ends += found
    first, last = sorted(ends, key=lambda release: release.sort_key)
    found = await queries.between(database, slug, first.sort_key, last.sort_key, MOST_ROWS)
    if not found:
        return Reply("releases", f"{facts.detail.title} has no release after {first.version}.", sources=((slug, None),))
    pairs = tuple((slug, release.version) for release in found)
    notes = " ".join(_notes(facts, release) for release in found[-MOST_NOTES:])
    text = f"From {first.version} to {last.version} of {facts.detail.title}: {notes}"
    return Reply("releases", text, pairs, len(pairs), None, pairs)


async def check(database: Database, query: Check) -> Reply:
    """Yes or No first, and how it is with each of the products."""
    described = [await known(database, slug) for slug in query.products]
    slugs = [facts.detail.slug for facts in described]
    text, values = statements.products(Asked(every([_any_of(slugs), query.where])), MOST_ROWS)
    true_of = {slug for slug, _ in await database.scan(text, *values)}
    value = all(slug in true_of for slug in slugs)
    said: list[str] = []
    for facts in described:
        where = query.where if facts.detail.slug in true_of else opposite(query.where)
        said.append(f"{facts.detail.title} {phrases.clause(where, is_one=True)}")
        said += _besides(facts, query.where)
    return Reply(
        "yes_no",
        f"{'Yes' if value else 'No'}: {'. '.join(said)}.",
        tuple((slug,) for slug in slugs),
        len(slugs),
        value,
        tuple((slug, None) for slug in slugs),
    )


def _any_of(slugs: list[str]) -> AnyCondition:
    named = [Named(slug) for slug in slugs]
    return named[0] if len(named) == 1 else Either(tuple(named))


def _besides(facts: Facts, where: AnyCondition) -> list[str]:
    """What a good answer adds: all platforms, or the newest release of each channel."""
    if _asks(where, On) or _asks(where, OnlyOn):
        return [f"It runs on {phrases.platforms([*facts.detail.platforms])}"]
    if _asks(where, Released):
        return [f"Its newest releases: {_channels(facts)}" if facts.detail.channels else "It has no published release"]
    return []


def _asks(where: AnyCondition, about: type[On | OnlyOn | Released]) -> bool:
    if isinstance(where, Every | Either):
        return any(_asks(each, about) for each in where.of)
    return _asks(where.of, about) if isinstance(where, Not) else isinstance(where, about)


def _channels(facts: Facts) -> str:
    return phrases.joined(
        [f"{each.channel} {each.version} ({each.published_at[:10]})" for each in facts.detail.channels]
    )


def _article(facts: Facts) -> str:
    return f"{'an' if facts.detail.kind == 'app' else 'a'} {facts.detail.kind}"


def _summary(facts: Facts) -> str:
    detail = facts.detail
    said = f" {detail.description.strip()}" if detail.description and detail.description.strip() else ""
    return (
        f"{detail.title} is {_article(facts)} by {facts.publisher} for {phrases.platforms([*detail.platforms])}."
        f"{said[:LONGEST_NOTES]}"
    )


async def about(database: Database, query: About) -> Reply:
    """What the catalog says of the product in one respect."""
    facts = await known(database, query.product)
    text = _SAID[query.aspect](facts)
    return Reply("text", text, ((facts.detail.slug,),), 1, None, ((facts.detail.slug, None),))


def _tags(facts: Facts) -> str:
    title, tags = facts.detail.title, facts.detail.tags
    return f"{title} is tagged {phrases.joined(tags)}." if tags else f"{title} has no tags."


def _in_channels(facts: Facts) -> str:
    if not facts.detail.channels:
        return f"{facts.detail.title} has no published release."
    return f"{facts.detail.title} has releases in these channels: {_channels(facts)}."


def _license(facts: Facts) -> str:
    title, name = facts.detail.title, facts.detail.license
    return f"{title} is licensed under {name}." if name else f"The catalog names no license of {title}."


def _homepage(facts: Facts) -> str:
    title, address = facts.detail.title, facts.detail.homepage
    return f"The homepage of {title} is {address} ." if address else f"The catalog names no homepage of {title}."


_SAID: dict[Aspect, Callable[[Facts], str]] = {
    "description": _summary,
    "publisher": lambda facts: f"{facts.detail.title} is published by {facts.publisher}.",
    "platforms": lambda facts: f"{facts.detail.title} runs on {phrases.platforms([*facts.detail.platforms])}.",
    "tags": _tags,
    "channels": _in_channels,
    "license": _license,
    "kind": _summary,
    "homepage": _homepage,
    "access": lambda facts: f"{facts.detail.title} is {'free' if facts.detail.access == 'free' else 'not free'}.",
    "added": lambda facts: f"{facts.detail.title} was added on {facts.detail.created_at[:10]}.",
}


async def compare(database: Database, query: Compare) -> Reply:
    """The facts of the products beside each other."""
    described = [await known(database, slug) for slug in dict.fromkeys(query.products)]
    texts = [_compared(facts) for facts in described]
    if isinstance(query.which, Most):
        texts.insert(0, (await extreme_replies.most(database, query.which)).text)
    elif query.which is not None:
        texts.insert(0, (await replies.which(database, query.which)).text)
    slugs = tuple((facts.detail.slug,) for facts in described)
    return Reply("text", " ".join(texts), slugs, len(slugs), None, tuple((slug, None) for (slug,) in slugs))


def _compared(facts: Facts) -> str:
    detail = facts.detail
    parts = [
        f"{_article(facts)} by {facts.publisher}",
        f"runs on {phrases.platforms([*detail.platforms])}",
        f"newest releases: {_channels(facts)}" if detail.channels else "no published release",
        f"tags: {', '.join(detail.tags)}" if detail.tags else "no tags",
        f"license: {detail.license}" if detail.license else "no license told",
        "free" if detail.access == "free" else "not free",
    ]
    return f"{detail.title}: {'; '.join(parts)}."
