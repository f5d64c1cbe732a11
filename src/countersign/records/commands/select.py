"""Stored records, the columns that a caller reads, and the SELECT statements of commands."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import msgspec

from countersign.declare import Declared, Field, Select, Structure
from countersign.declare.condition import Where
from countersign.declare.fields.field import Stored
from countersign.kernel import clock
from countersign.kernel.database.port import Dialect, Row, Value
from countersign.records.access.people import folded
from countersign.records.access.view import Domain, ModelView, Rows, View
from countersign.records.commands import filters, limits, revisions
from countersign.records.commands.filters import Condition, Parameters, Query, Scope, all_of, column
from countersign.records.schema.checks import sum_columns
from countersign.records.schema.snapshot import ALIASED


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record with every field as stored, and the value ids of its personal fields. `aliases` maps the fields of a
    connected record to their aliases: the id of a token domain to the value id that only this domain uses."""

    id: str
    revision: int
    changed: int
    values: Mapping[str, Stored]
    value_ids: Mapping[str, int | None]
    aliases: Mapping[str, Mapping[str, int]] = dataclasses.field(default_factory=dict[str, Mapping[str, int]])


def record_of(model: Declared, row: Row) -> StoredRecord:
    """Return the record in a row of `lock_existing`."""
    names = tuple(model.fields)
    personal = personal_fields(model)
    values = dict(zip(names, row[3 : 3 + len(names)], strict=True))
    return StoredRecord(
        row[0], row[1], row[2], values, dict(zip(personal, row[3 + len(names) :], strict=True))
    )


@lru_cache(maxsize=512)
def personal_fields(model: Declared) -> tuple[str, ...]:
    """Return the names of the personal fields, in declared order."""
    return tuple(name for name, field in model.fields.items() if field.personal)


@lru_cache(maxsize=512)
def insert_statement(model: Declared) -> str:
    """Return the INSERT statement for every column: id, fields, folded copies, value ids and `changed`. The new record
    has revision 1."""
    columns = ["id", *model.fields, *(f"{name}__folded" for name in _folded_fields(model))]
    columns += [*(f"{name}__value" for name in personal_fields(model)), "changed"]
    names = ", ".join(f'"{name}"' for name in columns)
    placeholders = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    return f'INSERT INTO "{model.name}" ({names}, revision) VALUES ({placeholders}, 1)'


def insert_values(
    model: Declared, record_id: str, values: Mapping[str, Stored], value_ids: Mapping[str, int], changed: int = 0
) -> list[Value]:
    """Return the values for the statement of `insert_statement`, in the order of its parameters. `changed` is
    `ALIASED` for a record with aliases."""
    return [
        record_id,
        *(values.get(name) for name in model.fields),
        *(_folded_copy(values.get(name)) for name in _folded_fields(model)),
        *(value_ids.get(name) for name in personal_fields(model)),
        changed,
    ]


def update_statement(
    model: Declared, record_id: str, values: Mapping[str, Stored], value_ids: Mapping[str, int | None], mask: int
) -> tuple[str, list[Value]]:
    """Return the UPDATE statement for some fields, with their folded copies and value ids, and its values. The
    statement also increases the revision and records which fields have changed."""
    columns: dict[str, Value] = dict(values)
    columns |= {f"{name}__folded": _folded_copy(values[name]) for name in _folded_fields(model) if name in values}
    columns |= {f"{name}__value": value_id for name, value_id in value_ids.items()}
    settings = ", ".join(f'"{name}" = ${number}' for number, name in enumerate(columns, 3))
    text = (
        f'UPDATE "{model.name}" SET {settings}, revision = revision + 1, changed = changed | $2 WHERE id = $1'
    )
    return text, [record_id, mask, *columns.values()]


@lru_cache(maxsize=512)
def _folded_fields(model: Declared) -> tuple[str, ...]:
    return tuple(name for name, field in model.fields.items() if field.is_folded)


def _folded_copy(value: Stored) -> Stored:
    return folded(value) if isinstance(value, str) else None


Record: TypeAlias = msgspec.Struct
"""One record as JSON shows it. Its members are `id`, `revision` and the fields of the view."""


class Masks(Protocol):
    """The interface that converts value ids to the placeholder tokens of one caller and back."""

    def numbers(self, ids: Sequence[int]) -> list[str]:
        """Return the token numbers of the value ids as decimal texts, in the same order."""
        ...

    def value_id(self, number: int) -> int:
        """Return the value id that corresponds to a token number (below 2^48)."""
        ...


