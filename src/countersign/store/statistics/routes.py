"""GET /org/stats and /org/stats.csv: an organisation's statistics as series, for its owners and publishers."""

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.database.port import Database
from countersign.kernel.errors import invalid_parameter
from countersign.kernel.http import response
from countersign.kernel.http.response import Moment, Response
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth import queries
from countersign.store.auth.authentication import InsufficientScope
from countersign.store.auth.callers import Caller, StoreRequest
from countersign.store.auth.queries import Organisation
from countersign.store.auth.schemas import OwnOrg
from countersign.store.catalog import products
from countersign.store.catalog.products import ProductNotFound
from countersign.store.catalog.search import SqlBuilder
from countersign.store.statistics.counts import day_of

CSV = "text/csv; charset=utf-8"
MAX_DAYS, MAX_GROUPS, MAX_MARKERS, MIN_CELL = 1_096, 50, 100, 5
DEFAULT_DAYS = 30
READERS = frozenset({"owner", "publisher"})
"""The roles of people who may read statistics. Tokens need admin:org."""

Metric: TypeAlias = Literal["downloads", "redemptions", "updates", "followers", "bytes"]
Step: TypeAlias = Literal["day", "week", "month"]
By: TypeAlias = Literal["product", "release", "platform"]

_KEYS = {"": "metric", "product": "product_id", "release": "version", "platform": "platform"}
TOTALS = """
    SELECT {key}, sum(value) AS total
    FROM daily_count
    WHERE {conditions}
    GROUP BY {key}
    ORDER BY 2 DESC, 1
    LIMIT {limit}
"""
SERIES = """
    SELECT day, {key}, sum(value)
    FROM daily_count
    WHERE {conditions}
    GROUP BY day, {key}
"""
SUM = "SELECT coalesce(sum(value), 0) FROM daily_count WHERE {conditions}"
TITLES = "SELECT id, slug, title FROM product WHERE id IN ({ids})"
MARKERS = """
    SELECT r.published_at, p.slug, r.version
    FROM product p
    JOIN release r ON r.product_id = p.id
    WHERE p.org_id = $1 AND ($2 = '' OR p.id = $2) AND r.status = 'published'
      AND r.published_at >= $3 AND r.published_at < $4
    ORDER BY r.published_at DESC, r.id DESC
    LIMIT $5
"""
_OF_METRIC = "The metric. `bytes` is the size of the downloaded files, and `followers` the number of followers."
_FROM = "The first day (UTC). Default: 29 days before the last day."


class StatsQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The parameters of GET /org/stats."""

    org: OwnOrg | None = None
    metric: Annotated[Metric, msgspec.Meta(description=_OF_METRIC)] = "downloads"
    from_: Annotated[date, msgspec.Meta(description=_FROM)] | None = msgspec.field(name="from", default=None)
    to: Annotated[date, msgspec.Meta(description="The last day (UTC). Default: yesterday.")] | None = None
    step: Annotated[Step, msgspec.Meta(description="The period of one point. Weeks begin on Monday.")] = "day"
    by: (
        Annotated[
            By,
            msgspec.Meta(
                description="Splits the numbers into groups; the 50 largest are returned. `release` requires `product`."
            ),
        ]
        | None
    ) = None
    product: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=1,
                max_length=64,
                description="Only numbers of the product with this id or slug.",
                examples=["star-harbour"],
            ),
        ]
        | None
    ) = None


class Point(msgspec.Struct):
    """The value of the period that begins at `at`. It is null if fewer than five are counted for a platform."""

    at: str
    value: int | None


class StatsGroup(msgspec.Struct):
    """The numbers of a product (`key` is its slug), a release, or a platform (`key` is empty for files without a
    platform)."""

    key: str
    label: str
    total: int | None
    points: list[Point]


class Previous(msgspec.Struct):
    """The total of the same number of days before the range."""

    total: int


class Marker(msgspec.Struct):
    """A release that was published in the range of days."""

    at: Moment
    product: str
    version: str


class Stats(msgspec.Struct, kw_only=True):
    """Statistics of an organisation, with one point for each step. `groups` is empty without `by`; `markers` are the
    newest 100 releases of the range. The total of followers is their number on the last day."""

    metric: Metric
    step: Step
    total: int
    points: list[Point]
    groups: list[StatsGroup]
    previous: Previous
    markers: list[Marker]


class _Selection(NamedTuple):
    """The selected numbers: one metric of an organisation on some days, for one product or for all."""

    org_id: str
    metric: str
    first: date
    last: date
    product_id: str

    def conditions(self, statement: SqlBuilder) -> str:
        """The SQL conditions."""
        conditions = [
            f"org_id = {statement.add(self.org_id)}",
            f"metric = {statement.add(self.metric)}",
            f"day >= {statement.add(self.first.isoformat())}",
            f"day <= {statement.add(self.last.isoformat())}",
        ]
        if self.product_id:
            conditions.append(f"product_id = {statement.add(self.product_id)}")
        return " AND ".join(conditions)


async def show_statistics(call: StoreRequest[StatsQuery, Nothing]) -> Response:
    """Show downloads, redemptions, updates, followers or bytes of the organisation as a series.

    For owners and publishers of the organisation; a token needs admin:org.
    """
    return response.json(await _statistics(call), headers=(("Cache-Control", "private, no-store"),))


async def export_statistics(call: StoreRequest[StatsQuery, Nothing]) -> Response:
    """Show the same series as CSV: one row for each point, or for each point of each group."""
    statistics = await _statistics(call)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(["at", "key", "label", statistics.metric])
    if call.query.by is None:
        writer.writerows([point.at, "", "", point.value] for point in statistics.points)
    for group in statistics.groups:
        # Spreadsheets evaluate a text that begins with one of these characters as a formula.
        label = f"'{group.label}" if group.label.startswith(("=", "+", "-", "@")) else group.label
        writer.writerows([point.at, group.key, label, point.value] for point in group.points)
    return Response(200, text.getvalue().encode(), CSV, headers=(("Cache-Control", "private, no-store"),))


async def _statistics(call: StoreRequest[StatsQuery, Nothing]) -> Stats:
    database, query = call.context.database, call.query
    org = await _organisation(database, call.caller, query.org)
    selection = _Selection(org.id, query.metric, *_days(query), await _product_id(database, org, query.product))
    _require_consistent(query)
    steps = _steps(selection.first, selection.last, query.step)
    values = (await _series(database, selection, "")).get(query.metric, {})
    length = selection.last - selection.first + timedelta(days=1)
    previous_selection = selection._replace(first=selection.first - length, last=selection.first - timedelta(days=1))
    start = 0
    if query.metric == "followers":
        start = await _sum(database, selection._replace(first=date(1970, 1, 1), last=previous_selection.last))
    points = _points(steps, values, query, start)
    previous_total = start if query.metric == "followers" else await _sum(database, previous_selection)
    return Stats(
        metric=query.metric,
        step=query.step,
        total=start + sum(values.values()),
        points=points,
        groups=[] if query.by is None else await _groups(database, selection, query, steps),
        previous=Previous(previous_total),
        markers=await _markers(database, selection),
    )


async def _organisation(database: Database, caller: Caller, slug: str | None) -> Organisation:
    """The organisation whose statistics the caller may read.

    Raises:
        InsufficientScope: the caller has no role that reads statistics, or its token lacks admin:org.
        InvalidRequest: no organisation is named, and the caller may read the statistics of several.
    """
    allowed_orgs = caller.orgs_allowing("admin:org")
    if caller.kind == "person" and caller.scopes is None:
        roles = await queries.roles(database, caller.id)
        allowed_orgs = tuple(org_id for org_id, role in roles.items() if role in READERS)
    org_row = None
    if slug is not None:
        org_row = await queries.organisation_with_slug(database, slug)
    elif len(allowed_orgs) > 1:
        raise invalid_parameter("org", "is required because you belong to several organisations")
    elif allowed_orgs:
        org_row = await queries.organisation(database, allowed_orgs[0])
    if org_row is None or org_row.id not in allowed_orgs:
        raise InsufficientScope(
            "statistics are for owners and publishers of the organisation",
            resolution="Sign in as one of them, or use a token with the scope admin:org.",
        )
    return org_row


async def _product_id(database: Database, org: Organisation, id_or_slug: str | None) -> str:
    if id_or_slug is None:
        return ""
    catalog_entry = await products.find_entry(database, id_or_slug, is_id=ids.is_uuid(id_or_slug))
    if catalog_entry is None or catalog_entry.org_id != org.id:
        raise ProductNotFound("the organisation has no product with this id or slug")
    return catalog_entry.product_id


def _days(query: StatsQuery) -> tuple[date, date]:
    """The first and the last day."""
    today = date.fromisoformat(day_of(clock.now()))
    last_day = query.to or today - timedelta(days=1)
    first_day = query.from_ or last_day - timedelta(days=DEFAULT_DAYS - 1)
    if first_day > last_day:
        raise invalid_parameter("from", "must not be after `to`")
    if (last_day - first_day).days >= MAX_DAYS or first_day.year < 1980 or last_day > today:
        raise invalid_parameter("from", f"must be at most {MAX_DAYS} days before `to`, which must not be in the future")
    return first_day, last_day


def _require_consistent(query: StatsQuery) -> None:
    if query.by == "release" and query.product is None:
        raise invalid_parameter("product", "is required to split by release")
    if query.by in ("release", "platform") and query.metric in ("followers", "redemptions"):
        raise invalid_parameter("by", f"must be product for {query.metric}")


def _steps(first_day: date, last_day: date, step: Step) -> list[date]:
    """The first day of each step. The first step begins at the first day of the range."""
    days = (first_day + timedelta(days=number) for number in range((last_day - first_day).days + 1))
    return list(dict.fromkeys(max(first_day, _start_of(day, step)) for day in days))


def _start_of(day: date, step: Step) -> date:
    if step == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if step == "month" else day


def _points(steps: Sequence[date], values: dict[date, int], query: StatsQuery, start: int = 0) -> list[Point]:
    """A point for each step: the sum of its days, or for followers the number on its last day."""
    sums = dict.fromkeys(steps, 0)
    for day, value in values.items():
        sums[max(steps[0], _start_of(day, query.step))] += value
    running_total, points = start, list[Point]()
    for step, value in sums.items():
        running_total += value
        points.append(Point(step.isoformat(), running_total if query.metric == "followers" else value))
    return points


async def _groups(
    database: Database, selection: _Selection, query: StatsQuery, steps: Sequence[date]
) -> list[StatsGroup]:
    group_by = query.by or ""
    statement = SqlBuilder()
    # Followers are counted from the beginning: their number is the sum of all changes.
    whole_selection = selection._replace(first=date(1970, 1, 1)) if query.metric == "followers" else selection
    text = TOTALS.format(
        key=_KEYS[group_by], conditions=whole_selection.conditions(statement), limit=statement.add(MAX_GROUPS)
    )
    totals = {key: int(total) for key, total in await database.scan(text, *statement.values)}
    series = await _series(database, selection, group_by, [*totals])
    names = await _names(database, group_by, [*totals])
    groups: list[StatsGroup] = []
    for key, total in totals.items():
        values = series.get(key, {})
        start = total - sum(values.values()) if query.metric == "followers" else 0
        groups.append(StatsGroup(*names.get(key, (key, key)), total, _points(steps, values, query, start)))
    return await _without_small_counts(database, selection, query, steps, groups) if group_by == "platform" else groups


async def _without_small_counts(
    database: Database, selection: _Selection, query: StatsQuery, steps: Sequence[date], groups: Iterable[StatsGroup]
) -> list[StatsGroup]:
    """Remove numbers of fewer than five downloads or updates from the groups, because they could identify people."""
    metric = "downloads" if query.metric == "bytes" else query.metric
    series_by_key = await _series(database, selection._replace(metric=metric), "platform")
    suppressed_groups: list[StatsGroup] = []
    for group in groups:
        values = series_by_key.get(group.key, {})
        cells = _points(steps, values, query)
        points = [
            Point(point.at, None if 0 < (cell.value or 0) < MIN_CELL else point.value)
            for point, cell in zip(group.points, cells, strict=True)
        ]
        is_small = 0 < sum(values.values()) < MIN_CELL
        suppressed_groups.append(StatsGroup(group.key, group.label, None if is_small else group.total, points))
    return suppressed_groups


async def _series(
    database: Database, selection: _Selection, group_by: str, keys: Sequence[str] | None = None
) -> dict[str, dict[date, int]]:
    """The values of each day, by the keys of the groups."""
    if keys == []:
        return {}
    statement = SqlBuilder()
    conditions = selection.conditions(statement)
    if keys:
        conditions += f" AND {_KEYS[group_by]} IN ({statement.add_all(keys)})"
    series_by_key: dict[str, dict[date, int]] = {}
    for day, key, value in await database.scan(
        SERIES.format(key=_KEYS[group_by], conditions=conditions), *statement.values
    ):
        series_by_key.setdefault(key, {})[date.fromisoformat(day)] = int(value)
    return series_by_key


async def _sum(database: Database, selection: _Selection) -> int:
    statement = SqlBuilder()
    text = SUM.format(conditions=selection.conditions(statement))
    return int((await database.scan(text, *statement.values))[0][0])


async def _names(database: Database, group_by: str, keys: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Key and label of the groups that are products."""
    if group_by != "product" or not keys:
        return {}
    statement = SqlBuilder()
    rows = await database.fetch(TITLES.format(ids=statement.add_all(keys)), *statement.values)
    return {product_id: (slug, title) for product_id, slug, title in rows}


async def _markers(database: Database, selection: _Selection) -> list[Marker]:
    days = (selection.first, selection.last + timedelta(days=1))
    start, end = (clock.from_datetime(datetime.combine(day, time(), UTC)) for day in days)
    rows = await database.scan(MARKERS, selection.org_id, selection.product_id, start, end, MAX_MARKERS)
    return [Marker(clock.rfc3339(published_at), slug, version) for published_at, slug, version in rows]


ROUTES = (
    route(
        "GET",
        "/org/stats",
        show_statistics,
        query=StatsQuery,
        answers={200: Stats},
        refusals=(InsufficientScope, ProductNotFound),
        signed_in=True,
        sends={200: ("Cache-Control",)},
    ),
    route(
        "GET",
        "/org/stats.csv",
        export_statistics,
        query=StatsQuery,
        answers={200: str},
        refusals=(InsufficientScope, ProductNotFound),
        signed_in=True,
        produces=(CSV,),
        sends={200: ("Cache-Control",)},
    ),
)
