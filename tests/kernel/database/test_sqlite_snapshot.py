"""Faults of an SQLite file from another source."""

from pathlib import Path

import pytest

from countersign.backup import sqlite_snapshot
from countersign.kernel.database import sqlite_connection

TABLES = "CREATE TABLE parent (id TEXT PRIMARY KEY); CREATE TABLE child (id TEXT REFERENCES parent (id));"


@pytest.mark.parametrize(
    ("added_sql", "defects"),
    [
        ("", []),
        ("CREATE INDEX by_id ON child (id)", []),
        (
            "CREATE TRIGGER undo AFTER DELETE ON parent BEGIN INSERT INTO parent VALUES (old.id); END",
            ["the trigger undo was not created by Countersign"],
        ),
        ("CREATE VIEW shown AS SELECT * FROM parent", ["the view shown was not created by Countersign"]),
        ("INSERT INTO child VALUES ('nobody')", ["1 rows of child refer to missing rows of parent"]),
    ],
)
def test_a_table_that_does_not_belong_in_a_file_is_named(tmp_path: Path, added_sql: str, defects: list[str]) -> None:
    connection = sqlite_connection.connect(tmp_path / "file.sqlite", use="write")
    connection.execute(f"{TABLES} PRAGMA foreign_keys = OFF; {added_sql}").fetchall()
    connection.close(True)

    assert sqlite_snapshot.check_integrity(tmp_path / "file.sqlite") == defects
