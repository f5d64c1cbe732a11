"""Answers whether something is so: of all products of a kind, of the newest release, of two releases, of notes."""

from countersign.distribution.ask import phrases, queries, replies
from countersign.distribution.ask.particular_replies import known
from countersign.distribution.ask.query import AllAre, NewestIs, Precedes, Products, Tells
from countersign.distribution.ask.replies import Reply, day, told
from countersign.distribution.ask.statements import instant
from countersign.distribution.ask.told import every, opposite
from countersign.distribution.ask.version_replies import newest_release, release_told, tells, unknown, yes_no
from countersign.kernel.database.port import Database


async def reply(database: Database, query: AllAre | NewestIs | Precedes | Tells) -> Reply:
    """The answer to such a question.

    Raises:
        UnknownProduct: one of the products is none of the public ones.
    """
    match query:
        case AllAre():
            return await all_are(database, query)
        case NewestIs():
            return await newest_is(database, query)
        case Precedes():
            return await precedes(database, query)
        case Tells():
            return await in_notes(database, query)


async def all_are(database: Database, query: AllAre) -> Reply:
    """Whether it is true of all of them, and else of which it is not; of none nothing can be said."""
    about = phrases.products(query.where)
    found = await replies.listed(database, Products(query.where))
    if not found.total:
        return Reply("products", f"There are no {about}.")
    others = await replies.listed(database, Products(every([query.where, opposite(query.told)])))
    clause = phrases.clause(query.told)
    if others.total:
        text = f"No: of {found.total} {about}, {others.total} are not among those that {clause}: "
        text += f"{told(others.items, others.total)}."
        return Reply("yes_no", text, others.rows, others.total, value=False, sources=others.sources)
    text = f"Yes: all {found.total} {about} {clause}: {told(found.items, found.total)}."
    return Reply("yes_no", text, found.rows, found.total, value=True, sources=found.sources)


async def newest_is(database: Database, query: NewestIs) -> Reply:
    """Whether the newest release is in the channel and in the range, and which it is."""
    facts = await known(database, query.product)
    found = await newest_release(database, query.product, query.of)
    if found is None:
        return unknown(facts, query.of or "at all")
    value = query.channel in (None, found.channel)
    value = value and (query.since is None or instant(query.since) <= found.published_at)
    value = value and (query.until is None or found.published_at < instant(query.until))
    channel = f"{query.of} " if query.of else ""
    text = f"the latest {channel}version of {facts.detail.title} is {release_told(found)}"
    return yes_no(facts, text, found, value=value)


async def precedes(database: Database, query: Precedes) -> Reply:
    """Whether the first was published before the second, and when each was."""
    described = [await known(database, slug) for slug in query.products]
    found = [
        await queries.release(database, slug, version)
        for slug, version in zip(query.products, query.versions, strict=True)
    ]
    first, second = found
    if first is None or second is None:
        at = 0 if first is None else 1
        return unknown(described[at], query.versions[at])
    value = first.published_at < second.published_at
    said = ", ".join(
        f"{facts.detail.title} {one.version} was published on {day(one.published_at)}"
        for facts, one in zip(described, (first, second), strict=True)
    )
    sources = tuple((slug, one.version) for slug, one in zip(query.products, (first, second), strict=True))
    rows = tuple((slug,) for slug in query.products)
    return Reply("yes_no", f"{'Yes' if value else 'No'}: {said}.", rows, len(rows), value=value, sources=sources)


async def in_notes(database: Database, query: Tells) -> Reply:
    """That its notes tell of it. What they do not tell of may be in it all the same."""
    facts = await known(database, query.product)
    found = await queries.release(database, query.product, query.version)
    if found is None:
        return unknown(facts, query.version)
    notes = (found.notes or "").strip()
    if not tells(found, query.words):
        asked = " ".join(query.words)
        text = f'I cannot tell: the notes of {facts.detail.title} {found.version} do not have "{asked}".'
        return Reply("releases", text, sources=((facts.detail.slug, None),))
    text = f"the notes of {facts.detail.title} {found.version} say: {notes.rstrip('.')}"
    return yes_no(facts, text, found, value=True)
