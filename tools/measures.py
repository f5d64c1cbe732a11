#!/usr/bin/env python3
"""Computes figures that indicate how readable a Python code base is.

    python -m tools.measures PACKAGE_DIR [--tests DIR ...] [--skip GLOB ...] [--json]

PACKAGE_DIR is the folder of the import package. The program prints one figure per line. The function that computes a
figure describes its meaning and its limits. A figure shows where to look and is not a goal: for example, a file may be
long because it is a table.
"""
from __future__ import annotations

import argparse
import ast
import fnmatch
import hashlib
import json
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests import house
from tests.source import Source

WINDOW = 6  # the number of lines in a sequence that counts as duplicated


@dataclass
class Module:
    name: str
    path: Path
    lines: list[str]
    tree: ast.Module
    runtime_imports: set[str] = field(default_factory=set)
    hidden_imports: set[str] = field(default_factory=set)


def read_modules(root: Path, skip: list[str]) -> dict[str, Module]:
    """Map the dotted name of every Python file under root that can be parsed to its module."""
    modules: dict[str, Module] = {}
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root.parent)
        if any(fnmatch.fnmatch(str(relative), pattern) for pattern in skip):
            continue
        name_parts = list(relative.with_suffix("").parts)
        if name_parts[-1] == "__init__":
            name_parts.pop()
        text = path.read_text(encoding="utf-8", errors="replace")
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            print(f"not parsed: {relative}: {error}", file=sys.stderr)
            continue
        modules[".".join(name_parts)] = Module(".".join(name_parts), path, text.splitlines(), tree)
    return modules


def percentile(values: list[int], share: float) -> int:
    sorted_values = sorted(values)
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))] if sorted_values else 0


# imports ------------------------------------------------------------------------------------------

def resolve_imports(modules: dict[str, Module]) -> None:
    """Fill the import sets of the modules. Runtime imports are executed when the module is imported. Hidden imports are
    inside a function or under TYPE_CHECKING: readers see them, but the interpreter may not execute them."""
    for module in modules.values():
        is_package = module.path.name == "__init__.py"
        base = module.name.split(".") if is_package else module.name.split(".")[:-1]
        for node, is_hidden in walk_imports(module.tree):
            targets: list[str] = []
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            else:
                prefix = base[: len(base) - (node.level - 1)] if node.level else []
                origin = ".".join([*prefix, *([node.module] if node.module else [])])
                targets = [f"{origin}.{alias.name}" for alias in node.names]
            for target in targets:
                imported_module = longest_known(target, modules)
                if imported_module and imported_module != module.name:
                    (module.hidden_imports if is_hidden else module.runtime_imports).add(imported_module)


def walk_imports(tree: ast.Module):
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, is_hidden = stack.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, is_hidden
            continue
        is_inside_function = is_hidden or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            stack += [(child, True) for child in node.body]
            stack += [(child, is_inside_function) for child in node.orelse]
            continue
        stack += [(child, is_inside_function) for child in ast.iter_child_nodes(node)]


def longest_known(target: str, modules: dict[str, Module]) -> str | None:
    name_parts = target.split(".")
    while name_parts:
        if ".".join(name_parts) in modules:
            return ".".join(name_parts)
        name_parts.pop()
    return None


def cycles(modules: dict[str, Module], includes_hidden: bool) -> list[set[str]]:
    """Return the strongly connected components with more than one module, by Kosaraju's algorithm: sort the modules by
    the time at which a depth-first search leaves them, then search against the imports in reverse order."""
    edges = {
        name: sorted(module.runtime_imports | (module.hidden_imports if includes_hidden else set()))
        for name, module in modules.items()
    }
    importers: dict[str, list[str]] = defaultdict(list)
    for name, targets in edges.items():
        for target in targets:
            importers[target].append(name)
    finished: list[str] = []
    seen_modules: set[str] = set()
    for start in edges:
        finished += walk_from(start, edges, seen_modules)
    seen_modules = set()
    groups = [set(walk_from(start, importers, seen_modules)) for start in reversed(finished)]
    return [group for group in groups if len(group) > 1]


def walk_from(start: str, edges: dict[str, list[str]], seen_modules: set[str]) -> list[str]:
    """Return the modules that are reachable from start and not in seen, in the order in which a depth-first search
    leaves them. Add them to seen."""
    if start in seen_modules:
        return []
    seen_modules.add(start)
    finished: list[str] = []
    work = [(start, iter(edges.get(start, ())))]
    while work:
        node, children = work[-1]
        child = next((child for child in children if child not in seen_modules), None)
        if child is None:
            finished.append(node)
            work.pop()
        else:
            seen_modules.add(child)
            work.append((child, iter(edges.get(child, ()))))
    return finished


