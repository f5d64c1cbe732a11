"""A consistent snapshot of a database, for copies."""

from typing import NamedTuple, Protocol

from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Row, Value


class Table(NamedTuple):
    """The statements that recreate a table.

    Execute `create` before its rows, `finish` (keys, constraints, indexes) after the rows of all tables, and
    `references` after `finish` of all tables. `columns` are quoted, in the order of the values in a row.
    """

    name: str
    create: str
    columns: tuple[str, ...]
    finish: tuple[str, ...]
    references: tuple[str, ...]


class Snapshot(Protocol):
    """A snapshot of the database. It includes every write that was acknowledged before `moment`."""

    @property
    def moment(self) -> Instant:
        """The time just before the snapshot, on this machine's clock."""
        ...

    async def fetch(self, schema: str, statement: str, *values: Value) -> list[Row]:
        """All rows of a bounded read of one service's tables."""
        ...
