"""The kind `date`: a day of the calendar."""

import datetime
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from countersign.declare.errors import BadValue
from countersign.declare.fields.field import Field, Stored

_SHAPE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


class Date(Field):
    """A day, as text YYYY-MM-DD; stored so, it sorts by calendar."""

    kind: ClassVar[str] = "date"

    def read(self, value: object) -> Stored:
        """The day.

        Raises:
            BadValue: it is no string YYYY-MM-DD that names a real day of the years 0001 to 9999.
        """
        if isinstance(value, str) and _SHAPE.fullmatch(value):
            try:
                datetime.date.fromisoformat(value)
            except ValueError as error:
                raise BadValue("must be a real calendar date, YYYY-MM-DD") from error
            return value
        raise BadValue("must be a real calendar date, YYYY-MM-DD")

    def schema(self) -> Mapping[str, Any]:
        """A string of format date."""
        return {"type": "string", "format": "date"}