def count_tangled_folders(modules: dict[str, Module]) -> int:
    """Return the number of folders whose direct children (files and folders) import each other in a cycle. This is the
    rule acyclic_siblings of import-linter, applied to runtime imports."""
    parents = {name.rsplit(".", 1)[0] for name in modules if "." in name}
    tangled = 0
    for parent in parents:
        depth = parent.count(".") + 1
        graph: dict[str, set[str]] = defaultdict(set)
        for name, module in modules.items():
            if not name.startswith(parent + "."):
                continue
            own_part = name.split(".")[depth]
            for target in module.runtime_imports:
                if target.startswith(parent + "."):
                    target_part = target.split(".")[depth]
                    if target_part != own_part:
                        graph[own_part].add(target_part)
        tangled += has_cycle(graph)
    return tangled


def has_cycle(graph: dict[str, set[str]]) -> bool:
    state: dict[str, int] = {}

    def visit(node: str) -> bool:
        state[node] = 1
        for child in graph.get(node, ()):
            if state.get(child) == 1 or (child not in state and visit(child)):
                return True
        state[node] = 2
        return False

    return any(visit(node) for node in list(graph) if node not in state)


# functions ----------------------------------------------------------------------------------------

DECISIONS = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert,
             ast.comprehension, ast.match_case)


def functions(modules: dict[str, Module]):
    """Yield each function as (module, qualified name, node, is public, number of lines, cyclomatic complexity, number
    of parameters)."""
    for module in modules.values():
        yield from functions_in(module, module.tree, "", True)


def functions_in(module: Module, scope: ast.AST, prefix: str, is_public: bool):
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.ClassDef):
            yield from functions_in(module, node, f"{prefix}{node.name}.", is_public and node.name[0] != "_")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            is_documented = is_public and node.name[0] != "_"
            parameters = len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs)
            yield module, prefix + node.name, node, is_documented, lines, complexity(node), parameters
            yield from functions_in(module, node, f"{prefix}{node.name}.<in>.", False)
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            yield from functions_in(module, node, prefix, is_public)


def complexity(node: ast.AST) -> int:
    """Return the McCabe complexity as radon counts it: 1 + branches + boolean operators. Nested functions are counted
    separately."""
    total = 1
    stack = list(ast.iter_child_nodes(node))
    while stack:
        child = stack.pop()
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(child, DECISIONS):
            total += 1 + (len(child.ifs) if isinstance(child, ast.comprehension) else 0)
        elif isinstance(child, ast.BoolOp):
            total += len(child.values) - 1
        stack += list(ast.iter_child_nodes(child))
    return total


# words --------------------------------------------------------------------------------------------

def docstrings(modules: dict[str, Module]) -> tuple[int, int]:
    """Return the number of public names with a docstring and the number of public names. A class or function is public
    if no part of its path begins with an underscore. Overloads, property setters and modules are not counted."""
    documented = total = 0
    stack: list[tuple[ast.AST, bool]] = [(m.tree, not any(p.startswith("_") for p in m.name.split(".")))
                                         for m in modules.values()]
    while stack:
        scope, is_public = stack.pop()
        for node in ast.iter_child_nodes(scope):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            is_documented = is_public and not node.name.startswith("_")
            decorators = " ".join(ast.unparse(d) for d in node.decorator_list)
            if is_documented and "overload" not in decorators and ".setter" not in decorators:
                total += 1
                documented += ast.get_docstring(node, clean=False) is not None
            if isinstance(node, ast.ClassDef):
                stack.append((node, is_documented))
    return documented, total


def count_annotated(modules: dict[str, Module]) -> tuple[int, int]:
    """Return the number of functions with annotations for all parameters and the result, and the number of
    functions."""
    fully_annotated = total = 0
    for _, _, node, *_ in functions(modules):
        parameters = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
        parameters = [p for p in parameters if p.arg not in ("self", "cls")]
        total += 1
        has_result = node.returns is not None or node.name == "__init__"
        fully_annotated += all(p.annotation for p in parameters) and has_result
    return fully_annotated, total


def smells(modules: dict[str, Module]) -> dict[str, int]:
    counts: dict[str, int] = dict.fromkeys(
        ("except Exception or bare", "swallowed (pass only)", "type: ignore", "noqa", "TODO/FIXME/XXX",
         "star imports", "dynamic **kwargs parameters"), 0)
    for module in modules.values():
        for line in module.lines:
            counts["type: ignore"] += "type: ignore" in line
            counts["noqa"] += "noqa" in line
            counts["TODO/FIXME/XXX"] += any(word in line for word in ("TODO", "FIXME", "XXX"))
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ExceptHandler):
                broad = node.type is None or ast.unparse(node.type) in ("Exception", "BaseException")
                counts["except Exception or bare"] += broad
                counts["swallowed (pass only)"] += len(node.body) == 1 and isinstance(node.body[0], ast.Pass)
            elif isinstance(node, ast.ImportFrom):
                counts["star imports"] += any(alias.name == "*" for alias in node.names)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                counts["dynamic **kwargs parameters"] += node.args.kwarg is not None
    return counts


