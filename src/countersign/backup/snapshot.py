"""What a copy of a whole database is taken from: one moment of it, whatever is written meanwhile."""

from typing import NamedTuple, Protocol

from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Row, Value


class Table(NamedTuple):
    """A table as statements that make it again: `create` before its rows come, `finish` (keys, rules, indexes) after
    those of all tables, `references` after that of all tables. `columns` are quoted, in the order of the rows."""

    name: str
    create: str
    columns: tuple[str, ...]
    finish: tuple[str, ...]
    references: tuple[str, ...]


class Snapshot(Protocol):
    """One moment of the database. Whatever was acknowledged before `moment` is in it."""

    @property
    def moment(self) -> Instant:
        """When it was about to be taken, on this machine's clock."""
        ...

    async def fetch(self, schema: str, statement: str, *values: Value) -> list[Row]:
        """All rows of a read of one service's tables; of a statement with a limit."""
        ...
