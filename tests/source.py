"""Python files as syntax trees; those of the product are parsed once in a process, for all tests that read them."""

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
    """A Python file: its path from the repository's root, its text, its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    @classmethod
    def of(cls, path: str, text: str) -> "Source":
        """Parse the text."""
        with uncollected():
            return cls(path, text, ast.parse(text))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree."""
        return list(ast.walk(self.tree))


@contextmanager
def uncollected() -> Generator[None]:
    """Collect no garbage meanwhile.

    Whoever makes a million objects that all stay would have them looked through again and again. And what a finalizer
    reports may parse in turn: Python before 3.11.9 then takes the depth of the one for the other's ("AST constructor
    recursion depth mismatch", CPython issue 106905).
    """
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_collecting:
            gc.enable()


def python_files(folder: str) -> Iterator[Source]:
    """Every Python file under a folder of the repository."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        yield Source.of(path.relative_to(ROOT).as_posix(), path.read_text())


@cache
def sources() -> list[Source]:
    """The product's Python files. The garbage collector passes over them from then on."""
    gc.collect()
    with uncollected():
        found = list(python_files("src"))
        gc.freeze()
    return found


def dotted(node: ast.expr) -> str:
    """The name that an expression is, such as `datetime.now`; what comes before a dot and is no name reads as "…"."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    names.append(node.id if isinstance(node, ast.Name) else "…")
    return ".".join(reversed(names))