class CachedStatement(NamedTuple):
    """A cached statement that reads one record. It is valid for one `day` (the number of days since 1970), because a
    condition may contain the current day. `values` are its values except the id."""

    day: int
    text: str
    values: list[Value]


class RecordReader:
    """Reads the records of one model for one view. The engine creates one reader per view and reuses it."""

    def __init__(
        self, view: View, model_view: ModelView, dialect: Dialect, bits: Mapping[str, int], domain: Domain | None
    ) -> None:
        model = model_view.model
        self.view = model_view
        self.caller_view = view
        self._dialect: Dialect = dialect
        self._domain = domain
        self._bits = bits
        self.names = ("id", "revision", *model_view.fields)
        self.cached: CachedStatement | None = None
        self.shape: Any = _shape(model.name, self.names)
        positions = [(index, model.fields[name]) for index, name in enumerate(model_view.fields, 2)]
        self.masked = tuple((index, field) for index, field in positions if model_view.fields[field.name] == "masked")
        self._has_aliases = _has_linked(self.masked)
        self._prefixes = _token_prefixes(self.masked)
        clear = [position for position in positions if position not in self.masked]
        self._conversions = _conversions(clear)
        self.texts = tuple(index for index, field in clear if field.is_folded)
        self.structures = tuple((index, field.name) for index, field in positions if isinstance(field, Structure))
        self.has_long_texts = _has_long_texts(model_view)
        self.short_page = limits.SHORT_PAGE
        self._text_places = _text_places(model_view, clear)

    @property
    def relation(self) -> str:
        """Return the table of the records as SQL."""
        return f'"{self.view.model.name}"'

    @property
    def is_plain(self) -> bool:
        """Return whether rows can be sent as the database returns them."""
        return not (self.masked or self._conversions or self.structures)

    def columns(self, scope: Scope) -> list[str]:
        """Return the expressions to select, in the order of `names`."""
        revision = revisions.visible_revision(scope.alias, self.view.model.name, self.view.fields, self._bits)
        return [f"{scope.alias}.id", revision, *self._expressions(scope)]

    def _expressions(self, scope: Scope) -> Iterable[str]:
        # All fields share one parameter for the domain.
        domain = scope.parameters.put(self._domain.id) if self._domain is not None and self._has_aliases else None
        for name, sight in self.view.fields.items():
            field = self.view.model.fields[name]
            yield scope.value_of(field) if sight == "clear" else self._value_id(scope, field, domain)

    def _value_id(self, scope: Scope, field: Field, domain: str | None) -> str:
        canonical = column(scope.alias, f"{field.name}__value")
        if domain is None or not field.linked:
            return canonical
        # Most records never had an alias. A bit in their own row shows this, so they need no lookup.
        return (
            f"CASE WHEN {scope.alias}.changed < {ALIASED} THEN {canonical} ELSE "
            f"coalesce((SELECT alias.value_id FROM pii_alias AS alias WHERE alias.model = '{self.view.model.name}' "
            f"AND alias.record_id = {scope.alias}.id AND alias.field = '{field.name}' "
            f"AND alias.domain_id = {domain}), {canonical}) END"
        )

    def scope(self, parameters: Parameters) -> Scope:
        """Return the model's table as part of a statement for this view."""
        return Scope(self._dialect, parameters, "t", self.caller_view)

    def groups(self, field: Field, rows: Sequence[Row]) -> list[tuple[object, int]]:
        """Return the groups of `count_by` with the value of each as displayed."""
        values = self.group_values(field, [value for value, _ in rows])
        return [(value, int(row[1])) for value, row in zip(values, rows, strict=True)]

    def group_values(self, field: Field, values: Sequence[Any]) -> list[object]:
        """Return the values by which records are grouped (see `Scope.group_of`) as displayed, in the same order."""
        return [None if value is None else field.show(value) for value in values]

    def length(self, rows: Sequence[Row], start: int = 0) -> int:
        """Return the number of characters of all texts in the rows. The columns of the record begin at the column
        `start`."""
        columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True))
        if not columns:
            return 0
        texts = (cast("tuple[str | None, ...]", columns[start + index]) for index in self._text_places)
        return sum(sum(map(len, filter(None, text))) for text in texts)

    def values(self, rows: Sequence[Row], masks: Masks | None) -> list[list[Any]]:
        """Return the rows with every value as displayed, and with placeholder tokens for masked values."""
        converted_rows = [list(row) for row in rows]
        for index, show in self._conversions:
            for values in converted_rows:
                if values[index] is not None:
                    values[index] = show(values[index])
        if self.masked:
            if masks is None:
                raise LookupError("masked fields need a token domain")
            _mask(converted_rows, self._prefixes, masks)
        for index, _ in self.structures:
            for values in converted_rows:
                if values[index] is not None:
                    values[index] = msgspec.Raw(values[index].encode())
        return converted_rows

    def members(self, records: Sequence[Record], names: Sequence[str]) -> list[dict[str, object]]:
        """Return some members of each record. The records must come from this reader."""
        positions = [(name, self.names.index(name)) for name in names]
        return [
            {name: values[column_index] for name, column_index in positions}
            for values in map(msgspec.structs.astuple, records)
        ]

    def records(self, rows: Sequence[Row], masks: Masks | None = None) -> list[Record]:
        """Return the rows as records ready to be encoded."""
        shape = self.shape
        if self.is_plain:
            return [shape(*row) for row in rows]
        return [shape(*values) for values in self.values(rows, masks)]


