"""The command `series`: computes a count, sum, average or median of the visible records over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Literal, TypeAlias, cast, get_args

import msgspec

from countersign.declare import BadValue, Date, Field, Number, Ref
from countersign.declare.fields.field import Stored
from countersign.declare.fields.kinds import LARGEST
from countersign.kernel.database.port import Row
from countersign.records.access.view import ModelView
from countersign.records.commands import filters, limits, list_search, record_names
from countersign.records.commands.errors import BadInput, refuse_unknown_keys
from countersign.records.commands.filters import Parameters, Query, Scope, all_of
from countersign.records.commands.run import Body, Run
from countersign.records.commands.select import RecordReader, SelectStatement, summed
from countersign.records.schema.checks import total_of

Function: TypeAlias = Literal["count", "sum", "avg", "median"]
Step: TypeAlias = Literal["day", "week", "month", "quarter", "year"]
FUNCTIONS: tuple[Function, ...] = get_args(Function)
STEPS: tuple[Step, ...] = get_args(Step)
MEMBERS = ("fn", "field", "date", "step", "from", "to", "by", "filter")

_Number: TypeAlias = int | float | None


class Point(msgspec.Struct):
    """The value at one step, which begins on the day `at`. It is null if there are no numbers to average or if it is
    too large."""

    at: str
    value: _Number


class SeriesGroup(msgspec.Struct):
    """The series of the records with one value of the field `by`."""

    key: object
    total: _Number
    points: list[Point]


class Period(msgspec.Struct, rename={"first": "from", "last": "to"}):
    """The period of equal length before the requested period."""

    first: str
    last: str
    total: _Number
    points: list[Point]


class Series(msgspec.Struct):
    """A series: its points, the value over the whole period, its groups, and the previous period.

    `is_cut` is true if there are more groups than the response contains. If `by` is a ref, `names` maps the keys of the
    groups to the names of the records.
    """

    step: Step
    points: list[Point]
    total: _Number
    groups: list[SeriesGroup]
    is_cut: bool
    previous: Period
    names: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Request:
    fn: Function
    field: Field | None
    day: Field
    step: Step
    first: date
    last: date
    by: Field | None
    query: Query


@dataclass(frozen=True, slots=True)
class _Cells:
    """`points` maps a step and a group to the value, and `totals` a group to the value over the whole period. Without
    groups, there is one group with the key None. The keys are those of `Scope.group_of`."""

    points: Mapping[tuple[str, Stored], _Number]
    totals: Mapping[Stored, _Number]


async def series(run: Run, model: str, body: Body) -> Series:
    """Return the series, with the previous period of equal length.

    Raises:
        BadInput: a member is missing, malformed or out of range, or names a field that the caller does not read in
            clear or whose kind does not fit.
    """
    refuse_unknown_keys(body, MEMBERS, f"{model}.series")
    request = _read(run, model, body)
    length = (request.last - request.first).days + 1
    previous_request = replace(
        request, first=request.first - timedelta(days=length), last=request.first - timedelta(days=1)
    )
    cells = await _cells(run, model, replace(request, by=None))
    previous_cells = await _cells(run, model, replace(previous_request, by=None))
    groups = [] if request.by is None else _groups(run, model, request, await _cells(run, model, request), request.by)
    shown_groups = groups[:limits.MAX_SERIES_GROUPS]
    names: Mapping[str, object] = {}
    if isinstance(request.by, Ref):
        names = await record_names.names(
            run, request.by.target, [str(shown_group.key) for shown_group in shown_groups if shown_group.key]
        )
    return Series(
        step=request.step,
        points=_points(request, cells, None),
        total=_total(request, cells, None),
        groups=shown_groups,
        is_cut=len(groups) > limits.MAX_SERIES_GROUPS,
        previous=Period(
            previous_request.first.isoformat(),
            previous_request.last.isoformat(),
            _total(previous_request, previous_cells, None),
            _points(previous_request, previous_cells, None),
        ),
        names=names,
    )


def _read(run: Run, model: str, body: Body) -> _Request:
    view = run.view_of(model)
    fn = _one_of(body, "fn", FUNCTIONS, "count")
    step = cast(Step, _one_of(body, "step", STEPS, "month"))
    day = filters.clear_field(view, _name(body, "date"))
    if not isinstance(day, Date):
        raise BadInput(f"{model}.{day.name} cannot be the date of a series: its kind must be date")
    first_day, last_day = _day(body, "from"), _day(body, "to")
    if first_day > last_day:
        raise BadInput("from must not be after to")
    if len(_buckets(first_day, last_day, step)) > limits.MAX_POINTS:
        raise BadInput(f"a series has {limits.MAX_POINTS} points at most: give a shorter period or a larger step")
    field = None if fn == "count" else _number_field(view, _name(body, "field"))
    if fn == "count" and "field" in body:
        raise BadInput("a count has no field")
    group_field = _group_field(run, view, _name(body, "by")) if body.get("by") is not None else None
    query = list_search.read_query(run, model, "series", {name: body[name] for name in ("filter",) if name in body})
    return _Request(cast(Function, fn), field, day, step, first_day, last_day, group_field, query)


def _one_of(body: Body, name: str, known_names: Sequence[str], default: str) -> str:
    value = body.get(name, default)
    if value not in known_names:
        raise BadInput(f"{name} must be one of {', '.join(known_names)}")
    return str(value)


def _name(body: Body, member: str) -> str:
    value = body.get(member)
    if not isinstance(value, str):
        raise BadInput(f"{member} must be the name of a field")
    return value


def _day(body: Body, name: str) -> date:
    try:
        return date.fromisoformat(str(_DAY.read(body.get(name))))
    except BadValue as error:
        raise BadInput(f"{name} {error}") from error


_DAY = Date()


def _number_field(view: ModelView, name: str) -> Field:
    field = filters.clear_field(view, name)
    if not isinstance(field, Number):
        raise BadInput(f"{view.model.name}.{name} cannot be added up: its kind must be number or money")
    return field


def _group_field(run: Run, view: ModelView, name: str) -> Field:
    field = filters.clear_field(view, name)
    if not field.is_countable:
        known_kinds = ", ".join(name for name, kind in run.engine.registry.kinds.items() if kind.is_countable)
        raise BadInput(f"{view.model.name}.{name} cannot be grouped by: its kind must be one of {known_kinds}")
    return field


def _start(day: date, step: Step) -> date:
    """Return the first day of the step that contains this day. A week begins on Monday."""
    if step == "week":
        return day - timedelta(days=day.weekday())
    if step == "month":
        return day.replace(day=1)
    if step == "quarter":
        return date(day.year, (day.month - 1) // 3 * 3 + 1, 1)
    return date(day.year, 1, 1) if step == "year" else day


def _buckets(first_day: date, last_day: date, step: Step) -> list[str]:
    """Return the first days of all steps of the period, at most `MAX_POINTS` + 1."""
    starts: list[str] = []
    day = _start(first_day, step)
    while day <= last_day and len(starts) <= limits.MAX_POINTS:
        starts.append(day.isoformat())
        day = _start(day + timedelta(days=_MAX_DAYS[step]), step)
    return starts


_MAX_DAYS: Mapping[Step, int] = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}
"""The maximum number of days of each step. The first day of a step plus this number of days is always in the next
step."""


def _bucket(scope: Scope, field: Field, step: Step) -> str:
    """Return the SQL expression for the first day of the step that contains the date."""
    day = scope.value_of(field)
    if step == "week":
        if scope.dialect == "sqlite":
            return f"date({day}, 'weekday 0', '-6 days')"
        # The types are those of the functions, so that no function of another schema fits better.
        return f"pg_catalog.to_char(pg_catalog.date_trunc('week'::text, {day}::date::timestamp), 'YYYY-MM-DD'::text)"
    if step == "month":
        return f"substr({day}, 1, 7) || '-01'"
    if step == "quarter":
        month = f"substr({day}, 6, 2)"
        quarter = f"CASE WHEN {month} < '04' THEN '01' WHEN {month} < '07' THEN '04' WHEN {month} < '10' THEN '07'"
        return f"substr({day}, 1, 5) || {quarter} ELSE '10' END || '-01'"
    return f"substr({day}, 1, 4) || '-01-01'" if step == "year" else day


async def _cells(run: Run, model: str, request: _Request) -> _Cells:
    if request.fn == "median":
        medians = [
            await _rows(run, model, _median(run, model, request, is_whole=is_whole)) for is_whole in (False, True)
        ]
        return _Cells(_medians(medians[0]), {key: value for (_, key), value in _medians(medians[1]).items()})
    rows = await _rows(run, model, _sums(run, model, request))
    totals: dict[Stored, list[int]] = {}
    points: dict[tuple[str, Stored], _Number] = {}
    for bucket, key, *cell_values in rows:
        count, total, value_count = int(cell_values[0]), total_of(cell_values[1], cell_values[2]), int(cell_values[3])
        points[bucket, key] = _value(request.fn, count, total, value_count)
        totals[key] = [a + b for a, b in zip(totals.get(key, [0, 0, 0]), (count, total, value_count), strict=True)]
    return _Cells(points, {key: _value(request.fn, *cell_values) for key, cell_values in totals.items()})


async def _rows(run: Run, model: str, statement: SelectStatement) -> list[Row]:
    rows = await run.groups(_reader(run, model), statement)
    if len(rows) > limits.MAX_CELLS:
        raise BadInput("the series has too many groups: give a filter, a shorter period or a larger step")
    return rows


def _reader(run: Run, model: str) -> RecordReader:
    return run.engine.reading(run.caller, run.view_of(model))


def _value(fn: Function, count: int, total: int, value_count: int) -> _Number:
    if fn == "count":
        return count
    if fn == "avg":
        return _rounded(total, value_count) if value_count else None
    return total if abs(total) <= LARGEST else None


def _rounded(total: int, count: int) -> int | float:
    """Return an average, with two decimals at most."""
    return total // count if total % count == 0 else round(total / count, 2)


def _medians(rows: Sequence[Row]) -> dict[tuple[str, Stored], _Number]:
    """Return the medians. Each cell has one middle value, or two."""
    middles: dict[tuple[str, Stored], list[int]] = {}
    for bucket, key, value in rows:
        middles.setdefault((bucket, key), []).append(int(value))
    return {cell: _rounded(sum(values), len(values)) for cell, values in middles.items()}


def _parts(run: Run, model: str, request: _Request, parameters: Parameters) -> tuple[Scope, str, str]:
    """Return the scope, the expression of the group, and the condition of the records in the period."""
    view = run.view_of(model)
    scope = _reader(run, model).scope(parameters)
    day = scope.value_of(request.day)
    clauses = [
        f"{day} >= {parameters.put(request.first.isoformat())}",
        f"{day} <= {parameters.put(request.last.isoformat())}",
        *filters.filter_clauses(scope, view, request.query.filter),
        filters.any_of(scope, view.model, view.reach("series")),
    ]
    key = "CAST(NULL AS TEXT)" if request.by is None else scope.group_of(request.by)
    return scope, key, all_of(clauses)


def _sums(run: Run, model: str, request: _Request) -> SelectStatement:
    parameters = Parameters()
    scope, key, condition = _parts(run, model, request, parameters)
    sums = ["0", "0", "0"] if request.field is None else summed(scope, request.field)
    text = (
        f"SELECT {_bucket(scope, request.day, request.step)} AS bucket, {key} AS key, count(*), {', '.join(sums)} "
        f"FROM {_reader(run, model).relation} AS t WHERE {condition} GROUP BY 1, 2 LIMIT {limits.MAX_CELLS + 1}"
    )
    return SelectStatement(text, parameters.values)


def _median(run: Run, model: str, request: _Request, *, is_whole: bool) -> SelectStatement:
    """Return the statement for the middle values of each cell or, over the whole period, of each group."""
    parameters = Parameters()
    scope, key, condition = _parts(run, model, request, parameters)
    bucket = "''" if is_whole else _bucket(scope, request.day, request.step)
    value = scope.value_of(cast(Field, request.field))
    text = (
        "SELECT g.bucket, g.key, g.value FROM (SELECT f.bucket, f.key, f.value, "
        "row_number() OVER (PARTITION BY f.bucket, f.key ORDER BY f.value) AS place, "
        "count(*) OVER (PARTITION BY f.bucket, f.key) AS size "
        f"FROM (SELECT {bucket} AS bucket, {key} AS key, {value} AS value FROM {_reader(run, model).relation} AS t "
        f"WHERE {condition} AND {value} IS NOT NULL) AS f) AS g WHERE g.place IN ((g.size + 1) / 2, (g.size + 2) / 2) "
        f"LIMIT {2 * limits.MAX_CELLS + 1}"
    )
    return SelectStatement(text, parameters.values)


def _empty_value(fn: Function) -> _Number:
    return 0 if fn in ("count", "sum") else None


def _points(request: _Request, cells: _Cells, key: Stored) -> list[Point]:
    """Return a point for every step of the period."""
    empty = _empty_value(request.fn)
    steps = _buckets(request.first, request.last, request.step)
    return [Point(bucket, cells.points.get((bucket, key), empty)) for bucket in steps]


def _total(request: _Request, cells: _Cells, key: Stored) -> _Number:
    return cells.totals.get(key, _empty_value(request.fn))


def _groups(run: Run, model: str, request: _Request, cells: _Cells, field: Field) -> list[SeriesGroup]:
    """Return the groups, those with the largest totals first. Among groups with equal totals, the group without a value
    is last."""
    keys = list(cells.totals)
    groups = [
        SeriesGroup(value, _total(request, cells, key), _points(request, cells, key))
        for key, value in zip(keys, _reader(run, model).group_values(field, keys), strict=True)
    ]
    return sorted(
        groups, key=lambda shown_group: (-(shown_group.total or 0), shown_group.key is None, str(shown_group.key))
    )
