"""Conditions: which records a rule, a guard or a lock is about; the same words as filters have."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Operator: TypeAlias = Literal["eq", "ne", "contains", "in", "gt", "gte", "lt", "lte", "is_null"]

OPERATORS: Final[tuple[Operator, ...]] = ("eq", "ne", "contains", "in", "gt", "gte", "lt", "lte", "is_null")


class RuntimeValue:
    """A value that is known only when a command runs."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


CALLER: Final = RuntimeValue("CALLER")
"""The id of the person who calls, or on whose behalf an agent does."""

TODAY: Final = RuntimeValue("TODAY")
"""The day the command runs, in UTC."""


@dataclass(frozen=True, slots=True)
class FieldOf:
    """The value of another field: `FieldOf("issued")` of the same record, `FieldOf("invoice.issued")` of the record
    that the ref `invoice` leads to. For the rules of a model; where the field is empty, its rule is met."""

    name: str


@dataclass(frozen=True, slots=True)
class Where:
    """One condition on a field of the model; `value` is JSON, `CALLER`, `TODAY` or, in rules, `FieldOf`. `remedy` is
    what a refusal says to do where a guard or a rule is not met."""

    field: str
    operator: Operator
    value: object
    remedy: str = ""


def where(field: str, *, remedy: str = "", **condition: object) -> Where:
    """`where("stage", eq="new")`, `where("owner", eq=CALLER)`, `where("party", is_null=False, remedy="set the party")`.

    Raises:
        ValueError: not exactly one operator is named, or none that there is.
    """
    names = list(condition)
    # A trailing underscore lets Python's own word be written: in_=["new", "won"].
    operator: Operator | None = next((each for each in OPERATORS if names == [each] or names == [f"{each}_"]), None)
    if operator is None:
        raise ValueError(f"where({field!r}, …): name exactly one of {', '.join(OPERATORS)} (`in` as in_)")
    return Where(field, operator, condition[names[0]], remedy)