def _has_linked(masked_fields: Iterable[tuple[int, Field]]) -> bool:
    return any(field.linked for _, field in masked_fields)


def _token_prefixes(masked_fields: Iterable[tuple[int, Field]]) -> tuple[tuple[int, str], ...]:
    """Return the position of each masked field in a row, and the text of its tokens before the number."""
    return tuple((index, f"{field.personal}_") for index, field in masked_fields)


def _has_long_texts(view: ModelView) -> bool:
    return any(view.model.fields[name].is_long for name in view.fields)


def _text_places(view: ModelView, clear: Iterable[tuple[int, Field]]) -> tuple[int, ...]:
    """Return the positions of the texts in a row: the id, and the text fields that the caller reads in clear."""
    return (0, *(index for index, field in clear if field.column == "TEXT" and view.fields[field.name] == "clear"))


def _conversions(positions: Iterable[tuple[int, Field]]) -> tuple[tuple[int, Callable[[Stored], object]], ...]:
    """Return the positions in a row whose stored values need conversion to JSON, each with its conversion."""
    return tuple((index, field.show) for index, field in positions if not field.shows_as_stored)


def _mask(rows: list[list[Any]], prefixes: tuple[tuple[int, str], ...], masks: Masks) -> None:
    """Replace the value ids in the rows with placeholder tokens, in one batch. `prefixes` are the positions of the
    value ids, each with the text of its tokens before the number."""
    numbers = iter(masks.numbers([row[index] for index, _ in prefixes for row in rows if row[index] is not None]))
    for index, prefix in prefixes:
        for row in rows:
            if row[index] is not None:
                row[index] = prefix + next(numbers)


@lru_cache(maxsize=4096)
def _shape(name: str, members: tuple[str, ...]) -> type[msgspec.Struct]:
    """Return a struct type with these members. The result is cached, because creating a type compiles code."""
    return msgspec.defstruct(
        name,
        [(f"m{index}", object) for index in range(len(members))],
        rename=dict((f"m{index}", member) for index, member in enumerate(members)),
        frozen=True,
        gc=False,
    )


class Term(NamedTuple):
    """One key of an order as SQL. Rows that have no value for the key come last in both directions."""

    expression: str
    is_descending: bool
    is_key: bool = False


class SelectStatement:
    """A statement with its values."""

    __slots__ = ("text", "values")

    def __init__(self, text: str, values: list[Value]) -> None:
        self.text = text
        self.values = values


Columns = Callable[[filters.Scope], Sequence[str]]
"""A function that returns additional expressions to select."""


def page(record_reader: RecordReader, rows: Rows, query: Query, columns: Columns | None = None) -> SelectStatement:
    """Return the statement for the visible records of a query in its order (API document, Filter semantics).

    `columns` are selected after the columns of `record_reader`.

    Raises:
        BadInput: a condition or an order key names a field that the caller does not read in clear, or does not fit the
            kind of the field.
    """
    parameters = Parameters()
    return SelectStatement(_page(record_reader, rows, query, parameters, columns), parameters.values)


