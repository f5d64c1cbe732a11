"""The interface of a consistent snapshot of the databases, from which copies are made."""

from typing import NamedTuple, Protocol

from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Row, Value


class Table(NamedTuple):
    """The statements that recreate a table.

    Execute `create` before inserting the rows of the table. Execute `finish`, which creates keys, constraints and
    indexes, after inserting the rows of all tables. Execute `references` after `finish` of all tables. `columns` are
    the quoted names of the columns, in the order of the values in a row.
    """

    name: str
    create: str
    columns: tuple[str, ...]
    finish: tuple[str, ...]
    references: tuple[str, ...]


class Snapshot(Protocol):
    """A snapshot of the databases. It includes every write that was acknowledged before `moment`."""

    @property
    def moment(self) -> Instant:
        """The time just before the snapshot, on this machine's clock."""
        ...

    async def fetch(self, schema: str, statement: str, *values: Value) -> list[Row]:
        """Read all rows of a statement on the tables of one service. The statement must limit their number."""
        ...
