"""An independent implementation of queries without a database: it filters, orders and counts JSON records in memory."""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from countersign.declare import Declared, Field, Select
from countersign.declare.condition import OPERATORS, Operator

Record: TypeAlias = Mapping[str, Any]
Query: TypeAlias = Mapping[str, Any]

TEXT_KINDS = ("text", "longtext")
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "gt": lambda value, operand: value > operand,
    "gte": lambda value, operand: value >= operand,
    "lt": lambda value, operand: value < operand,
    "lte": lambda value, operand: value <= operand,
}


def operators(model: Declared, name: str) -> tuple[Operator, ...]:
    """Return the operators of a field (API document, Filter 2)."""
    kind = "text" if name == "id" else model.fields[name].kind
    unfit_operators = {"contains"} if kind not in TEXT_KINDS else set[str]()
    unfit_operators |= set(COMPARISONS) if kind in ("bool", "ref") else set()
    return tuple(operator for operator in OPERATORS if operator not in unfit_operators)


def fold(text: str) -> str:
    """Return the text with full case folding, normalized to NFC before and after."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def rank(field: Field | None, value: Any) -> Any:
    """Return the key by which a value is ordered and compared: the position of an option, or any other value itself."""
    return field.options.index(cast(str, value)) if isinstance(field, Select) else value


def matches(field: Field | None, value: Any, operator: str, operand: Any) -> bool:
    """Return whether a value meets a condition (API document, Filter 2 and 3)."""
    if operator == "is_null":
        return (value is None) == operand
    if value is None:
        return operator == "ne"
    if operator == "contains":
        return fold(operand) in fold(value)
    if operator == "in":
        return value in operand
    if operator in ("eq", "ne"):
        return (value == operand) == (operator == "eq")
    return COMPARISONS[operator](rank(field, value), rank(field, operand))


def filter_records(model: Declared, records: Sequence[Record], query: Query) -> list[Record]:
    """Return the records that meet all conditions."""
    return [
        record
        for record in records
        if all(
            matches(
                model.fields.get(condition["field"]), record[condition["field"]], condition["op"], condition["value"]
            )
            for condition in query.get("filter", ())
        )
    ]


def sort_records(model: Declared, records: Sequence[Record], query: Query) -> list[Record]:
    """Return the records in the order of the keys, with empty values last in both directions, and then by id (API
    document, Filter 4)."""
    ordered_records = sorted(records, key=lambda record: record["id"])
    for key in reversed(query.get("order", ())):
        name, is_descending = key["field"], key.get("dir", "asc") == "desc"
        records_with_value = [record for record in ordered_records if record[name] is not None]
        keys = {record["id"]: rank(model.fields.get(name), record[name]) for record in records_with_value}
        # A stable sort in reverse keeps equal records in their order.
        records_with_value.sort(key=lambda record, keys=keys: keys[record["id"]], reverse=is_descending)
        ordered_records = records_with_value + [record for record in ordered_records if record[name] is None]
    return ordered_records


def page(model: Declared, records: Sequence[Record], query: Query) -> list[Record]:
    """Return the records of a query."""
    matching = sort_records(model, filter_records(model, records, query), query)[query.get("offset", 0) :]
    return matching[: query["limit"]] if "limit" in query else matching


def groups(model: Declared, records: Sequence[Record], name: str, query: Query) -> list[dict[str, Any]]:
    """Count the records of each value of a field. The values of a select field are in the order of its options, other
    values are sorted, and the empty value is last."""
    values = [record[name] for record in filter_records(model, records, query)]
    distinct = sorted(
        {value for value in values if value is not None}, key=lambda value: rank(model.fields[name], value)
    )
    return [{"value": value, "count": values.count(value)} for value in (*distinct, None) if value in values]