def _page(
    record_reader: RecordReader, rows: Rows, query: Query, parameters: Parameters, more_columns: Columns | None = None
) -> str:
    scope = record_reader.scope(parameters)
    columns = ", ".join([*record_reader.columns(scope), *(more_columns(scope) if more_columns is not None else ())])
    where_text = where_clause(scope, record_reader, rows, query)
    order = order_clause(order_terms(scope, record_reader, query))
    text = f"SELECT {columns} FROM {record_reader.relation} AS t WHERE {where_text} ORDER BY {order}"
    if query.limit is not None:
        text += f" LIMIT {parameters.put(query.limit)}"
    elif scope.dialect == "sqlite":
        # SQLite does not support OFFSET without LIMIT, and ignores the order of a subquery without a limit.
        text += " LIMIT -1"
    return f"{text} OFFSET {parameters.put(query.offset)}" if query.offset else text


def summed(scope: Scope, field: Field) -> list[str]:
    """Return three expressions: two that together give the sum of a number field (see `total_of`), and the number of
    records that have a value."""
    value = scope.value_of(field)
    return [*sum_columns(value), f"count({value})"]


def page_with_total(
    record_reader: RecordReader, rows: Rows, query: Query, sums: Sequence[Field] = ()
) -> SelectStatement:
    """Return the statement of `page` with additional first columns: the number of all matching records, and three
    columns for each of the `sums` (see `summed`).

    These columns do not depend on limit and offset. For an empty page, the statement returns one row whose other
    columns are NULL.
    """
    parameters = Parameters()
    scope = record_reader.scope(parameters)
    columns = ["count(*)", *(column for field in sums for column in summed(scope, field))]
    named_columns = ", ".join(f"{column} AS n{index}" for index, column in enumerate(columns))
    counts = ", ".join(f"n.n{index}" for index in range(len(columns)))
    total_statement = f"SELECT {named_columns} FROM {record_reader.relation} AS t WHERE " + where_clause(
        scope, record_reader, rows, replace(query, scattered=frozenset())
    )
    # The left side has a single row, so every join method preserves the order of the page.
    text = (
        f"SELECT {counts}, p.* FROM ({total_statement}) AS n LEFT JOIN "
        f"({_page(record_reader, rows, query, parameters)}) AS p "
        "ON 1 = 1"
    )
    return SelectStatement(text, parameters.values)


def one(record_reader: RecordReader, rows: Rows, record_id: str) -> SelectStatement:
    """Return the statement for the record with this id, if the caller may see it."""
    if record_reader.view.model.table is not None:
        return page(record_reader, rows, Query(filter=(Condition("id", "eq", record_id),)))
    is_cacheable, day = rows is record_reader.view.visible, clock.now() // clock.DAY
    if is_cacheable and record_reader.cached is not None and record_reader.cached.day == day:
        return SelectStatement(record_reader.cached.text, [record_id, *record_reader.cached.values])
    parameters = Parameters(record_id)
    scope = record_reader.scope(parameters)
    columns = ", ".join(record_reader.columns(scope))
    visible_condition = filters.any_of(scope, record_reader.view.model, rows)
    text = f'SELECT {columns} FROM "{record_reader.view.model.name}" AS t WHERE t.id = $1 AND {visible_condition}'
    if is_cacheable:
        # Only two values differ between calls: the id, and the value of TODAY in a row condition, which changes at
        # midnight.
        record_reader.cached = CachedStatement(day, text, parameters.values[1:])
    return SelectStatement(text, parameters.values)


def lock_existing(
    model: Declared, rows: Rows, record_id: str, dialect: Dialect, *, locks: bool = True
) -> SelectStatement:
    """Return the statement for the stored columns of a record among the rows.

    With `locks`, PostgreSQL locks the row until the transaction ends. SQLite needs no lock, because it has one writer
    at a time. The columns are id, revision, changed, each field, then the value id of each personal field.
    """
    parameters = Parameters(record_id)
    scope = filters.Scope(dialect, parameters, "t")
    visible_condition = filters.any_of(scope, model, rows)
    # Do not lock a hidden record: a caller must not wait for a record that it may not see.
    lock = " FOR UPDATE" if locks and dialect == "postgres" else ""
    text = f'SELECT {_stored_columns(model)} FROM "{model.name}" AS t WHERE t.id = $1 AND {visible_condition}{lock}'
    return SelectStatement(text, parameters.values)


def matching(model: Declared, conditions: Sequence[Where], dialect: Dialect, limit: int) -> SelectStatement:
    """Return the statement for the stored columns of the first records that meet all conditions, in the order of their
    ids. The columns are those of `lock_existing`."""
    parameters = Parameters()
    scope = filters.Scope(dialect, parameters, "t")
    condition = filters.any_of(scope, model, (tuple(conditions),) if conditions else None)
    limited = f"ORDER BY t.id LIMIT {parameters.put(limit)}"
    text = f'SELECT {_stored_columns(model)} FROM "{model.name}" AS t WHERE {condition} {limited}'
    return SelectStatement(text, parameters.values)


