"""Statements of the questions for the most and the fewest, and for the newest release of each of several products."""

from countersign.distribution.ask.query import Most, NewestOfEach
from countersign.distribution.ask.statements import Built, condition
from countersign.distribution.catalog.public import PLATFORMS
from countersign.distribution.catalog.statements import Statement

_RELEASES = """
    (
        SELECT count(*) FROM release r
        WHERE r.product_id = c.product_id AND r.status = 'published'
          AND ({channel} = '' OR r.channel = {channel})
    )
"""
_PLATFORMS = f"({' + '.join(f'((c.platforms >> {place}) & 1)' for place in range(len(PLATFORMS)))})"
_TAGS = "(length(c.tags) - length(replace(c.tags, ' ', '')))"
"""The tags stand between blanks, so that more blanks are more tags."""
MOST_PRODUCTS = """
    WITH counted AS (
        SELECT c.slug, c.title, {number} AS held FROM catalog_public c WHERE {where}
    )
    SELECT slug, title, held FROM counted
    WHERE held = (SELECT {extreme}(held) FROM counted)
    ORDER BY title, slug
    LIMIT {limit}
"""
MOST_ORGS = """
    WITH counted AS (
        SELECT c.org_slug, count(*) AS held FROM catalog_public c WHERE {where} GROUP BY c.org_slug
    )
    SELECT o.slug, o.name, d.held
    FROM counted d
    JOIN organisation o ON o.slug = d.org_slug
    WHERE d.held = (SELECT {extreme}(held) FROM counted)
    ORDER BY o.name, o.slug
    LIMIT {limit}
"""
NEWEST_OF_EACH = """
    SELECT slug, title, version, channel, published_at
    FROM (
        SELECT c.slug, c.title, r.version, r.channel, r.published_at,
               row_number() OVER (
                   PARTITION BY r.product_id
                   ORDER BY r.published_at {way}, r.sort_key {way}, r.id {way}
               ) AS place
        FROM catalog_public c
        JOIN release r ON r.product_id = c.product_id
        WHERE r.status = 'published' AND ({channel} = '' OR r.channel = {channel}) AND {where}
    ) AS ranked
    WHERE place = 1
    ORDER BY title, slug
    LIMIT {limit}
"""


def most(asked: Most, limit: int) -> Built:
    """The products or organisations that have the most: slug, title or name, how many; tags are not told exactly."""
    statement = Statement()
    extreme = "min" if asked.least else "max"
    if asked.of == "products":
        where = condition(statement, asked.where)
        return MOST_ORGS.format(where=where, extreme=extreme, limit=statement.value(limit)), statement.values
    number = {"platforms": _PLATFORMS, "tags": _TAGS, "releases": _RELEASES}[asked.of]
    if asked.of == "releases":
        number = number.format(channel=statement.value(asked.channel or ""))
    where = condition(statement, asked.where)
    text = MOST_PRODUCTS.format(number=number, where=where, extreme=extreme, limit=statement.value(limit))
    return text, statement.values


def newest_of_each(asked: NewestOfEach, limit: int) -> Built:
    """One release of each product: slug, title, version, channel, published_at."""
    statement = Statement()
    text = NEWEST_OF_EACH.format(
        way="DESC" if asked.order == "newest" else "ASC",
        channel=statement.value(asked.channel or ""),
        where=condition(statement, asked.where),
        limit=statement.value(limit),
    )
    return text, statement.values
