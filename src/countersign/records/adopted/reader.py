"""Statements on the table of an existing database, and the records that their rows give."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import msgspec

from countersign.declare import EQUALITY, RANGES, Date, Decimal, Declared, Field, Number, Ref, Text
from countersign.declare.condition import Operator
from countersign.declare.fields.field import Stored
from countersign.kernel.database import read_only
from countersign.kernel.database.port import Dialect, Row
from countersign.kernel.errors import Unavailable
from countersign.kernel.normalization import normalized
from countersign.records.access.people import folded
from countersign.records.access.view import Domain, ModelView, Rows, View
from countersign.records.adopted import columns
from countersign.records.adopted.columns import ColumnType, ColumnTypes
from countersign.records.adopted.sqlite_values import IS_UTF8
from countersign.records.commands import filters
from countersign.records.commands.errors import BadInput
from countersign.records.commands.filters import Parameters, Scope, all_of
from countersign.records.commands.limits import SHORT_PAGE
from countersign.records.commands.select import RecordReader
from countersign.records.masking.record_ids import Key, RecordIds
from countersign.records.masking.seen_values import SeenColumn

FOLDED = "countersign_folded"
"""The function of statements on SQLite that folds the case of a text."""
MAX_SCANNED_CHARACTERS = 8 << 20
"""The number of characters that a page read at once may have. Larger pages are read in batches."""
MAX_KEY_LENGTH = 400
"""The number of bytes of a key whose record has an id."""
_ALIAS = "t"
"""The name of the table of records in statements."""
_REVISION_BYTES = 6
_encode = msgspec.msgpack.Encoder().encode
_COMPARISONS = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


@dataclass(frozen=True, slots=True)
class AdoptedTable:
    """The table of a model, with the types of its columns and the ids of its records."""

    model: Declared
    name: str
    key: tuple[str, ...]
    types: ColumnTypes
    ids: RecordIds


@dataclass(frozen=True, slots=True)
class AdoptedTables:
    """The tables of one existing database, by model, without those that cannot be read. `folds_unicode` says whether
    its function `lower` with a collation of ICU can be used, and `is_utf8` whether its function `normalize` can."""

    dialect: Dialect
    by_model: dict[str, AdoptedTable]
    folds_unicode: bool = True
    is_utf8: bool = True

    def table(self, model: str) -> AdoptedTable:
        """Return the table of a model.

        Raises:
            Unavailable: the table could not be read since the start.
        """
        found = self.by_model.get(model)
        if found is None:
            raise Unavailable(read_only.SUSPENDED)
        return found

    def live(self, model: str, alias: str) -> list[str]:
        """Return the condition that a row of the table of a model is not marked as deleted. The result is empty if the
        table marks no rows."""
        found = self.table(model)
        mark = "" if found.model.table is None else found.model.table.deleted
        return [columns.is_live(self.dialect, f"{alias}.{columns.quoted(mark)}", found.types[mark])] if mark else []


class AdoptedScope(Scope):
    """A table of an existing database in a statement."""

    def __init__(
        self, tables: AdoptedTables, model: str, parameters: Parameters, alias: str, view: View | None = None
    ) -> None:
        super().__init__(tables.dialect, parameters, alias, view)
        self.tables = tables
        self.table = tables.table(model)

    def without_view(self) -> "AdoptedScope":
        """Return the same table with all stored values."""
        return AdoptedScope(self.tables, self.table.model.name, self.parameters, self.alias)

    def column(self, name: str) -> str:
        """Return a column of the table as SQL."""
        return f"{self.alias}.{columns.quoted(name)}"

    def id_columns(self) -> list[str]:
        """Return the columns of the key."""
        return [self.column(each) for each in self.table.key]

    def key_values(self) -> list[str]:
        """Return the columns of the key as ids contain them."""
        return [columns.key_value(self.dialect, self.column(each), self.table.types[each]) for each in self.table.key]

    def value_of(self, field: Field) -> str:
        """Return the expression for the value of a field that is not a ref."""
        (name,) = field.table_columns
        return columns.stored_value(self.dialect, self.column(name), self.table.types[name], field)

    def ref_values(self, ref: Ref) -> list[str]:
        """Return the columns of a ref as ids contain them. They are NULL if the caller does not see the record."""
        types = self.table.types
        names = ref.table_columns
        target = self.tables.table(ref.target)
        pairs = list(zip(target.key, names, strict=True))
        if all(columns.are_spelled_alike(self.dialect, target.types[key], types[name]) for key, name in pairs):
            plain = [columns.key_value(self.dialect, self.column(name), types[name]) for name in names]
        else:
            inner = self._joined(ref, "key")
            where = self._joins(inner, ref)
            source = f"FROM {target.name} AS {inner.alias} WHERE {where}"
            plain = [f"(SELECT {each} {source})" for each in inner.key_values()]
        visible = self._sees_target(ref)
        return plain if visible is None else [f"CASE WHEN {visible} THEN {each} END" for each in plain]

    def _sees_target(self, ref: Ref) -> str | None:
        """Return the condition that the referenced record exists for the caller, or None if the caller sees all."""
        if self.view is None:
            return None
        target = self.view.models.get(ref.target)
        rows: Rows = () if target is None or not target.is_readable else target.visible
        inner = self._joined(ref, "seen")
        conditions = self.tables.live(ref.target, inner.alias)
        if rows is None and not conditions:
            return None
        if rows == ():
            return "1 = 0"
        if rows is not None:
            conditions.append(filters.any_of(inner, inner.table.model, rows))
        where = all_of([self._joins(inner, ref), *conditions])
        return f"EXISTS (SELECT 1 FROM {inner.table.name} AS {inner.alias} WHERE {where})"

    def _joined(self, ref: Ref, suffix: str) -> "AdoptedScope":
        return AdoptedScope(self.tables, ref.target, self.parameters, f"{self.alias}_{ref.name}_{suffix}")

    def refers_to(self, target: "AdoptedScope", ref: Ref) -> str:
        """Return the condition that the ref of this table contains the key of a row of the target."""
        return self._joins(target, ref)

    def is_same_row(self, other: "AdoptedScope") -> str:
        """Return the condition that both rows, of one table, have the same key."""
        return all_of([self._equals(other, each, each) for each in self.table.key])

    def _joins(self, inner: "AdoptedScope", ref: Ref) -> str:
        pairs = zip(inner.table.key, ref.table_columns, strict=True)
        return all_of([self._equals(inner, key, name) for key, name in pairs])

    def _equals(self, inner: "AdoptedScope", key: str, name: str) -> str:
        sign = columns.equals(self.dialect, inner.table.types[key], self.table.types[name])
        return f"{inner.column(key)} {sign} {self.column(name)}"

    def name_of(self, ref: Ref, target: ModelView) -> str:
        """Return the expression for the name of the referenced record."""
        inner = self._joined(ref, "name")
        visible = filters.any_of(inner, target.model, target.visible)
        where = all_of([self._joins(inner, ref), visible, *self.tables.live(ref.target, inner.alias)])
        text = columns.shown_text(self.dialect, inner.value_of(target.model.fields[target.model.shown_as]), Text())
        return f"(SELECT {text} FROM {inner.table.name} AS {inner.alias} WHERE {where})"

    def order_expressions(self, field: Field) -> list[str]:
        """Return the expressions that order records by the field.

        Raises:
            BadInput: no index of the database helps.
        """
        if not field.sortable:
            name = f"{self.table.model.name}.{field.name}"
            raise BadInput(f"{name} cannot be ordered on: no index of the connected database answers it")
        if isinstance(field, Ref):
            return self.ref_values(field)
        if isinstance(field, Decimal):
            return [self.column(*field.table_columns)]
        return [field.ordered(self.value_of(field))]

    def group_of(self, field: Field) -> str:
        """Return the expression by which records are grouped. For a ref it is the key as JSON."""
        if not isinstance(field, Ref):
            return self.value_of(field)
        values = self.ref_values(field)
        is_set = " OR ".join(f"{each} IS NULL" for each in values)
        is_postgres = self.dialect == "postgres"
        function, suffix = ("pg_catalog.jsonb_build_array", "::text") if is_postgres else ("json_array", "")
        return f"CASE WHEN {is_set} THEN NULL ELSE {function}({', '.join(values)}){suffix} END"

    def comparison(self, name: str, field: Field, operator: Operator, value: object) -> str | None:
        """Return the comparisons that differ from those of stored records: of ids, refs, decimal numbers, and of texts
        and integers, for which an index is used.

        Raises:
            BadInput: the field cannot be compared in this way, or the value is malformed.
        """
        if field is filters.ID or isinstance(field, Ref):
            return self._compared_key(name, field, operator, value)
        if operator in RANGES and not field.sortable:
            raise BadInput(f"{name} cannot be compared with {operator}: no index of the connected database answers it")
        if operator == "is_null":
            return None
        if operator == "contains":
            return self._contains(field, cast("str", filters.operand_of(field, name, value)))
        if isinstance(field, Decimal):
            return self._compared_decimal(name, field, operator, value)
        return self._compared_by_index(name, field, operator, value)

    def _compared_key(self, name: str, field: Field, operator: Operator, value: object) -> str:
        if operator not in EQUALITY:
            raise BadInput(f"op {operator} does not fit {name}: ids of a connected database have no order")
        is_ref = isinstance(field, Ref)
        target = self.tables.table(field.target) if is_ref else self.table
        if operator == "is_null":
            is_null = filters.null_keyword(name, value) == "NULL"
            return self._is_empty(field) if is_null else f"NOT {self._is_empty(field)}"
        names = field.table_columns if is_ref else self.table.key
        keys = _keys(target, self._record_ids(name, operator, value))
        has_key = self._is_one_of_keys(names, self._operand_types(target, names), keys)
        visible = self._sees_target(field) if is_ref else None
        condition = has_key if visible is None else f"({has_key} AND {visible})"
        return f"(NOT {condition} OR {self._is_empty(field)})" if operator == "ne" else condition

    def _record_ids(self, name: str, operator: Operator, value: object) -> list[str]:
        """Return the ids in a condition."""
        items = filters.array_of(name, value) if operator == "in" else [value]
        # Decoding ids takes time, so refuse too many of them first.
        read_only.require_few_values(len(self.parameters.values) + len(items))
        return [str(filters.operand_of(filters.ID, name, each)) for each in items]

    def _is_empty(self, field: Field) -> str:
        """Return the condition that the ref is empty for the caller. The id of a record is never empty."""
        values = self.ref_values(field) if isinstance(field, Ref) else self.key_values()
        return f"({' OR '.join(f'{each} IS NULL' for each in values)})"

    def _operand_types(self, target: AdoptedTable, names: Sequence[str]) -> list[ColumnType]:
        """Return the types of the values of keys of the target that are compared with these columns."""
        pairs = [(target.types[key], self.table.types[name]) for key, name in zip(target.key, names, strict=True)]
        return [own if columns.are_spelled_alike(self.dialect, key, own) else key for key, own in pairs]

    def _is_one_of_keys(self, names: Sequence[str], types: Sequence[ColumnType], keys: Sequence[Key]) -> str:
        if not keys:
            return "(1 = 0)"
        pairs = list(zip(names, types, strict=True))
        signs = [columns.equals(self.dialect, self.table.types[name], type_) for name, type_ in pairs]
        operands = [self._operands(types, key) for key in keys]
        if len(names) == 1:
            return _is_one_of(self.column(names[0]), signs[0], [operand for (operand,) in operands])
        own = [f"{self.column(name)} {sign}" for name, sign in zip(names, signs, strict=True)]
        tests = [all_of([f"{each} {value}" for each, value in zip(own, key, strict=True)]) for key in operands]
        return f"({' OR '.join(f'({each})' for each in tests)})"

    def _operands(self, types: Sequence[ColumnType], key: Key) -> list[str]:
        pairs = zip(types, key, strict=True)
        return [columns.key_operand(self.dialect, type_, self.parameters.put(value)) for type_, value in pairs]

    def _contains(self, field: Field, needle: str) -> str:
        (name,) = field.table_columns
        add_parameter = self.parameters.put
        if self.dialect == "sqlite":
            return f"instr({FOLDED}(CAST({self.column(name)} AS TEXT)), {add_parameter(folded(needle))}) > 0"
        text = f"{self.column(name)}::text"
        if self.tables.is_utf8:
            text = f"normalize({text}, NFC)"
        collated = f'{text} COLLATE pg_catalog."und-x-icu"' if self.tables.folds_unicode else text
        operand = add_parameter(normalized("NFC", needle).lower())
        return f'pg_catalog.strpos(pg_catalog.lower({collated}) COLLATE "C", {operand}::text) > 0'

    def _compared_decimal(self, name: str, field: Field, operator: Operator, value: object) -> str:
        column = self.column(*field.table_columns)
        items = filters.array_of(name, value) if operator == "in" else [value]
        operands = [filters.operand_of(field, name, each) for each in items]
        terms = [columns.decimal_terms(self.dialect, column, self.parameters.put(each)) for each in operands]
        if operator == "ne":
            return f"({terms[0][0]} <> {terms[0][1]} OR {column} IS NULL)"
        sign = _COMPARISONS.get(operator, "=")
        return f"({' OR '.join(f'{left} {sign} {right}' for left, right in terms)})"

    def _compared_by_index(self, name: str, field: Field, operator: Operator, value: object) -> str | None:
        (column_name,) = field.table_columns
        column, type_ = self.column(column_name), self.table.types[column_name]
        items = filters.array_of(name, value) if operator == "in" else [value]
        if operator == "ne" or len(items) > filters.MAX_SINGLE_PARAMETERS:
            return None
        if type(field) is Number:
            return self._compared_number(name, field, operator, items)
        if isinstance(field, Date) and columns.is_date(type_):
            days = self._placed(field, name, items, "::text")
            return self._compared_twice(column, field, operator, days, "::date")
        if isinstance(field, Text) and operator in ("eq", "in") and columns.is_exact_text(self.dialect, type_):
            return self._compared_text(column, operator, self._placed(field, name, items, self._text_suffix))
        return None

    def _compared_number(self, name: str, field: Field, operator: Operator, items: Sequence[object]) -> str | None:
        (column_name,) = field.table_columns
        column = self.column(column_name)
        if columns.is_integer(self.table.types[column_name]):
            return _is_any(column, operator, self._placed(field, name, items, "::bigint"))
        if self.dialect == "postgres":
            return None
        return self._compared_twice(column, field, operator, self._placed(field, name, items, ""))

    def _compared_twice(
        self, column: str, field: Field, operator: Operator, placeholders: Sequence[str], suffix: str = ""
    ) -> str:
        # The first comparison uses an index. The second one leaves out values that the field shows as empty.
        indexed = _is_any(column, operator, [f"{each}{suffix}" for each in placeholders])
        return f"({indexed} AND {_is_any(self.value_of(field), operator, placeholders)})"

    @property
    def _text_suffix(self) -> str:
        return "::text" if self.dialect == "postgres" else ""

    def _compared_text(self, column: str, operator: Operator, placeholders: Sequence[str]) -> str:
        # The first comparison uses an index. The second one compares by code point. The types are equal, so that no
        # operator of another schema fits better.
        indexed = _is_any(f"{column}{self._text_suffix}", operator, placeholders)
        return f"({indexed} AND {_is_any(columns.text_of(self.dialect, column), operator, placeholders)})"

    def _placed(self, field: Field, name: str, items: Sequence[object], suffix: str) -> list[str]:
        """Return the placeholders of the values, with a cast to their type."""
        return [f"{self.parameters.put(filters.operand_of(field, name, each))}{suffix}" for each in items]


def _keys(target: AdoptedTable, record_ids: Sequence[str]) -> list[Key]:
    """Return the keys of the ids in a condition, without texts that are not ids of the table."""
    keys = target.ids.decode_all(list(dict.fromkeys(record_ids)))
    return [key for key in keys if key is not None]


def _is_one_of(column: str, sign: str, operands: Sequence[str]) -> str:
    """Return the condition that the column has one of the values, compared with this operator."""
    listed = ", ".join(operands)
    return f"({column} IN ({listed}))" if sign == "=" else f"({column} {sign} ANY (ARRAY[{listed}]))"


def _is_any(expression: str, operator: Operator, placeholders: Sequence[str]) -> str:
    if operator == "in":
        return f"{expression} IN ({', '.join(placeholders)})"
    return f"{expression} {_COMPARISONS[operator]} {placeholders[0]}"


class _Part(NamedTuple):
    """A field of the view: its position in a record, its first column in a row, and its number of columns."""

    field: Field
    position: int
    start: int
    width: int


class AdoptedReader(RecordReader):
    """Reads the records of one model in an existing database for one view."""

    def __init__(
        self, tables: AdoptedTables, view: View, model_view: ModelView, domain: Domain | None, key: bytes
    ) -> None:
        """`key` is the key of revisions."""
        super().__init__(view, model_view, tables.dialect, {}, domain)
        self._tables = tables
        self._table = tables.table(model_view.model.name)
        revision_key = hashlib.blake2b(domain.id.encode() if domain else b"", key=key, digest_size=32).digest()
        self._revision_hash = hashlib.blake2b(key=revision_key, digest_size=_REVISION_BYTES)
        self._constant_columns: tuple[str, ...] | None = None
        self._parts: list[_Part] = []
        start = len(self._table.key)
        for index, name in enumerate(model_view.fields, 2):
            field = model_view.model.fields[name]
            width = len(field.table_columns) if isinstance(field, Ref) else 1
            self._parts.append(_Part(field, index, start, width))
            start += width
        self.width = start
        characters = sum(columns.text_length(each.field) for each in self._parts)
        self.has_long_texts = bool(characters)
        self.short_page = min(SHORT_PAGE, MAX_SCANNED_CHARACTERS // max(1, characters))

    @property
    def relation(self) -> str:
        """Return the table as SQL, without rows that are marked as deleted, and without rows whose keys are empty, too
        long for an id, or not UTF-8."""
        table, dialect = self._table, self._tables.dialect
        conditions = self._tables.live(table.model.name, "kept")
        if any(table.types[each].key_kind == "other" for each in table.key):
            # SQLite takes a quoted name without a table, which is no column, for a text.
            key = [f"kept.{columns.quoted(each)}" for each in table.key]
            length = " + ".join(columns.key_length(dialect, each) for each in key)
            valid = (columns.is_valid_key(dialect, each, IS_UTF8) for each in key)
            conditions += [f"{length} <= {MAX_KEY_LENGTH}", *valid]
        if not conditions:
            return table.name
        names = ", ".join(f"kept.{columns.quoted(each)}" for each in table.types)
        return f"(SELECT {names} FROM {table.name} AS kept WHERE {' AND '.join(conditions)})"

    def scope(self, parameters: Parameters) -> AdoptedScope:
        """Return the table as part of a statement for this view."""
        return AdoptedScope(self._tables, self._table.model.name, parameters, _ALIAS, self.caller_view)

    def columns(self, scope: Scope) -> list[str]:
        """Return the expressions to select: the key, then the columns of each field."""
        if not isinstance(scope, AdoptedScope):
            raise TypeError("the table of an existing database needs a scope of its own")
        if self._constant_columns is not None:
            return [*self._constant_columns]
        expressions, parameter_count = scope.key_values(), len(scope.parameters.values)
        for part in self._parts:
            if isinstance(part.field, Ref):
                expressions += scope.ref_values(part.field)
            else:
                expressions.append(columns.shown_text(scope.dialect, scope.value_of(part.field), part.field))
        # Row conditions on the target of a ref have parameters, whose numbers differ between statements.
        if len(scope.parameters.values) == parameter_count and scope.alias == _ALIAS:
            self._constant_columns = (*expressions,)
        return expressions

    def groups(self, field: Field, rows: Sequence[Row]) -> list[tuple[object, int]]:
        """Return the groups of `count_by`. The groups of a ref are in the order of the ids."""
        groups = super().groups(field, rows)
        return sorted(groups, key=lambda each: (each[0] is None, each[0] or "")) if isinstance(field, Ref) else groups

    def group_values(self, field: Field, values: Sequence[Any]) -> list[object]:
        """Return the values by which records are grouped as displayed. The value of a ref is the key as JSON."""
        if not isinstance(field, Ref):
            return super().group_values(field, values)
        dialect = self._tables.dialect
        keys = [None if value is None else columns.key_of(dialect, msgspec.json.decode(value)) for value in values]
        return self._ids(self._tables.table(field.target), keys)

    def _ids(self, table: AdoptedTable, keys: Sequence[Key | None]) -> list[Any]:
        """Return the ids of the records with these keys."""
        if None not in keys:
            return table.ids.encode(cast("Sequence[Key]", keys))
        ids = iter(table.ids.encode([each for each in keys if each is not None]))
        return [None if each is None else next(ids) for each in keys]

    def decoded(self, rows: Sequence[Row], start: int) -> list[list[Any]]:
        """Return the rows with the columns of stored records in place of those of the table. The revision is still
        missing, and a masked field has its text. Rows without a record stay without one."""
        if not rows:
            return []
        # A column at a time, because a call for each value would take most of the time of an export.
        values: list[Sequence[Any]] = list(zip(*rows, strict=True))
        end = start + self.width
        keys = columns.keys_of(self._tables.dialect, values[start : start + len(self._table.key)])
        decoded = [*values[:start], self._ids(self._table, keys), [0] * len(rows)]
        decoded += (self._values(part, values, start + part.start) for part in self._parts)
        decoded += (columns.all_shown(each) for each in values[end:])
        return list(map(list, zip(*decoded, strict=True)))

    def _values(self, part: _Part, values: Sequence[Sequence[Any]], first: int) -> Sequence[Any]:
        """Return the values of one field, whose columns begin at `first`."""
        if isinstance(part.field, Ref):
            keys = columns.keys_of(self._tables.dialect, values[first : first + part.width])
            return self._ids(self._tables.table(part.field.target), keys)
        if part.field.column == "TEXT" and self._tables.dialect == "sqlite":
            return columns.all_shown(values[first])
        return values[first]

    def seen_values(self, rows: Sequence[Sequence[Any]], start: int) -> list[SeenColumn]:
        """Return the values of masked fields in decoded rows."""
        columns: list[SeenColumn] = []
        for index, field in self.masked:
            place = start + index
            given = [row for row in rows if row[place] is not None]
            if given:
                texts, record_ids = [str(row[place]) for row in given], [str(row[start]) for row in given]
                label, model = cast("str", field.personal), self.view.model.name
                columns.append(SeenColumn(label, model, field.name, field.linked, texts, record_ids))
        return columns

    def completed(self, rows: list[list[Any]], start: int, value_ids: Sequence[int]) -> list[Row]:
        """Return the decoded rows with the value ids of masked fields, and with the revisions."""
        numbers = iter(value_ids)
        for index, _ in self.masked:
            for row in rows:
                if row[start + index] is not None:
                    row[start + index] = next(numbers)
        end = start + len(self.names)
        for row in rows:
            if row[start] is not None:
                row[start + 1] = self._revision_of(row[start:end])
        return list(map(tuple, rows))

    def _revision_of(self, values: list[Stored]) -> int:
        """Return a number that changes with every value that the caller sees."""
        del values[1]
        # A copy is faster than a new object.
        revision_hash = self._revision_hash.copy()
        revision_hash.update(_encode(values))
        return int.from_bytes(revision_hash.digest())


class WholeTextReader(AdoptedReader):
    """Reads the one text field of a view as long as it is, to write it into another record."""

    def columns(self, scope: Scope) -> list[str]:
        """Return the expressions to select: the key, then the text."""
        if not isinstance(scope, AdoptedScope):
            raise TypeError("the table of an existing database needs a scope of its own")
        (part,) = self._parts
        text = columns.whole_text(scope.dialect, scope.value_of(part.field))
        return [*scope.key_values(), text]
