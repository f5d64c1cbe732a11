"""Answers about versions beside each other: is it the newest, is it newer, which of them has something in its notes."""

from collections.abc import Sequence

from countersign.distribution.ask import phrases, queries
from countersign.distribution.ask.particular_replies import known
from countersign.distribution.ask.queries import Facts, Release
from countersign.distribution.ask.query import Beats, CountOf, IsNewer, IsNewest, Noting, Same
from countersign.distribution.ask.replies import MOST_ROWS, Reply, day
from countersign.distribution.ask.statements import forms
from countersign.distribution.catalog.words import words
from countersign.kernel.database.port import Database


async def reply(database: Database, query: IsNewest | IsNewer | Noting | CountOf | Same | Beats) -> Reply:
    """The answer to such a question.

    Raises:
        UnknownProduct: one of the products is none of the public ones.
    """
    match query:
        case IsNewest():
            return await isnewest_release(database, query)
        case IsNewer():
            return await is_newer(database, query)
        case Noting():
            return await noting(database, query)
        case CountOf():
            return await count_of(database, query)
        case Same():
            return await same(database, query)
        case Beats():
            return await beats(database, query)


async def isnewest_release(database: Database, query: IsNewest) -> Reply:
    """Whether the version is the newest, and else which one is."""
    facts = await known(database, query.product)
    asked = await queries.release(database, query.product, query.version)
    found = await newest_release(database, query.product, query.channel)
    if asked is None or found is None:
        return unknown(facts, query.version)
    value = asked.version == found.version
    channel = f"{query.channel} " if query.channel else ""
    text = f"the latest {channel}version of {facts.detail.title} is {release_told(found)}"
    return yes_no(facts, text, found, value=value)


async def is_newer(database: Database, query: IsNewer) -> Reply:
    """Whether the one version is newer than the other, or whether any is."""
    facts = await known(database, query.product)
    than = await queries.release(database, query.product, query.than)
    if query.version is None:
        one = await newest_release(database, query.product, query.channel)
    else:
        one = await queries.release(database, query.product, query.version)
    if than is None or one is None:
        return unknown(facts, query.than if than is None else query.version or "")
    value = one.published_at > than.published_at
    title = facts.detail.title
    text = f"{title} {than.version} was published on {day(than.published_at)}, {release_told(one)}"
    return yes_no(facts, text, one, value=value)


async def noting(database: Database, query: Noting) -> Reply:
    """The releases that tell of it, and their notes."""
    facts = await known(database, query.product)
    found = await queries.releases(database, query.product, order=("date", "oldest"), limit=MOST_ROWS)
    held = [each for each in found if tells(each, query.words)]
    asked, title, slug = " ".join(query.words), facts.detail.title, facts.detail.slug
    if not held:
        text = f'I cannot tell: no published release of {title} has "{asked}" in its notes.'
        return Reply("releases", text, sources=((slug, None),))
    pairs = tuple((slug, each.version) for each in held)
    said = " ".join(f"{title} {release_told(each)}: {(each.notes or '').strip()}" for each in held)
    return Reply("releases", said, pairs, len(pairs), None, pairs)


def tells(release: Release, asked: Sequence[str]) -> bool:
    """Whether the release's notes have every word, in singular or plural."""
    said = {*words(release.notes or "")}
    wanted = [{*forms(word)} for text in asked for word in words(text)]
    return bool(wanted) and all(ways & said for ways in wanted)


async def count_of(database: Database, query: CountOf) -> Reply:
    """How many it has, and which."""
    detail = (await known(database, query.product)).detail
    held = {
        "platforms": [phrases.NAMES[each] for each in detail.platforms],
        "tags": [*detail.tags],
        "channels": [each.channel for each in detail.channels],
    }[query.of]
    noun = query.of if len(held) != 1 else query.of[:-1]
    text = f"{detail.title} has {len(held)} {noun}{': ' if held else ''}{phrases.joined(held)}."
    return Reply("count", text, (), len(held), None, ((detail.slug, None),))


