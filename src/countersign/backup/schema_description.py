"""A canonical description of a database's schema, for comparisons."""

import re

from countersign.kernel.database.port import Database, Dialect, Reader, Row

_SQLITE_TABLES = """
SELECT name, sql
FROM sqlite_schema
WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
ORDER BY name
"""
# SQLite's own tables are left out. They contain planner statistics and the last values of sequences.
_SQLITE_STATEMENTS = """
SELECT tbl_name, sql
FROM sqlite_schema
WHERE sql IS NOT NULL AND sql NOT IN (
    'CREATE TABLE sqlite_stat1(tbl,idx,stat)',
    'CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)',
    'CREATE TABLE sqlite_sequence(name,seq)'
)
"""
_SQLITE_COLUMNS = """
SELECT name, type, "notnull", coalesce(dflt_value, ''), pk
FROM pragma_table_xinfo($1)
ORDER BY name
"""
_SQLITE_INDEXES = """
SELECT l.origin, l."unique", l.partial, coalesce(s.sql, ''), (
    SELECT group_concat(x.name || ' ' || x.coll || ' ' || x."desc")
    FROM (SELECT name, coll, "desc" FROM pragma_index_xinfo(l.name) WHERE key ORDER BY seqno) AS x
)
FROM pragma_index_list($1) AS l
LEFT JOIN sqlite_schema AS s ON s.type = 'index' AND s.name = l.name
ORDER BY 1, 5, 4
"""
_SQLITE_REFERENCES = """
SELECT "from", "table", coalesce("to", ''), on_update, on_delete
FROM pragma_foreign_key_list($1)
ORDER BY 1, 2, 3
"""
_POSTGRES_SCHEMA = "SELECT quote_ident(current_schema())"
_POSTGRES_COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
    coalesce(pg_get_expr(d.adbin, d.adrelid), ''), coalesce(o.collname, '')
FROM pg_attribute AS a
JOIN pg_class AS c ON c.oid = a.attrelid
LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_collation AS o ON o.oid = a.attcollation
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
    AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY c.relname COLLATE "C", a.attname COLLATE "C"
"""
_POSTGRES_CONSTRAINTS = """
SELECT c.relname, pg_get_constraintdef(k.oid)
FROM pg_constraint AS k
JOIN pg_class AS c ON c.oid = k.conrelid
WHERE c.relnamespace = current_schema()::regnamespace
ORDER BY c.relname COLLATE "C", pg_get_constraintdef(k.oid) COLLATE "C"
"""
_POSTGRES_INDEXES = """
SELECT tablename, indexdef
FROM pg_indexes
WHERE schemaname = current_schema()
ORDER BY tablename COLLATE "C", indexdef COLLATE "C"
"""
_POSTGRES_PARTS = {"column": _POSTGRES_COLUMNS, "constraint": _POSTGRES_CONSTRAINTS, "index": _POSTGRES_INDEXES}


async def describe_schema(database: Database) -> str:
    """Describe every table with its columns, constraints and indexes, as sorted lines. Column order is ignored.

    Only descriptions from the same engine can be compared.
    """
    lines = await (_sqlite(database) if database.dialect == "sqlite" else _postgres(database))
    return "".join(f"{line}\n" for line in lines)


async def describe_tables(reader: Reader, dialect: Dialect) -> dict[str, list[str]]:
    """Map each table to its description.

    On SQLite, the description consists of the statements that created the table and its indexes. On PostgreSQL, it
    consists of the table's columns, constraints and indexes. No code in the schema is executed."""
    lines_by_table: dict[str, list[str]] = {}
    if dialect == "sqlite":
        for table, sql in await reader.fetch(_SQLITE_STATEMENTS):
            lines_by_table.setdefault(table, []).append(normalize_statement(sql))
    else:
        ((schema,),) = await reader.fetch(_POSTGRES_SCHEMA)
        for kind, statement in _POSTGRES_PARTS.items():
            for table, *columns in await reader.fetch(statement):
                line = " ".join([kind, *map(str, columns)])
                lines_by_table.setdefault(table, []).append(line.replace(f" ON {schema}.", " ON "))
    return {table: sorted(lines) for table, lines in lines_by_table.items()}


def normalize_statement(statement: str) -> str:
    """Return the statement as it is compared: without `IF NOT EXISTS` and the final semicolon, with single spaces."""
    return " ".join(statement.strip().removesuffix(";").replace("IF NOT EXISTS ", "").split())


async def _sqlite(database: Database) -> list[str]:
    lines: list[str] = []
    for table, sql in await database.fetch(_SQLITE_TABLES):
        table_options = " ".join(sql[sql.rindex(")") + 1 :].split())
        lines.append(f"{table} {table_options}")
        lines += _lines(table, "column", await database.fetch(_SQLITE_COLUMNS, table))
        lines += _lines(table, "index", await database.fetch(_SQLITE_INDEXES, table))
        lines += _lines(table, "reference", await database.fetch(_SQLITE_REFERENCES, table))
        lines += [f"{table} check {rule}" for rule in sorted(_checks(sql))]
    return lines


async def _postgres(database: Database) -> list[str]:
    return [
        _line(row[0], kind, row[1:])
        for kind, statement in _POSTGRES_PARTS.items()
        for row in await database.fetch(statement)
    ]


def _lines(table: str, kind: str, rows: list[Row]) -> list[str]:
    return [_line(table, kind, row) for row in rows]


def _line(table: str, kind: str, row: Row) -> str:
    return " ".join(f"{table} {kind} {' '.join(str(value) for value in row)}".split())


def _checks(sql: str) -> list[str]:
    """The expressions of CHECK, which SQLite stores only in the text of the statement."""
    checks: list[str] = []
    for start in re.finditer(r"\bCHECK\s*\(", sql):
        depth, end = 1, start.end()
        for piece in re.finditer(r"'(?:[^']|'')*'|[()]", sql[start.end() :]):
            depth += {"(": 1, ")": -1}.get(piece[0], 0)
            if depth == 0:
                end = start.end() + piece.start()
                break
        checks.append(" ".join(sql[start.end() : end].split()))
    return checks
