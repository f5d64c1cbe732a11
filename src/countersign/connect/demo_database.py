"""Creates a small shop as a database to try `countersign connect` on. All people in it are invented."""

import sqlite3
from contextlib import closing
from importlib import resources
from pathlib import Path

from countersign.kernel.database import postgres_admin
from countersign.kernel.errors import NotEmpty

APPLICATION = "countersign connect"

_SHOP = "demo_shop.sql"
_TABLE_COUNT = """
SELECT count(*) FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
"""


def create_sqlite(path: Path) -> None:
    """Create a new SQLite file with the shop.

    Raises:
        FileExistsError: there is a file at the path.
        OSError: the file cannot be written.
    """
    # SQLite would open an existing file, so create the file first.
    path.open("xb").close()
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(f"BEGIN; {_script()} COMMIT;")
    except sqlite3.Error as error:
        path.unlink()
        raise OSError(f"{path} cannot be written: {error}") from error


async def create_postgres(url: str) -> None:
    """Create the shop in an empty PostgreSQL database, in one transaction.

    Raises:
        NotEmpty: the database has tables or views.
        Unavailable: the server cannot be reached, or the role may not create tables.
        ValueError: the URL cannot be parsed.
    """
    async with (
        postgres_admin.admin_session(url, application=APPLICATION) as connection,
        connection.transaction(isolation="serializable", readonly=False),
    ):
        if await connection.fetchval(_TABLE_COUNT):
            raise NotEmpty("the database has tables already: the demonstration needs an empty one")
        await connection.execute(_script())


def _script() -> str:
    return (resources.files("countersign.connect") / _SHOP).read_text(encoding="utf-8")
