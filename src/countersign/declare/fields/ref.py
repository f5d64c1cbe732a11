"""The kind `ref`: the id of a record of another model (or the same)."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias, Unpack

from countersign.declare.errors import BadValue
from countersign.declare.fields.field import EQUALITY, Field, FieldOptions, Stored

OnDelete: TypeAlias = Literal["refuse", "clear", "cascade"]

_ID = re.compile(r"[0-9a-f]{24}", re.ASCII)


def is_record_id(text: str) -> bool:
    """Whether the text has the shape of a record's id: 24 lower-case hexadecimal digits."""
    return _ID.fullmatch(text) is not None


class Ref(Field):
    """The id of a record of `target`; `on_delete` says what deleting that record does to this one: it is refused,
    the ref becomes empty, or this record is deleted with it.

    `fills` names, by field of this model, the field of the other record that it is copied from when a record is made
    and the field is left out: {"unit_price_minor": "unit_price_minor"}. Only what the caller reads there in clear is
    copied.
    """

    kind: ClassVar[str] = "ref"
    operators: ClassVar[frozenset[str]] = EQUALITY

    def __init__(
        self,
        target: str,
        *,
        on_delete: OnDelete = "refuse",
        fills: Mapping[str, str] | None = None,
        **options: Unpack[FieldOptions],
    ) -> None:
        super().__init__(**options)
        self.target = target
        self.fills: Mapping[str, str] = fills or {}
        self.on_delete: OnDelete = on_delete
        # Deleting the target and showing what refers to it look records up by it.
        self.index = True

    def read(self, value: object) -> Stored:
        """The id as text; whether there is such a record is for the database to say.

        Raises:
            BadValue: it is no string. (One that is no id is treated as the id of no record.)
        """
        if not isinstance(value, str):
            raise BadValue(f"must be the id of a {self.target} record")
        return value if is_record_id(value) else ""

    def schema(self) -> Mapping[str, Any]:
        """A string, with the model it refers to."""
        return {"type": "string", "description": f"id of a {self.target} record"}
