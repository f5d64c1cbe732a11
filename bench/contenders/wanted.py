"""Which contender is to be served, and on what."""

from typing import Literal

import msgspec


class Wanted(msgspec.Struct, kw_only=True):
    """`body_bytes` and `status` are bare's answer; `floor-group` is the floor whose inserts share commits.

    `records` is the records service, `records-floor` what it does by hand; `records-unaudited` writes no audit.
    `fastmcp` reads one lead as a tool. `connected` is the records service over a table of an existing database at
    `database_url`, and `connected-floor` the same SQL by hand. `connected-writing` also has its own tables there.
    `writes` says that requests write, which the peer has to know when it begins a transaction on SQLite.
    """

    contender: Literal[
        "bare",
        "connected",
        "connected-floor",
        "connected-writing",
        "fastmcp",
        "floor",
        "floor-group",
        "ours",
        "peer",
        "records",
        "records-floor",
        "records-unaudited",
    ]
    port: int
    database_url: str = ""
    data: str = ""
    modules: str = ""
    body_bytes: int = 0
    status: int = 200
    writes: bool = False

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a SQLite file."""
        return self.database_url.startswith("sqlite:")

    @property
    def path(self) -> str:
        """The SQLite file."""
        return self.database_url.removeprefix("sqlite:///")