def duplicate_percentage(modules: dict[str, Module]) -> float:
    """Return the percentage of code lines that belong to a sequence of WINDOW lines which occurs at least twice. Blank
    lines, imports and comments are ignored. Only exact copies are found."""
    starts_by_hash: dict[bytes, list[tuple[str, int]]] = defaultdict(list)
    first_line_by_text: dict[str, int] = {}
    for module in modules.values():
        code = [line.strip() for line in module.lines]
        code = [line for line in code if line and line[0] != "#" and not line.startswith(("import ", "from "))
                and line not in (")", "]", "}", "(", '"""', "),", "],", "},")]
        first_line_by_text[module.name] = len(code)
        for start in range(len(code) - WINDOW + 1):
            key = hashlib.blake2b("\n".join(code[start:start + WINDOW]).encode(), digest_size=12).digest()
            starts_by_hash[key].append((module.name, start))
    doubled: dict[str, set[int]] = defaultdict(set)
    for spots in starts_by_hash.values():
        if len(spots) > 1:
            for name, start in spots:
                doubled[name].update(range(start, start + WINDOW))
    total = sum(first_line_by_text.values())
    return 100 * sum(len(rows) for rows in doubled.values()) / total if total else 0.0


# names --------------------------------------------------------------------------------------------

def complaints(modules: dict[str, Module], rule: house.Rule) -> int:
    """Return the number of modules that violate a rule of tests/house.py."""
    return sum(any(True for _ in rule(source_of(module))) for module in modules.values())


def source_of(module: Module) -> Source:
    return Source(str(module.path), "\n".join(module.lines), module.tree)


def crowded_class_names(modules: dict[str, Module]) -> list[str]:
    """Return the names of public classes that more than two modules declare."""
    counts: dict[str, int] = defaultdict(int)
    for module in modules.values():
        for name in house.public_classes(source_of(module)):
            counts[name] += 1
    return sorted(name for name, count in counts.items() if count > 2)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("package", type=Path)
    parser.add_argument("--tests", type=Path, nargs="*", default=[])
    parser.add_argument("--skip", nargs="*", default=[])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    modules = read_modules(options.package, options.skip)
    resolve_imports(modules)
    sizes = {m.name: len(m.lines) for m in modules.values()}
    real_sizes = {name: size for name, size in sizes.items() if size > 10}
    function_list = list(functions(modules))
    documented, public_count = docstrings(modules)
    fully_annotated, count = count_annotated(modules)
    loops, wide_loops = cycles(modules, includes_hidden=False), cycles(modules, includes_hidden=True)
    test_lines = sum(len(p.read_text(errors="replace").splitlines())
                     for folder in options.tests for p in folder.rglob("*.py"))
    longest = max(sizes, key=lambda name: sizes[name])
    hardest = max(function_list, key=lambda row: row[5])
    tallest = max(function_list, key=lambda row: row[4])
    heights = [row[4] for row in function_list]
    complex_functions = sum(row[5] > 10 for row in function_list)
    introduced = sum(ast.get_docstring(m.tree) is not None for m in modules.values() if len(m.lines) > 10)
    figures = {
        "files": len(sizes),
        "lines": sum(sizes.values()),
        "lines per file, median (files > 10 lines)": percentile(list(real_sizes.values()), 0.5),
        "lines per file, p95": percentile(list(real_sizes.values()), 0.95),
        "lines per file, median (all files)": percentile(list(sizes.values()), 0.5),
        "files under 60 lines": sum(size < 60 for size in sizes.values()),
        "modules named by a participle": complaints(modules, house.nouns_for_modules),
        "class names in more than two modules": " ".join(crowded_class_names(modules)) or 0,
        "modules with a class named by a riddle": complaints(modules, house.nouns_for_classes),
        "modules with a word that reads as translated": complaints(modules, house.plain_words),
        "longest file": f"{sizes[longest]} {longest}",
        "files over 400 lines": sum(size > 400 for size in sizes.values()),
        "functions": len(function_list),
        "function lines, median / p95": f"{percentile(heights, 0.5)} / {percentile(heights, 0.95)}",
        "longest function": f"{tallest[4]} {tallest[0].name}:{tallest[1]}",
        "functions over 70 lines": sum(row[4] > 70 for row in function_list),
        "complexity, highest": f"{hardest[5]} {hardest[0].name}:{hardest[1]}",
        "functions with complexity > 10": complex_functions,
        "per cent of functions with complexity > 10": round(100 * complex_functions / max(1, len(function_list)), 1),
        "functions with > 6 parameters": sum(row[6] > 6 for row in function_list),
        "modules in import circles (runtime)": sum(map(len, loops)),
        "largest circle": max(map(len, loops), default=0),
        "modules in circles, hidden imports too": sum(map(len, wide_loops)),
        "folders whose children are tangled": count_tangled_folders(modules),
        "public names with docstring, per cent": round(100 * documented / max(1, public_count)),
        "modules with docstring, per cent": round(100 * introduced / max(1, len(real_sizes))),
        "fully annotated functions, per cent": round(100 * fully_annotated / max(1, count)),
        "test lines / code lines": round(test_lines / max(1, sum(sizes.values())), 2),
        "duplicated lines, per cent": round(duplicate_percentage(modules), 1),
        **smells(modules),
    }
    if options.json:
        json.dump(figures, sys.stdout, indent=1)
    else:
        for name, value in figures.items():
            print(f"{name:48} {value}")


if __name__ == "__main__":
    main()
