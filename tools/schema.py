"""Generates src/countersign/store/schema.sql, the whole schema after all migrations.

The program applies the migrations in order to an empty SQLite database. SQLite stores the text of each CREATE statement
and updates it with every ALTER TABLE. The program then adds the comments that precede the statements in the migrations.
"""

import re
import sqlite3
from importlib import resources
from pathlib import Path

MIGRATIONS = "countersign.store.migrations"
TARGET = Path(__file__).parents[1] / "src/countersign/store/schema.sql"
HEAD = "-- The whole current schema, to read. `make schema` writes it from migrations/; only those are ever applied.\n"

_COMMENTED = re.compile(
    r"((?:^--[^\n]*\n+)+)CREATE (?:UNIQUE )?(?:TABLE|INDEX) (?:IF NOT EXISTS )?(\w+)", re.MULTILINE | re.IGNORECASE
)
_POSTGRES_ONLY = re.compile(r"^-- only: postgres[ \t]*\n.*?^-- end[ \t]*$", re.DOTALL | re.MULTILINE)
_OBJECTS = """
SELECT tbl_name, name, sql
FROM sqlite_schema
WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'
ORDER BY rowid
"""


def schema() -> str:
    """Return the text of schema.sql: the tables in the order of their creation, with their comments and indexes, as
    SQLite has them."""
    texts = [
        file.read_text(encoding="utf-8")
        for file in sorted(resources.files(MIGRATIONS).iterdir(), key=lambda each: each.name)
        if file.name.endswith(".sql")
    ]
    comments: dict[str, str] = {}
    database = sqlite3.connect(":memory:")
    try:
        for text in texts:
            database.executescript(_POSTGRES_ONLY.sub("", text))
            comments |= {name: comment for comment, name in _COMMENTED.findall(text)}
        objects: list[tuple[str, str, str]] = database.execute(_OBJECTS).fetchall()
    finally:
        database.close()
    tables: dict[str, list[str]] = {}
    for table, name, statement in objects:
        tables.setdefault(table, []).append(f"{comments.get(name, '')}{statement};\n")
    return HEAD + "".join("\n" + "".join(statements) for statements in tables.values())


if __name__ == "__main__":
    TARGET.write_text(schema(), encoding="utf-8")
