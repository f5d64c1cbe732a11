"""Creates a small shop as a database to try `countersign connect` on. All people in it are invented."""

import os
import sqlite3
from contextlib import closing
from importlib import resources
from pathlib import Path

from countersign.kernel.database import postgres_admin
from countersign.kernel.errors import NotEmpty

APPLICATION = "countersign connect"

_SHOP = "demo_shop.sql"
_OBJECT_COUNT = """
SELECT count(*)
FROM (
    SELECT 'pg_class'::regclass AS class, c.oid, c.relnamespace AS schema
    FROM pg_catalog.pg_class AS c
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    UNION ALL
    SELECT 'pg_type'::regclass, t.oid, t.typnamespace
    FROM pg_catalog.pg_type AS t
    LEFT JOIN pg_catalog.pg_class AS c ON c.oid = t.typrelid
    WHERE t.typtype IN ('b', 'd', 'e', 'r') AND t.typcategory <> 'A' OR c.relkind = 'c'
) AS o
JOIN pg_catalog.pg_namespace AS n ON n.oid = o.schema
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
    AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_depend AS d WHERE d.classid = o.class AND d.objid = o.oid AND d.deptype = 'e'
    )
"""


def create_sqlite(path: Path) -> None:
    """Create a new SQLite file with the shop.

    Raises:
        FileExistsError: there is a file at the path.
        OSError: the file cannot be written.
    """
    # Write another file first, so that no incomplete file has the name, and an existing file stays.
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        with closing(sqlite3.connect(unfinished)) as connection:
            connection.executescript(f"BEGIN; {_script()} COMMIT;")
        os.link(unfinished, path)
    except sqlite3.Error as error:
        raise OSError(f"{path} cannot be written: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


async def create_postgres(url: str) -> None:
    """Create the shop in an empty PostgreSQL database, in one transaction.

    Raises:
        NotEmpty: the database has tables, views, sequences or types, other than those of extensions.
        Unavailable: the server cannot be reached, or the role may not create tables.
        ValueError: the URL cannot be parsed.
    """
    async with (
        postgres_admin.admin_session(url, application=APPLICATION) as connection,
        connection.transaction(isolation="serializable", readonly=False),
    ):
        if await connection.fetchval(_OBJECT_COUNT):
            raise NotEmpty("the database has tables or types already: the demonstration needs an empty one")
        await connection.execute(_script())


def _script() -> str:
    return (resources.files("countersign.connect") / _SHOP).read_text(encoding="utf-8")
