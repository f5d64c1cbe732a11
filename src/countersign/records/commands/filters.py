"""Parses filters and orders, converts conditions to SQL, and describes conditions in words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec

from countersign.declare import CALLER, TODAY, BadValue, Declared, Field, FieldOf, Moment, Ref, Text
from countersign.declare.condition import OPERATORS, Operator, Where
from countersign.declare.fields.field import Stored
from countersign.kernel import clock
from countersign.kernel.database.port import Dialect, Value
from countersign.records.access import view as seen
from countersign.records.access.people import folded
from countersign.records.access.view import ModelView, Rows, View
from countersign.records.commands import limits
from countersign.records.commands.errors import BadInput, refuse_unknown_keys, unknown_field


class Parameters:
    """Collects the values of a statement while its text is built."""

    def __init__(self, *values: Value) -> None:
        self.values: list[Value] = list(values)

    def put(self, value: Value) -> str:
        """Add the value and return its SQL placeholder."""
        self.values.append(value)
        return f"${len(self.values)}"


class DelegatedParameters(Parameters):
    """Passes the values of a part of a statement to the code that builds the whole statement."""

    def __init__(self, add_parameter: Callable[[Value], str]) -> None:
        super().__init__()
        self._put = add_parameter

    def put(self, value: Value) -> str:
        """Add the value to the whole statement and return its placeholder."""
        return self._put(value)


def column(table: str, name: str) -> str:
    """Return a column of a table alias as SQL. The name needs no escaping, because declarations check the names of
    fields."""
    return f'{table}."{name}"'


def all_of(conditions: list[str]) -> str:
    """Return the conditions joined by AND. Without conditions, return a condition that is always true."""
    return " AND ".join(conditions) if conditions else "1 = 1"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition as the caller sent it. Its value is still a JSON value."""

    field: str
    operator: Operator
    value: object


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One key of the order."""

    field: str
    is_descending: bool


@dataclass(frozen=True, slots=True)
class Query:
    """A query: conditions joined by AND, order keys, limit (None for all records) and offset.

    `scattered` names the filtered fields whose condition matches many records. For them, the index that provides the
    order is faster than the index of the filtered field.
    """

    filter: tuple[Condition, ...] = ()
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    scattered: frozenset[str] = frozenset()


NO_QUERY = Query()
MEMBERS = ("filter", "order", "limit", "offset")
"""The members of the query object."""


def read(body: Mapping[str, object], command: str) -> Query:
    """Parse the query object (API document, Query object and Limits).

    Raises:
        BadInput: a key or an operator is unknown, a value is malformed, or a limit is exceeded. The error names the
            cause.
    """
    if not body:
        return NO_QUERY
    refuse_unknown_keys(body, MEMBERS, command)
    return Query(
        filter=tuple(_condition(member) for member in _array(body, "filter", limits.MAX_CONDITIONS, "conditions")),
        order=tuple(_key(member) for member in _array(body, "order", limits.MAX_KEYS, "keys")),
        limit=_integer(body, "limit", min_value=1, max_value=limits.MAX_ROWS) if "limit" in body else None,
        offset=_integer(body, "offset", min_value=0, max_value=limits.MAX_OFFSET) if "offset" in body else 0,
    )


def _array(body: Mapping[str, object], name: str, max_items: int, noun: str) -> Sequence[object]:
    value = body.get(name, ())
    if not isinstance(value, list | tuple):
        raise BadInput(f"{name} must be an array")
    items = cast("Sequence[object]", value)
    if len(items) > max_items:
        raise BadInput(f"{name} may hold {max_items} {noun} at most")
    return items


def _integer(body: Mapping[str, object], name: str, *, min_value: int, max_value: int) -> int:
    value = body[name]
    if type(value) is not int or not min_value <= value <= max_value:
        raise BadInput(f"{name} must be an integer from {min_value} to {max_value}")
    return value


def _members(value: object, noun: str, known_names: tuple[str, ...]) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise BadInput(f"{noun} must be an object with {', '.join(known_names)}")
    members = cast("Mapping[str, object]", value)
    refuse_unknown_keys(members, known_names, noun)
    return members


def _condition(value: object) -> Condition:
    members = _members(value, "a filter condition", ("field", "op", "value"))
    field, operator = members.get("field"), members.get("op")
    if not isinstance(field, str):
        raise BadInput("a filter condition needs field, a string")
    matching_operator: Operator | None = next(
        (known_operator for known_operator in OPERATORS if known_operator == operator), None
    )
    if matching_operator is None:
        raise BadInput(f"a filter condition needs op, one of {', '.join(OPERATORS)}")
    if "value" not in members:
        raise BadInput("a filter condition needs value")
    return Condition(field, matching_operator, members["value"])


def _key(value: object) -> OrderKey:
    members = _members(value, "an order key", ("field", "dir"))
    field, direction = members.get("field"), members.get("dir", "asc")
    if not isinstance(field, str):
        raise BadInput("an order key needs field, a string")
    if direction not in ("asc", "desc"):
        raise BadInput("dir must be asc or desc")
    return OrderKey(field, direction == "desc")


_RELATIONS: Mapping[str, str] = {
    "eq": "is",
    "ne": "is not",
    "contains": "contains",
    "gt": "is greater than",
    "gte": "is at least",
    "lt": "is less than",
    "lte": "is at most",
}


def clause(condition: Where) -> str:
    """Return one condition in words, for example "party is set" or "stage is new or qualified"."""
    field, value = condition.field, condition.value
    if condition.operator == "is_null":
        return f"{field} is {'empty' if value else 'set'}"
    if condition.operator == "in":
        return f"{field} is {joined([_text(member) for member in cast('Sequence[object]', value)], 'or')}"
    return f"{field} {_RELATIONS[condition.operator]} {_text(value)}"


def refusal(condition: Where) -> str:
    """Return the text of a refusal: what the condition requires, and its remedy if the condition declares one."""
    return f": it requires that {clause(condition)}" + (f"; {condition.remedy}" if condition.remedy else "")


def clauses(conditions: Sequence[Where]) -> str:
    """Return conditions, all of which must be met, in words."""
    return joined([clause(condition) for condition in conditions], "and")


def joined(parts: Sequence[str], conjunction: str) -> str:
    """Return the words as a list in a sentence, such as "a, b or c"."""
    return f" {conjunction} ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _text(value: object) -> str:
    if value is TODAY:
        return "today"
    if value is CALLER:
        return "the caller"
    if isinstance(value, FieldOf):
        return value.name
    return str(value).lower() if isinstance(value, bool) else str(value)


MAX_SINGLE_PARAMETERS = 100
"""The maximum number of values for which an `in` condition has one parameter for each value. More values are sent as
one JSON parameter."""

DISPLAY_UNIT_US = 1_000
"""The number of microseconds in a millisecond, the unit in which instants are displayed."""

_COMPARISON = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}

ID = Text(label="Id")
ID.name = "id"


def today() -> str:
    """Return the current day in UTC, YYYY-MM-DD."""
    return clock.rfc3339(clock.now())[:10]


class Scope:
    """A table in a statement: the alias of the table, and the parameters of the statement.

    With a `view`, a ref to a record that does not exist for the caller is treated as empty.
    """

    def __init__(self, dialect: Dialect, parameters: Parameters, alias: str, view: View | None = None) -> None:
        self.dialect: Dialect = dialect
        self.parameters = parameters
        self.alias = alias
        self.view = view
        self.scattered: frozenset[str] = frozenset()

    def without_view(self) -> "Scope":
        """Return the same table with all stored values, including values that are hidden from the caller."""
        return Scope(self.dialect, self.parameters, self.alias)

    def id_columns(self) -> list[str]:
        """Return the SQL expressions that identify a record."""
        return [f"{self.alias}.id"]

    def order_expressions(self, field: Field) -> list[str]:
        """Return the SQL expressions that order records by the field.

        Raises:
            BadInput: records cannot be ordered by the field.
        """
        return [field.ordered(self.value_of(field))]

    def group_of(self, field: Field) -> str:
        """Return the SQL expression by which `count_by` groups records."""
        return self.value_of(field)

    def comparison(self, name: str, field: Field, operator: Operator, value: object) -> str | None:
        """Return a comparison that this table needs instead of the general one, or None. `name` is the model and the
        field.

        Raises:
            BadInput: the field cannot be compared in this way, or the value is malformed.
        """
        return None

    def name_of(self, ref: Ref, target: ModelView) -> str:
        """Return the SQL expression for the name of the referenced record, which is NULL if the caller does not see the
        record."""
        inner = Scope(self.dialect, self.parameters, f"{self.alias}_{ref.name}_name")
        visible_condition = any_of(inner, target.model, target.visible)
        return (
            f'(SELECT {inner.alias}."{target.model.shown_as}" FROM "{ref.target}" AS {inner.alias} '
            f'WHERE {inner.alias}.id = {self.alias}."{ref.name}" AND {visible_condition})'
        )

    def value_of(self, field: Field) -> str:
        """Return the SQL expression for the value of the field as a caller who reads the field in clear sees it."""
        plain_column = column(self.alias, field.name)
        if self.view is None or not isinstance(field, Ref):
            return plain_column
        target = self.view.models.get(field.target)
        if field in self.view.own:
            return f"CASE WHEN {plain_column} = {self.parameters.put(self.view.own[field])} THEN {plain_column} END"
        rows: Rows = () if target is None or not target.is_readable else target.visible
        if rows is None:
            return plain_column
        if not rows:
            return "NULL"
        inner = Scope(self.dialect, self.parameters, f"{self.alias}_{field.name}")
        visible_condition = any_of(inner, cast(ModelView, target).model, rows)
        return (
            f'CASE WHEN EXISTS (SELECT 1 FROM "{field.target}" AS {inner.alias} '
            f"WHERE {inner.alias}.id = {plain_column} AND {visible_condition}) THEN {plain_column} END"
        )


def any_of(scope: Scope, model: Declared, rows: Rows) -> str:
    """Return the condition that a record is among the rows. The condition applies to stored values, including values
    that are hidden from the caller."""
    if rows is None:
        return "1 = 1"
    if not rows:
        return "1 = 0"
    plain_scope = scope.without_view()
    alternatives = [
        all_of([_row_condition(plain_scope, model, condition) for condition in alternative]) for alternative in rows
    ]
    return f"({' OR '.join(f'({alternative})' for alternative in alternatives)})"


def _row_condition(scope: Scope, model: Declared, rule: Where | seen.Condition) -> str:
    if not isinstance(rule, Where):
        return rule.sql(scope.alias, scope.parameters.put)
    value = today() if rule.value is TODAY else rule.value
    if value is CALLER:
        raise LookupError(f"{model.name}: CALLER must be replaced before a rule becomes SQL")
    return compared(scope, model.name, field_named(model, rule.field), rule.operator, value)


def field_named(model: Declared, name: str) -> Field:
    """Return the field that a condition names, which may be `id`."""
    return ID if name == "id" else model.field(name)


def filter_clauses(scope: Scope, view: ModelView, conditions: Sequence[Condition]) -> list[str]:
    """Return the caller's conditions as SQL. The conditions may use only `id` and the fields that the caller reads in
    clear (API document, Filter 7).

    Raises:
        BadInput: a field is unknown, hidden or masked (the error is the same in all three cases), the operator does not
            fit the kind of the field, or the value is malformed.
    """
    return [
        compared(scope, view.model.name, clear_field(view, condition.field), condition.operator, condition.value)
        for condition in conditions
    ]


def clear_field(view: ModelView, name: str) -> Field:
    """Return the field with this name. The caller must read the stored value of the field in clear.

    Raises:
        BadInput: the field is unknown, hidden, masked or rewritten. The error is the same in all four cases.
    """
    if name == "id":
        return ID
    if not view.sees_in_clear(name) or not view.model.fields[name].operators:
        raise unknown_field(view.model.name, name)
    return view.model.fields[name]


def compared(scope: Scope, model: str, field: Field, operator: Operator, value: object) -> str:
    """Return one comparison as SQL (API document, Filter 2 and 3).

    Raises:
        BadInput: the operator does not fit the field's kind, or the value is malformed.
    """
    name = f"{model}.{field.name}"
    if operator not in field.operators:
        raise BadInput(f"op {operator} does not fit {name}, a {field.kind} field")
    special = scope.comparison(name, field, operator, value)
    if special is not None:
        return special
    expression = column(scope.alias, "id") if field is ID else scope.value_of(field)
    if field.name in scope.scattered:
        # The plus sign does not change the value, but it prevents SQLite from using the index of the field.
        expression = f"+{expression}"
    add_parameter = scope.parameters.put
    if operator == "is_null":
        return f"{expression} IS {null_keyword(name, value)}"
    if operator == "in":
        values = dict.fromkeys(operand_of(field, name, member) for member in array_of(name, value))
        return _is_one_of(scope, field, expression, list(values))
    operand = operand_of(field, name, value)
    if isinstance(field, Moment):
        return _compared_instants(expression, operator, add_parameter, cast(int, operand))
    if operator == "contains":
        return _contains(scope, field, folded(cast(str, operand)))
    return _compared_with(field, operator, expression, operand, add_parameter)


def _compared_with(
    field: Field, operator: Operator, expression: str, operand: Stored, add_parameter: Callable[[Stored], str]
) -> str:
    if operator == "ne":
        return f"({expression} <> {add_parameter(operand)} OR {expression} IS NULL)"
    if operator != "eq":
        expression, operand = field.ordered(expression), field.rank(operand)
    return f"{expression} {_COMPARISON[operator]} {add_parameter(operand)}"


def _compared_instants(expression: str, operator: Operator, add_parameter: Callable[[Stored], str], moment: int) -> str:
    """Return a comparison of instants as SQL. Microseconds are stored, but the comparison uses whole milliseconds, as
    displayed."""
    first_instant, instant_after = (
        -(-moment // DISPLAY_UNIT_US) * DISPLAY_UNIT_US,
        (moment // DISPLAY_UNIT_US + 1) * DISPLAY_UNIT_US,
    )
    if operator == "eq":
        return f"({expression} >= {add_parameter(first_instant)} AND {expression} < {add_parameter(instant_after)})"
    if operator == "ne":
        is_before = f"{expression} < {add_parameter(first_instant)}"
        return f"({is_before} OR {expression} >= {add_parameter(instant_after)} OR {expression} IS NULL)"
    bound_instant = first_instant if operator in ("gte", "lt") else instant_after
    return f"{expression} {'>=' if operator in ('gt', 'gte') else '<'} {add_parameter(bound_instant)}"


def null_keyword(name: str, value: object) -> str:
    """Return NULL or NOT NULL for the value of an `is_null` condition.

    Raises:
        BadInput: the value is not a boolean.
    """
    if not isinstance(value, bool):
        raise BadInput(f"value of is_null on {name} must be true or false")
    return "NULL" if value else "NOT NULL"


def array_of(name: str, value: object) -> list[object]:
    """Return the values of an `in` condition.

    Raises:
        BadInput: the value is not an array of 1 to 1,000 values.
    """
    if not isinstance(value, list | tuple):
        raise BadInput(f"value of in on {name} must be an array")
    values = list(cast("Sequence[object]", value))
    if not 1 <= len(values) <= limits.MAX_VALUES:
        raise BadInput(f"value of in on {name} must hold 1 to {limits.MAX_VALUES} values")
    return values


def _is_one_of(scope: Scope, field: Field, expression: str, values: Sequence[Stored]) -> str:
    """Return the condition `expression IN values`. A few values become one parameter each, so that the planner can use
    them. More values become one JSON parameter, because both engines limit the number of parameters (API document,
    Limits)."""
    add_parameter = scope.parameters.put
    if isinstance(field, Moment):
        expression = f"({expression} - {expression} % {DISPLAY_UNIT_US})"
    if len(values) <= MAX_SINGLE_PARAMETERS:
        return f"{expression} IN ({', '.join(add_parameter(value) for value in values)})"
    value_list = add_parameter(msgspec.json.encode(values).decode())
    if scope.dialect == "sqlite":
        return f"{expression} IN (SELECT value FROM json_each({value_list}))"
    # PostgreSQL builds the array once and looks up its elements in an index. For a table of values, it would scan the
    # whole table of the model.
    elements = f"jsonb_array_elements_text({value_list}::text::jsonb)::{field.column.lower()}"
    return f"{expression} = ANY (ARRAY(SELECT {elements}))"


def operand_of(field: Field, name: str, value: object) -> Stored:
    """Return the value of a condition in its stored form.

    Raises:
        BadInput: the value does not fit the kind of the field.
    """
    try:
        return field.operand(value)
    except BadValue as error:
        raise BadInput(f"value for {name} {error}") from error


def _contains(scope: Scope, field: Field, needle: str) -> str:
    # Audit entries have no folded copies, so their stored texts (ids, command names and labels) are converted to lower
    # case.
    text = column(scope.alias, "id" if field is ID else field.name)
    haystack = text if field is ID else f"COALESCE({column(scope.alias, f'{field.name}__folded')}, lower({text}))"
    function = "instr" if scope.dialect == "sqlite" else "strpos"
    return f"{function}({haystack}, {scope.parameters.put(needle)}) > 0"
