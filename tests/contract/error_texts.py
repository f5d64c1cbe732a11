"""Collects every error text from the source, and the words that none of them may contain."""

import ast
import re
from collections.abc import Iterator
from functools import cache

from tests.source import sources

BASES = {"Refused", "BadInput", "JsonRpcError", "OAuthError", "BadValue", "Failure"}
FUNCTIONS = {"invalid_parameter", "invalid_member"}
ATTRIBUTES = {"title", "resolution", "detail"}

INTERNALS = re.compile(
    r"`(?:str|int|float|bool|list|dict|bytes|object|array|null)\b[^`]*`"
    r"|(?<![-\w])None\b(?!-)|\b(?:NoneType|True|False|dict|tuple|isinstance|kwargs|repr|coroutine|asyncio)\b"
    r"|\b(?:msgspec|asyncpg|apsw|psycopg|structlog|httptools|uvicorn|obstore|joserfc)\b"
    r"|\b\w+(?:Error|Exception)\b|Traceback|<class |object at 0x"
    r"|plain value|does not hold|matching regex|[Ee]xpected `"
)
"""Python's words, the names of libraries and classes, and msgspec's phrases."""

RIDDLES = re.compile(
    r"\b(?:nobody|somebody|whoever)\b|stands? twice|is nobody|\bis no [a-z]+'s\b|digest is another|made meanwhile"
)
"""Vague phrases."""


def complaint(text: str) -> str | None:
    """Return the first forbidden word in an error text, or None."""
    matched = INTERNALS.search(text) or RIDDLES.search(text)
    return matched.group() if matched else None


@cache
def error_names() -> frozenset[str]:
    """Return the names of the error classes that reach a caller, and of the functions that create errors."""
    names, parents = set(BASES), dict[str, set[str]]()
    for source in sources():
        for node in source.nodes:
            if isinstance(node, ast.ClassDef):
                parents.setdefault(node.name, set()).update(_name(base) for base in node.bases)
    grown = True
    while grown:
        error_classes = {name for name, bases in parents.items() if bases & names} | names
        grown, names = error_classes != names, error_classes
    return frozenset(names | FUNCTIONS)


def texts() -> Iterator[tuple[str, str]]:
    """Yield each text with its location. Values that are filled in at run time are shown as "…"."""
    for source in sources():
        for node in source.nodes:
            for line, text in _texts_of(node):
                yield f"{source.path}:{line}", text


def _texts_of(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Call) and _name(node.func) in error_names():
        for value in (*node.args, *(keyword.value for keyword in node.keywords)):
            yield from _literals(value)
    elif isinstance(node, ast.ClassDef) and node.name in error_names():
        for statement in node.body:
            if isinstance(statement, ast.Assign) and _name(statement.targets[0]) in ATTRIBUTES:
                yield from _literals(statement.value)


def _literals(node: ast.expr) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.JoinedStr):
        yield (
            node.lineno,
            "".join(str(value.value) if isinstance(value, ast.Constant) else "…" for value in node.values),
        )
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value
    elif isinstance(node, ast.BinOp | ast.IfExp):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _literals(child)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
