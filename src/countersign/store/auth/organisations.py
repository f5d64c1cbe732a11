"""Organisations: creation, settings and usage, and the selection of the organisation that a request is about."""

import re
import unicodedata

from countersign.kernel import clock, ids
from countersign.kernel.database.port import Database, Reader, Transaction
from countersign.kernel.errors import Refused, invalid_member, invalid_parameter
from countersign.store.auth import queries
from countersign.store.auth.authentication import InsufficientScope
from countersign.store.auth.callers import Caller
from countersign.store.auth.queries import Organisation
from countersign.store.auth.schemas import Downloaded


async def organisation_of(reader: Reader, caller: Caller, slug: str | None, scope: str) -> Organisation:
    """Return the organisation with this slug. Without a slug, return the only organisation in which the caller has the
    scope.

    Raises:
        InsufficientScope: the caller does not have the scope in the organisation, or the organisation does not exist.
        InvalidRequest: no organisation is named, and the caller has the scope in several.
    """
    allowed_orgs = caller.orgs_allowing(scope)
    if slug is not None:
        org = await queries.organisation_with_slug(reader, slug)
        if org is None or org.id not in allowed_orgs:
            raise InsufficientScope(f"this requires the scope {scope} in the organisation {slug}")
        return org
    if len(allowed_orgs) > 1:
        raise invalid_parameter("org", "is required because you belong to several organisations")
    org = await queries.organisation(reader, allowed_orgs[0]) if allowed_orgs else None
    if org is None:
        raise InsufficientScope(f"this requires the scope {scope} in an organisation")
    return org


SLUG = re.compile(r"[a-z0-9-]{1,64}")
# Unicode characters that print nothing. A name must not contain them, because a name that consists of them would leave
# the title of a consent page empty.
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\U00013441\U00013442\U0001d159]")
# A name must contain a letter, number, punctuation mark or symbol, because combining marks and spaces print nothing by
# themselves.
_VISIBLE_CATEGORIES = frozenset("LNPS")
USAGE = """
    SELECT
        (SELECT count(*) FROM product WHERE org_id = $1),
        (SELECT count(*) FROM product WHERE org_id = $1 AND status = 'public'),
        (SELECT count(*) FROM release r JOIN product p ON p.id = r.product_id WHERE p.org_id = $1),
        (SELECT count(*) FROM artifact a JOIN release r ON r.id = a.release_id
            JOIN product p ON p.id = r.product_id WHERE p.org_id = $1 AND a.status = 'ready'),
        (SELECT coalesce(sum(size), 0) FROM (
            SELECT DISTINCT a.sha256, a.size FROM artifact a JOIN release r ON r.id = a.release_id
            JOIN product p ON p.id = r.product_id WHERE p.org_id = $1 AND a.status = 'ready') AS stored),
        (SELECT coalesce(sum(value), 0) FROM daily_count WHERE org_id = $1 AND metric = 'downloads'),
        (SELECT coalesce(sum(count), 0) FROM code_batch WHERE org_id = $1 AND status <> 'preparing'),
        (SELECT count(*) FROM redemption x JOIN code c ON c.code_hash = x.code_hash
            JOIN code_batch b ON b.id = c.batch_id WHERE b.org_id = $1),
        (SELECT count(*) FROM membership WHERE org_id = $1),
        (SELECT count(*) FROM oauth_client WHERE org_id = $1)
"""

DOWNLOADS = """
    SELECT p.slug, d.version, d.platform, sum(d.value) AS downloads
    FROM daily_count d
    JOIN product p ON p.id = d.product_id
    WHERE d.org_id = $1 AND d.metric = 'downloads'
    GROUP BY p.slug, d.version, d.platform
    ORDER BY 4 DESC, p.slug, d.version, d.platform
    LIMIT $2
"""
MAX_DOWNLOADS = 50


class SlugTaken(Refused):
    """Another organisation or product has this slug."""

    status = 409
    code = "slug_taken"
    title = "Slug taken"
    resolution = "Choose another slug."


async def create_organisation(transaction: Transaction, slug: str, name: str) -> queries.Organisation:
    """Add an organisation.

    Raises:
        InvalidRequest: the slug is not 1 to 64 characters of a-z, 0-9 and -, or the name is blank or longer than 200.
        SlugTaken: the slug is in use.
    """
    require_valid(slug, name)
    new_organisation = queries.Organisation(ids.new_uuid(), slug, name, clock.now())
    if not await transaction.run(queries.INSERT_ORGANISATION, *new_organisation):
        raise SlugTaken(f"there is an organisation {slug}")
    return new_organisation


def require_valid(slug: str, name: str) -> None:
    """Require a valid slug and name of an organisation.

    Raises:
        InvalidRequest: the same conditions as in `create_organisation`.
    """
    if not SLUG.fullmatch(slug):
        raise invalid_member("/slug", "must be 1 to 64 of a-z, 0-9 and -")
    require_name(name)


def require_name(name: str) -> None:
    """Require a name that can be displayed. It must not contain invisible characters or characters that change the text
    direction.

    Raises:
        InvalidRequest: the name has more than 200 characters, has invisible characters, or has no letter, number or
            sign.
    """
    is_visible = any(unicodedata.category(character)[0] in _VISIBLE_CATEGORIES for character in name[:200])
    if not is_visible or len(name) > 200 or not name.isprintable() or _INVISIBLE.search(name) is not None:
        raise invalid_member("/name", "must be 1 to 200 visible characters, and not blank")


async def profile(reader: Reader, org_id: str) -> tuple[str | None, str | None]:
    """Text and website of an organisation's public profile."""
    row = await reader.fetch_one(queries.PROFILE, org_id)
    return (None, None) if row is None else (row[0], row[1])


async def usage(database: Database, org_id: str) -> tuple[int, ...]:
    """Return the numbers of an organisation's products, public products, releases, artifacts, stored bytes, downloads,
    codes, redemptions, members and clients, in this order. The query is slow for large organisations, because it reads
    every row.

    Raises:
        Unavailable: the query exceeded the read deadline.
    """
    rows = await database.scan(USAGE, org_id)
    return tuple(int(number) for number in rows[0])


async def most_downloaded(database: Database, org_id: str) -> list[Downloaded]:
    """The 50 most downloaded versions and platforms of the organisation, most downloads first.

    Raises:
        Unavailable: the query exceeded the read deadline.
    """
    rows = await database.scan(DOWNLOADS, org_id, MAX_DOWNLOADS)
    return [Downloaded(product, version, platform or None, int(count)) for product, version, platform, count in rows]
