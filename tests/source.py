"""Parses Python files. The files of the product are parsed once in a process, for all tests that read them."""

import ast
import gc
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Source:
    """A Python file: its path in the repository, its text and its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    @classmethod
    def of(cls, path: str, text: str) -> "Source":
        """Parse the text of the file with this path."""
        with without_garbage_collection():
            return cls(path, text, ast.parse(text))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Return every node of the tree."""
        return list(ast.walk(self.tree))


@contextmanager
def without_garbage_collection() -> Generator[None]:
    """Disable the garbage collector until the block ends.

    Parsing creates a million objects that stay, and the collector would visit them again and again. In addition, a
    finalizer that runs during a collection may itself parse code. Before Python 3.11.9, a parse within a parse fails
    with "AST constructor recursion depth mismatch" (CPython issue 106905).
    """
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_collecting:
            gc.enable()


def python_files(folder: str) -> Iterator[Source]:
    """Yield every Python file in a folder of the repository and in its subfolders."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        yield Source.of(path.relative_to(ROOT).as_posix(), path.read_text())


@cache
def sources() -> list[Source]:
    """Return the Python files of the product. The garbage collector ignores them from then on."""
    gc.collect()
    with without_garbage_collection():
        source_files = list(python_files("src"))
        gc.freeze()
    return source_files


def dotted_name(node: ast.expr) -> str:
    """Return an expression as a dotted name, such as `datetime.now`. If it begins with something other than a name, the
    result begins with "…"."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    names.append(node.id if isinstance(node, ast.Name) else "…")
    return ".".join(reversed(names))
