"""The kind `moment`: an instant, written by the engine alone."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from countersign.declare.errors import BadValue
from countersign.declare.fields.field import ColumnType, Field, Stored

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHAPE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2})", re.ASCII)


class Moment(Field):
    """An instant in UTC, RFC 3339 with milliseconds in JSON, microseconds since 1970 in the database."""

    kind: ClassVar[str] = "moment"
    column: ClassVar[ColumnType] = "BIGINT"

    def read(self, value: object) -> Stored:
        """The instant.

        Raises:
            BadValue: it is no RFC 3339 text with a time zone.
        """
        if isinstance(value, str) and _SHAPE.fullmatch(value):
            try:
                return (datetime.fromisoformat(value).astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
            except (ValueError, OverflowError) as error:
                raise BadValue("must be an RFC 3339 instant such as 2026-11-20T22:13:00.000Z") from error
        raise BadValue("must be an RFC 3339 instant such as 2026-11-20T22:13:00.000Z")

    def show(self, stored: Stored) -> object:
        """RFC 3339 text in UTC with milliseconds."""
        moment = _EPOCH + timedelta(microseconds=int(stored or 0))
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"

    def schema(self) -> Mapping[str, Any]:
        """A string of format date-time."""
        return {"type": "string", "format": "date-time"}
