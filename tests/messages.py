"""Collects the messages about connected tables from the source, with … for what is filled in."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src/countersign"
MODULES = (
    *("cli/admin/connect*.py", "cli/admin/module_text_file.py", "connect/demo_database.py", "connect/draft.py"),
    *("connect/fit.py", "connect/personal_columns.py", "connect/key_check.py", "connect/model_history.py"),
    *("connect/rights.py", "connect/watch.py"),
    *("connect/schema_changes.py", "connect/table_history.py", "declare/review.py", "declare/rules/tables.py"),
    *("declare/text_file.py", "kernel/database/postgres_outside_tables.py", "kernel/database/read_only.py"),
    *("kernel/database/sqlite_outside_tables.py", "kernel/database/sqlite_read_only.py", "records/adopted/*.py"),
    "records/data_map.py",
)
"""The modules whose texts are about connected tables."""
MIN_WORDS = 4

_RAISED = re.compile(r"RAISE (?:EXCEPTION|WARNING|NOTICE) ('(?:[^']|'\s+')*')")
_CODE = re.compile(
    r"^\s*(?:class|SELECT|WITH|INSERT|UPDATE|DELETE|DECLARE|CREATE|ALTER|SET|GRANT|REVOKE|FROM|JOIN|WHEN|d\.dbid)\b"
    r"|\b(?:CASE|CAST|COLLATE|EXISTS|BETWEEN|typeof|isfinite|interval|pg_catalog|NOSUPERUSER|NO KEY|NOT LIKE)\b"
    r"|\b(?:PRAGMA (?:main|countersign\w*)|ATTACH|GLOB|strftime)\b"
    r"|\((?:SELECT|extract)\b|\blower\(|\[A-Z|\(\?|\\b|^[a-z]+(?:_[a-z]+)+$"
)
"""SQL and regular expressions."""
NO_ERRORS = frozenset(
    {
        "up to … values of … text columns",
        "Wrote …. Read it, decide on what is masked, and try it",
        "countersign serve records --modules … --try",
        "Read: …, in … s; looked at",
        "masked or left out until you decide",
        "a superuser: trying needs SELECT only",
        "may create a schema",
        "To accept the changes",
        "Wrote …. Look at the new fields, and start the server again",
        "Take the changes of … over?",
        "the database. … to look at",
        "Commands for the module text",
        "nothing to look at",
        ", from …. … to look at",
        "Reads tables for Countersign. SQL of countersign connect rights changes what it may read",
        "the database of the PostgreSQL server",
    }
)
"""What the commands print when all is well, and parts of texts."""
DEFECTS = frozenset(
    {
        "the table of an existing database needs a scope of its own",
        "has no table of an existing database",
        "a database without our own tables is only read, so no caller has a writing command",
        "a replica that was never measured is not read",
    }
)
"""The texts of exceptions that only a defect of Countersign raises."""

_NO_ARGUMENTS = frozenset({"help", "short_help", "epilog"})


def messages() -> dict[str, str]:
    """Map each message to the module that contains it."""
    found: dict[str, str] = {}
    for pattern in MODULES:
        for path in sorted(SOURCE.glob(pattern)):
            for text in _texts(ast.parse(path.read_text())):
                if len(re.findall(r"[A-Za-z']+", text)) >= MIN_WORDS and not _CODE.search(text):
                    found.setdefault(normal(text), path.relative_to(SOURCE).as_posix())
    return found


def normal(text: str) -> str:
    """Return the text on one line, without the characters that Markdown and the source treat in another way."""
    plain = re.sub(r"\{\w+\}", "…", text.replace("`", "").replace("\\", "").replace("'", ""))
    return re.sub(r"(?:…[ .]?)+…", "…", re.sub(r"[\s\x08]+", " ", plain)).strip(" \b\n:;.…-!~+")


def _texts(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        is_documentation = isinstance(child, ast.Expr) and _text_of(child.value) is not None
        if is_documentation or (isinstance(child, ast.keyword) and child.arg in _NO_ARGUMENTS):
            continue
        text = _text_of(child)
        if text is None:
            yield from _texts(child)
            continue
        yield from ("".join(re.findall(r"'([^']*)'", raised)) for raised in _RAISED.findall(text))
        yield text
        yield from (part for value in getattr(child, "values", ()) for part in _texts(value))


def _text_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)  # pyright: ignore
    return None
