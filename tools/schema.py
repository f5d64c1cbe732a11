"""Generates src/countersign/store/schema.sql, the whole schema after all migrations.

The program applies the migrations in order to an empty SQLite database. SQLite stores the text of each CREATE statement
and updates it with every ALTER TABLE. The program then adds the comments that precede the statements in the migrations.
"""

import re
import sqlite3
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

MIGRATIONS = "countersign.store.migrations"
TARGET = Path(__file__).parents[1] / "src/countersign/store/schema.sql"
HEAD = "-- The whole current schema, to read. `make schema` writes it from migrations/; only those are ever applied.\n"

_COMMENTED = re.compile(
    r"((?:^--[^\n]*\n+)+)CREATE (?:UNIQUE )?(?:TABLE|INDEX) (?:IF NOT EXISTS )?(\w+)", re.MULTILINE | re.IGNORECASE
)
_ONLY = re.compile(r"^-- only: (\w+)[ \t]*\n(.*?)^-- end[ \t]*$", re.DOTALL | re.MULTILINE)
ENGINES = ("sqlite", "postgres")
_OBJECTS = """
SELECT tbl_name, name, sql
FROM sqlite_schema
WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'
ORDER BY rowid
"""


def schema() -> str:
    """Return the text of schema.sql: the tables in the order of their creation, with their comments and indexes. A
    statement that only one engine has is in a block of its own, as in the migrations."""
    texts = [
        file.read_text(encoding="utf-8")
        for file in sorted(resources.files(MIGRATIONS).iterdir(), key=lambda path: path.name)
        if file.name.endswith(".sql")
    ]
    by_engine = {engine: _statements(texts, engine) for engine in ENGINES}
    tables: dict[str, list[str]] = {}
    for engine, statements in by_engine.items():
        for (table, name), statement in statements.items():
            is_common = all(statements.get((table, name)) == statement for statements in by_engine.values())
            if is_common and engine != ENGINES[0]:
                continue
            statement_text = statement if is_common else f"-- only: {engine}\n{statement}-- end\n"
            tables.setdefault(table, []).append(statement_text)
    return HEAD + "".join("\n" + "".join(statements) for statements in tables.values())


def _statements(texts: Sequence[str], engine: str) -> dict[tuple[str, str], str]:
    """Return the statements of an engine, with their comments, by table and name."""
    comments: dict[str, str] = {}
    database = sqlite3.connect(":memory:")
    try:
        for text in texts:
            own_text = _ONLY.sub(lambda block: block[2] if block[1] == engine else "", text)
            database.executescript(own_text)
            comments |= {name: comment for comment, name in _COMMENTED.findall(own_text)}
        objects: list[tuple[str, str, str]] = database.execute(_OBJECTS).fetchall()
    finally:
        database.close()
    return {(table, name): f"{comments.get(name, '')}{statement};\n" for table, name, statement in objects}


if __name__ == "__main__":
    TARGET.write_text(schema(), encoding="utf-8")
