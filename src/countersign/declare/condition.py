"""Conditions of rules, guards, locks and grants, with the same operators as filters."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Operator: TypeAlias = Literal["eq", "ne", "contains", "in", "gt", "gte", "lt", "lte", "is_null"]

OPERATORS: Final[tuple[Operator, ...]] = ("eq", "ne", "contains", "in", "gt", "gte", "lt", "lte", "is_null")


class RuntimeValue:
    """A placeholder for a value that is known only when a command runs."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


CALLER: Final = RuntimeValue("CALLER")
"""The id of the calling person, or of the person for whom an agent acts."""

AGENT: Final = RuntimeValue("AGENT")
"""The label of the calling agent, or no value for a person. Only the models of `base` use it."""

TODAY: Final = RuntimeValue("TODAY")
"""The day on which the command runs, in UTC."""

NEXT_QUARTER: Final = RuntimeValue("NEXT_QUARTER")
"""The first day of the next quarter of the calendar, in UTC. Only views of a model's list may use it."""


@dataclass(frozen=True, slots=True)
class FieldOf:
    """The value of another field, for the rules of a model. A rule is met if this other field is empty.

    `FieldOf("issued")` is a field of the same record. `FieldOf("invoice.issued")` is a field of the record that the ref
    `invoice` refers to.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on a field of the model. `value` is a JSON value, `CALLER`, `TODAY` or, in rules, `FieldOf`.

    If a record does not meet the condition of a guard or a rule, the error text contains `remedy`.
    """

    field: str
    operator: Operator
    value: object
    remedy: str = ""


def where(field: str, *, remedy: str = "", **condition: object) -> Where:
    """Return a condition: `where("stage", eq="new")`, `where("owner", eq=CALLER)`, `where("party", is_null=False,
    remedy="set the party")`.

    Raises:
        ValueError: the call does not have exactly one operator, or the operator is unknown.
    """
    names = list(condition)
    # A trailing underscore is removed: `in` is a Python keyword, so it is written in_=["new", "won"].
    operator: Operator | None = next(
        (operator for operator in OPERATORS if names == [operator] or names == [f"{operator}_"]), None
    )
    if operator is None:
        raise ValueError(f"where({field!r}, …): name exactly one of {', '.join(OPERATORS)} (`in` as in_)")
    return Where(field, operator, condition[names[0]], remedy)
