"""Every regular expression of the source, and texts on which an expensive expression would take long."""

import ast
import importlib
import re
import re._parser as parser  # pyright: ignore[reportMissingTypeStubs]
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from tests.source import Source, sources

METHODS = ("compile", "match", "fullmatch", "search", "findall", "finditer", "sub", "split")
MOST_WORDS = 8


class ModulePattern(NamedTuple):
    """A regular expression of a module."""

    module: str
    pattern: re.Pattern[Any]
    is_anchored: bool
    """True if the expression is only matched at the beginning of a text."""


@cache
def patterns() -> list[ModulePattern]:
    """Return the compiled expressions of modules, and the expressions that are passed to `re` functions, each once for
    each module."""
    return list(_patterns())


def _patterns() -> Iterator[ModulePattern]:
    for source in sources():
        if not any(map(_is_regular, source.nodes)):
            continue
        name = source.path.removeprefix("src/").removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        patterns_seen: set[tuple[Any, int]] = set()
        module_names = vars(importlib.import_module(name))
        anchored = {
            id(module_names[name])
            for name in module_names
            if isinstance(module_names[name], re.Pattern) and _is_anchored(name)
        }
        for pattern in (*_patterns_in(module_names), *_written(source)):
            if (pattern.pattern, pattern.flags) not in patterns_seen:
                patterns_seen.add((pattern.pattern, pattern.flags))
                yield ModulePattern(name, pattern, id(pattern) in anchored)


@cache
def _methods() -> Mapping[str, frozenset[str]]:
    """Return the methods that the source calls on each name."""
    methods_by_name: dict[str, set[str]] = {}
    for source in sources():
        for name, method in re.findall(r"\b([A-Z_]\w*)\.(\w+)\b", source.text):
            methods_by_name.setdefault(name, set()).add(method)
    return {name: frozenset(methods) for name, methods in methods_by_name.items()}


def _is_anchored(name: str) -> bool:
    methods_used = _methods().get(name, frozenset()) & {*METHODS}
    return bool(methods_used) and methods_used <= {"match", "fullmatch"}


def _is_regular(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in METHODS
    )


def _patterns_in(module_value: object, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    if isinstance(module_value, re.Pattern):
        yield module_value
    elif isinstance(module_value, dict) and depth < 3:
        for value in list(module_value.values()):
            yield from _patterns_in(value, depth + 1)
    elif isinstance(module_value, list | tuple) and depth < 3:
        for name in module_value:
            yield from _patterns_in(name, depth + 1)


def _written(source: Source) -> Iterator[re.Pattern[Any]]:
    for node in source.nodes:
        if _is_regular(node) and isinstance(node, ast.Call) and node.args and not _has_flags(node):
            pattern_argument = node.args[0]
            if isinstance(pattern_argument, ast.Constant) and isinstance(pattern_argument.value, str | bytes):
                yield re.compile(pattern_argument.value)


def _has_flags(node: ast.Call) -> bool:
    """Return whether the expression is compiled with flags. An expression with flags is another expression, which the
    module stores."""
    return isinstance(node.func, ast.Attribute) and node.func.attr == "compile" and len(node.args) > 1


def attacks(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield beginnings, repeated parts and ends that are made from the parts of the pattern itself."""
    source = pattern.pattern
    text = source.decode("latin-1") if isinstance(source, bytes) else source
    literals = list(dict.fromkeys(_words(parser.parse(text, pattern.flags))))[:MOST_WORDS]
    joined_literals = "".join(literals[:6])
    for repeated_text in (*literals, joined_literals, *(a + b for a, b in pairwise(literals))):
        yield "", repeated_text, "\x00"
        yield joined_literals, repeated_text, "\x00"
        yield literals[0] if literals else "", repeated_text, ""


def _words(tree: Any) -> Iterator[str]:
    """Return runs of literal characters, and a character of each class."""
    run = ""
    for kind, argument in tree:
        if str(kind) == "LITERAL":
            run += chr(argument)
            continue
        if run:
            yield run
            run = ""
        yield from _of_node(str(kind), argument)
    if run:
        yield run


_TREES: Mapping[str, Callable[[Any], Sequence[Any]]] = {
    "MAX_REPEAT": lambda argument: [argument[2]],
    "MIN_REPEAT": lambda argument: [argument[2]],
    "POSSESSIVE_REPEAT": lambda argument: [argument[2]],
    "SUBPATTERN": lambda argument: [argument[3]],
    "ATOMIC_GROUP": lambda argument: [argument],
    "BRANCH": lambda argument: argument[1],
    "ASSERT": lambda argument: [argument[1]],
    "ASSERT_NOT": lambda argument: [argument[1]],
}
"""The children of a node of a parsed expression."""


def _of_node(kind: str, argument: Any) -> Iterator[str]:
    if kind == "NOT_LITERAL":
        yield "a" if argument != ord("a") else "b"
    elif kind == "ANY":
        yield "a"
    elif kind == "IN":
        yield from _of_class(argument)
    for tree in _TREES[kind](argument) if kind in _TREES else ():
        yield from _words(tree)


def _of_class(members: Any) -> Iterator[str]:
    is_negated = str(members[0][0]) == "NEGATE"
    if is_negated:
        yield from ("a", " ")
        return
    for kind, argument in members[:3]:
        name = str(kind)
        if name == "LITERAL":
            yield chr(argument)
        elif name == "RANGE":
            yield chr(argument[0])
        elif name == "CATEGORY":
            yield {"CATEGORY_DIGIT": "0", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}.get(str(argument), "-")
