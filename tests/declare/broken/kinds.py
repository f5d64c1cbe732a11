"""Kinds of fields that break a rule, one case for each possible mistake."""

from abc import ABC
from collections.abc import Mapping
from typing import Any, ClassVar, cast

from countersign.declare import BadValue, Field, Module, Stored, Text
from countersign.declare.rules import kinds
from countersign.declare.rules.declarations import Rule
from tests.declare.sample_modules import BrokenModules, model, nursery


class Height(Field):
    """A height, as the given text."""

    kind: ClassVar[str] = "height"

    def read(self, value: object) -> Stored:
        """Return the text."""
        if isinstance(value, str):
            return value
        raise BadValue("must be a height")

    def schema(self) -> Mapping[str, Any]:
        """Return a string."""
        return {"type": "string"}


class Unfinished(Field, ABC):
    """It lacks everything."""

    kind: ClassVar[str] = "unfinished"


class Shouting(Height):
    """Its name is in capitals."""

    kind: ClassVar[str] = "HEIGHT"


class SameName(Height):
    """It has the name of its base class."""


class Float(Height):
    """Its column type does not exist."""

    kind: ClassVar[str] = "float"
    column: ClassVar[Any] = "REAL"


class Contained(Height):
    """It has an operator that is for texts only."""

    kind: ClassVar[str] = "contained"
    operators: ClassVar[frozenset[str]] = frozenset({"contains"})


class Masked(Height):
    """It uses placeholder tokens, but is not text."""

    kind: ClassVar[str] = "masked"
    is_maskable: ClassVar[bool] = True


def registering(*several: type[Field]) -> Module:
    """Return a module that registers these kinds."""
    return nursery(model("Plant", {"title": Text()}), kinds=several)


def kinds_case(rule: Rule, remedy: str, *several: type[Field]) -> BrokenModules:
    """Return a case of one module that registers these kinds."""
    return BrokenModules(rule, (registering(*several),), "module nursery", remedy)


GROWN = model("Tree", {"title": Text(), "height": Height()})
FOREIGN = (registering(Height), Module("forest", version="1.0.0", models=(GROWN,)))

CASES: list[BrokenModules] = [
    kinds_case(kinds.kinds_are_fields, "not a class derived from Field", cast("type[Field]", Text())),
    kinds_case(kinds.kinds_are_fields, "lacks read, schema", Unfinished),
    kinds_case(kinds.kinds_named, "lower-case letters", Shouting),
    kinds_case(kinds.kinds_named, "rename it", Height, SameName),
    kinds_case(kinds.kinds_named, "rename it", Text),
    kinds_case(kinds.kinds_fit_columns, "must be one of TEXT, BIGINT", Float),
    kinds_case(kinds.kinds_fit_columns, "take out contains", Contained),
    kinds_case(kinds.kinds_fit_columns, "derive it from Text", Masked),
    BrokenModules(kinds.kinds_are_registered, (nursery(GROWN),), "tree.height", "add it to kinds"),
    BrokenModules(kinds.kinds_are_registered, FOREIGN, "tree.height", "add 'nursery' to needs"),
]
