"""Conditions as sentences: what a refusal or a description says a record must be like."""

from collections.abc import Mapping, Sequence
from typing import cast

from countersign.declare import CALLER, TODAY, FieldOf, Where

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
    """One condition, for example "party is set" or "stage is new or qualified"."""
    field, value = condition.field, condition.value
    if condition.operator == "is_null":
        return f"{field} is {'empty' if value else 'set'}"
    if condition.operator == "in":
        return f"{field} is {joined([_text(each) for each in cast('Sequence[object]', value)], 'or')}"
    return f"{field} {_RELATIONS[condition.operator]} {_text(value)}"


def refusal(condition: Where) -> str:
    """What a refusal says of a condition that is not met: what it requires, and the remedy where one is declared."""
    return f": it requires that {clause(condition)}" + (f"; {condition.remedy}" if condition.remedy else "")


def clauses(conditions: Sequence[Where]) -> str:
    """Several conditions, of which all must be met."""
    return joined([clause(each) for each in conditions], "and")


def joined(words: Sequence[str], conjunction: str) -> str:
    """A list in a sentence: "a, b or c"."""
    return f" {conjunction} ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _text(value: object) -> str:
    if value is TODAY:
        return "today"
    if value is CALLER:
        return "the caller"
    if isinstance(value, FieldOf):
        return value.name
    return str(value).lower() if isinstance(value, bool) else str(value)
