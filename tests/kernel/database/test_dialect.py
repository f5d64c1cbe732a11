"""One schema text in the dialects of both engines."""

import pytest

from countersign.kernel.database.migrate import NotPortable, in_dialect

TEXT = """
-- A TEXT; with a BLOB
CREATE TABLE a (
    id TEXT PRIMARY KEY, -- TEXT; here
    size BIGINT NOT NULL CHECK (size > 0),
    note TEXT DEFAULT 'TEXT; BLOB',
    part REAL,
    body BLOB
) WITHOUT ROWID;
CREATE TABLE b (n BIGINT); -- last
CREATE INDEX b_by_n ON b (n);
UPDATE b SET n = CAST('1' AS INTEGER);
"""


def test_sqlite_gets_strict_tables_of_its_types() -> None:
    statement = in_dialect(TEXT, "sqlite")

    assert "size INTEGER NOT NULL CHECK" in statement
    assert ") WITHOUT ROWID, STRICT;" in statement
    assert "CREATE TABLE b (n INTEGER) STRICT; -- last" in statement
    assert "note TEXT DEFAULT 'TEXT; BLOB'" in statement


def test_postgres_gets_text_that_compares_by_code_point() -> None:
    statement = in_dialect(TEXT, "postgres")

    assert 'id TEXT COLLATE "C" PRIMARY KEY, -- TEXT; here' in statement
    assert "note TEXT COLLATE \"C\" DEFAULT 'TEXT; BLOB'" in statement
    assert "body BYTEA\n);" in statement
    assert "part DOUBLE PRECISION" in statement
    assert "-- A TEXT; with a BLOB\n" in statement
    assert "CAST('1' AS INTEGER)" in statement


def test_a_marked_block_applies_to_one_engine() -> None:
    text = "a\n-- only: sqlite\nb\n-- end\nc\n-- only: postgres\nd\n-- end\ne\n"

    assert in_dialect(text, "sqlite").split() == ["a", "b", "c", "e"]
    assert in_dialect(text, "postgres").split() == ["a", "c", "d", "e"]


@pytest.mark.parametrize(
    "text",
    ["-- only: oracle\na\n-- end\n", "CREATE TABLE a (b TEXT REFERENCES c DEFERRABLE INITIALLY DEFERRED);"],
)
def test_sql_that_only_one_engine_supports_is_refused(text: str) -> None:
    with pytest.raises(NotPortable):
        in_dialect(text, "sqlite")


def test_an_added_column_is_translated_without_changing_the_table() -> None:
    text = "ALTER TABLE a ADD COLUMN b TEXT;"

    assert in_dialect(text, "sqlite") == text
    assert in_dialect(text, "postgres") == 'ALTER TABLE a ADD COLUMN b TEXT COLLATE "C";'