async def same(database: Database, query: Same) -> Reply:
    """Whether they are the same, and how it is with each."""
    described = [await known(database, slug) for slug in query.products]
    value = (len({_seen(facts, query.aspect) for facts in described}) == 1) != query.differ
    said = "; ".join(f"{facts.detail.title}: {_shown(facts, query.aspect)}" for facts in described)
    slugs = tuple((facts.detail.slug,) for facts in described)
    sources = tuple((slug, None) for (slug,) in slugs)
    return Reply("yes_no", f"{'Yes' if value else 'No'}. {said}.", slugs, len(slugs), value=value, sources=sources)


async def beats(database: Database, query: Beats) -> Reply:
    """Whether it is more, later or earlier, and how it is with each."""
    described = [await known(database, slug) for slug in query.products]
    found = [await _measured(database, facts, query.by) for facts in described]
    first, second = (value for value, _ in found)
    value = _is_beyond(first, second, is_less=query.least or query.by == "debut")
    said = "; ".join(f"{facts.detail.title}: {told}" for facts, (_, told) in zip(described, found, strict=True))
    slugs = tuple((facts.detail.slug,) for facts in described)
    sources = tuple((slug, None) for (slug,) in slugs)
    return Reply("yes_no", f"{'Yes' if value else 'No'}. {said}.", slugs, len(slugs), value=value, sources=sources)


def _is_beyond(first: int, second: int, *, is_less: bool) -> bool:
    """Nothing is beyond what there is none of."""
    return bool(first and second) and (first < second if is_less else first > second)


async def _measured(database: Database, facts: Facts, by: str) -> tuple[int, str]:
    """What it is compared by, as a number and in words."""
    if by == "platforms":
        return len(facts.detail.platforms), phrases.platforms([*facts.detail.platforms])
    if by == "tags":
        return len(facts.detail.tags), ", ".join(facts.detail.tags) or "no tags"
    order = ("date", "oldest") if by == "debut" else ("date", "newest")
    found = await queries.releases(database, facts.detail.slug, order=order, limit=MOST_ROWS)
    if by == "releases":
        return len(found), f"{len(found)} releases"
    return (found[0].published_at, release_told(found[0])) if found else (0, "no published release")


def _seen(facts: Facts, aspect: str) -> object:
    detail = facts.detail
    seen: dict[str, object] = {
        "publisher": detail.org,
        "license": detail.license,
        "platforms": frozenset(detail.platforms),
        "tags": frozenset(detail.tags),
        "kind": detail.kind,
        "access": detail.access,
    }
    return seen[aspect]


def _shown(facts: Facts, aspect: str) -> str:
    detail = facts.detail
    return {
        "publisher": facts.publisher,
        "license": detail.license or "no license told",
        "platforms": phrases.platforms([*detail.platforms]),
        "tags": ", ".join(detail.tags) or "no tags",
        "kind": detail.kind,
        "access": "free" if detail.access == "free" else "not free",
    }[aspect]


async def newest_release(database: Database, slug: str, channel: str | None) -> Release | None:
    """The release of the product (in the channel) that was published last; None where there is none."""
    found = await queries.releases(database, slug, channel=channel or "", order=("date", "newest"), limit=1)
    return found[0] if found else None


def release_told(release: Release) -> str:
    """Its version, channel and day."""
    return f"{release.version} ({release.channel}, {day(release.published_at)})"


def yes_no(facts: Facts, text: str, about: Release, *, value: bool) -> Reply:
    """Yes or No, and why; the release is where that is from."""
    slug = facts.detail.slug
    said = f"{'Yes' if value else 'No'}: {text}."
    return Reply("yes_no", said, ((slug,),), 1, value=value, sources=((slug, about.version),))


def unknown(facts: Facts, version: str) -> Reply:
    """That there is no such version to tell of."""
    slug = facts.detail.slug
    return Reply("releases", f"{facts.detail.title} has no published version {version}.", sources=((slug, None),))
