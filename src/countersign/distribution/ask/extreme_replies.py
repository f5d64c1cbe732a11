"""Answers about the most and the fewest, and about the newest release of each of several products."""

from countersign.distribution.ask import extremes, phrases
from countersign.distribution.ask.query import Most, NewestOfEach
from countersign.distribution.ask.replies import MOST_ROWS, Reply, day, told
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database


async def most(database: Database, asked: Most) -> Reply:
    """Which has the most; all that do where several are equal."""
    text, values = extremes.most(asked, MOST_ROWS)
    found = await database.scan(text, *values)
    if not found:
        return Reply("products", f"There are no {phrases.products(asked.where)}.")
    slugs = tuple((str(slug),) for slug, _, _ in found)
    names = told([name for _, name, _ in found], len(found))
    which = "fewest" if asked.least else "most"
    if asked.of == "products":
        said = f"The {which} {phrases.products(asked.where)} are by {names}: {found[0][2]}."
        return Reply("text", said, slugs, len(slugs))
    channel = f"{asked.channel} " if asked.channel else ""
    number = "" if asked.of == "tags" else f" ({found[0][2]})"
    verb = "has" if len(found) == 1 else "have"
    said = f"Of all {phrases.products(asked.where)}, {names} {verb} the {which} {channel}{asked.of}{number}."
    return Reply("products", said, slugs, len(slugs), None, tuple((slug, None) for (slug,) in slugs))


async def newest_of_each(database: Database, asked: NewestOfEach) -> Reply:
    """The newest release of each product that has any."""
    text, values = extremes.newest_of_each(asked, MOST_ROWS)
    found = await database.scan(text, *values)
    channel = f"{asked.channel} " if asked.channel else ""
    about = phrases.products(asked.where)
    if not found:
        return Reply("releases", f"There are no {channel}releases of {about}.")
    pairs = tuple((str(slug), str(version)) for slug, _, version, _, _ in found)
    items = [f"{title} {version} ({channel}, {day(Instant(at))})" for _, title, version, channel, at in found]
    said = f"The {asked.order} {channel}releases of {about}: {told(items, len(items))}."
    return Reply("releases", said, pairs, len(pairs), None, pairs)