@lru_cache(maxsize=512)
def _stored_columns(model: Declared) -> str:
    columns = ["t.id", "t.revision", "t.changed", *(f't."{name}"' for name in model.fields)]
    return ", ".join([*columns, *(f't."{name}__value"' for name in personal_fields(model))])


def where_clause(scope: filters.Scope, record_reader: RecordReader, rows: Rows, query: Query) -> str:
    """Return the SQL condition that a record matches the query and is visible to the caller.

    Raises:
        BadInput: a condition is refused.
    """
    scope.scattered = query.scattered
    clauses = filters.filter_clauses(scope, record_reader.view, query.filter)
    if rows is not None:
        clauses.append(filters.any_of(scope, record_reader.view.model, rows))
    return all_of([*clauses, *_state_bounds(scope, record_reader.view.model, rows, query)])


def _state_bounds(scope: filters.Scope, model: Declared, rows: Rows, query: Query) -> list[str]:
    """Return conditions that exclude the first and last states of the order if the other conditions exclude them.

    In the order of the state, an index then begins at the first visible record. Without them, PostgreSQL reads each
    record of a hidden state from the table. A state is never NULL.
    """
    if not _is_by_state(model, query):
        return []
    field = cast(Select, model.fields[query.order[0].field])
    ranks = _possible_ranks(field, rows, query) or [0, len(field.options) - 1]
    expression = field.ordered(scope.value_of(field))
    bounds: list[str] = []
    if ranks[0] > 0:
        bounds.append(f"{expression} >= {scope.parameters.put(ranks[0])}")
    if ranks[-1] < len(field.options) - 1:
        bounds.append(f"{expression} <= {scope.parameters.put(ranks[-1])}")
    return bounds


def _is_by_state(model: Declared, query: Query) -> bool:
    """Return whether the first key of the order is the state of a model with a table of our own."""
    if model.workflow is None or model.table is not None:
        return False
    return bool(query.order) and query.order[0].field == model.workflow.field


def _possible_ranks(field: Select, rows: Rows, query: Query) -> list[int]:
    """Return the positions of the states that a record of the query may have, in order."""
    row_rules: Sequence[object] = rows[0] if rows is not None and len(rows) == 1 else ()
    rules = [rule for rule in (*query.filter, *row_rules) if isinstance(rule, Where | Condition)]
    own_rules = [rule for rule in rules if rule.field == field.name]
    return [rank for rank, option in enumerate(field.options) if all(_may_be(rule, option) for rule in own_rules)]


def _may_be(condition: Where | Condition, option: str) -> bool:
    """Return whether a record that meets the condition on a state may have this state. Operators other than `eq`, `ne`
    and `in` are ignored."""
    value = condition.value
    if condition.operator == "in" and isinstance(value, list | tuple):
        return option in cast("Sequence[object]", value)
    return option == value if condition.operator == "eq" else not (condition.operator == "ne" and option == value)


def order_terms(scope: filters.Scope, record_reader: RecordReader, query: Query) -> list[Term]:
    """Return the keys of the query's order. The last key is the id, so that the order is total.

    Raises:
        BadInput: a key is refused.
    """
    terms: list[Term] = []
    is_by_id = False
    # Omit a key that has the same value in all rows, because the index that finds these rows orders them by id.
    fixed = {condition.field for condition in query.filter if condition.operator == "eq"}
    for key in query.order:
        field: Field = filters.clear_field(record_reader.view, key.field)
        if is_by_id or (key.field in fixed and key.field != "id"):
            continue
        is_by_id = key.field == "id"
        if is_by_id:
            terms += _id_terms(scope, key.is_descending)
        else:
            terms += [Term(expression, key.is_descending) for expression in scope.order_expressions(field)]
    return terms if is_by_id else [*terms, *_id_terms(scope, False)]


def _id_terms(scope: filters.Scope, is_descending: bool) -> list[Term]:
    return [Term(id_column, is_descending, is_key=True) for id_column in scope.id_columns()]


def order_clause(terms: Sequence[Term]) -> str:
    """Return the terms of an ORDER BY clause. The last terms, which identify a record, are never NULL."""
    return ", ".join(
        f"{term.expression} {'DESC' if term.is_descending else 'ASC'}{'' if term.is_key else ' NULLS LAST'}"
        for term in terms
    )
