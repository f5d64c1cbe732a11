"""The kind `structure`: a JSON value the engine keeps and shows to each viewer as he may see it."""

from collections.abc import Mapping
from typing import Any, ClassVar

from countersign.declare.errors import BadValue
from countersign.declare.fields.field import Field, Stored


class Structure(Field):
    """A JSON value, written by the engine alone, neither filtered nor ordered."""

    kind: ClassVar[str] = "structure"
    operators: ClassVar[frozenset[str]] = frozenset()

    def read(self, value: object) -> Stored:
        """Never given by a caller.

        Raises:
            BadValue: always.
        """
        raise BadValue("is written by the service alone")

    def schema(self) -> Mapping[str, Any]:
        """Any JSON value."""
        return {}
