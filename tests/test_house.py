"""The source keeps the style rules of `tests.house`, and every rule finds a violation."""

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests import house
from tests.house import Complaint, Rule
from tests.source import ROOT, Source, python_files, sources, without_garbage_collection

# These files build SQL for models that are declared by modules and known only at run time.
DECLARED = "names of tables and columns come from checked declarations; values go through Parameters.put or as $1"
BUILD_SQL_FOR_MODELS = (
    "access/people",
    "adopted/writer",
    "approvals/emails",
    "approvals/rights",
    "approvals/plan_dependencies",
    "audit/chain",
    "audit/verify",
    "commands/crud",
    "commands/mentions",
    "commands/csv_format",
    "commands/csv_import",
    "commands/dependents",
    "commands/find",
    "commands/list_search",
    "commands/record_writer",
    "commands/seek_pagination",
    "commands/select",
    "commands/series",
    "commands/sqlite_index_hints",
    "commands/unmask_input",
    "commands/value_aliases",
    "commands/effects",
    "schema/checks",
    "schema/difference",
    "schema/rows",
)

# Files that may break a rule, each with its reason. An entry that is no longer needed fails the test.
EXCEPTIONS: dict[Rule, dict[str, str]] = {
    house.broad_catches: {
        "src/countersign/kernel/http/app.py": "the edge of a request: logged once, answered 500",
        "src/countersign/kernel/http/management.py": "the edge of a check: the error is reported and logged",
        "src/countersign/kernel/http/workers.py": "the edge of a process: the error is reported and logged",
        "src/countersign/kernel/concurrency.py": "the edge of the upkeep task: the error is logged",
    },
    house.kernel_without_domain: {
        "src/countersign/kernel/http/german.py": "the German catalogue of the plain pages of both services",
    },
    house.statements_without_values: {
        "src/countersign/store/catalog/filter_queries.py": "a filter is built from constant fragments; "
        "every value goes through Statement.value, which returns $1, $2, …",
        "src/countersign/store/catalog/search.py": "a search is built from constant fragments; "
        "every value goes through Statement.value, which returns $1, $2, …",
        **dict.fromkeys((f"src/countersign/records/{name}.py" for name in BUILD_SQL_FOR_MODELS), DECLARED),
    },
}

# Tables to which more than one folder writes, with the reason.
SHARED_TABLES: dict[str, str] = {
    "records/record_change": "commands record each change of a record; schema deletes these entries with their model",
}

SOURCE_RULES: list[Rule] = [
    house.short_files,
    house.short_functions,
    house.simple_functions,
    house.kernel_without_domain,
    house.columns_listed,
    house.statements_without_values,
    house.restricted_imports,
    house.broad_catches,
    house.errors_handled,
    house.modules_have_docstrings,
    house.public_names_have_docstrings,
    house.no_leftovers,
    house.names_describe_content,
    house.nouns_for_modules,
    house.nouns_for_classes,
    house.plain_words,
]
TEST_RULES: list[Rule] = [
    house.short_files,
    house.short_functions,
    house.simple_functions,
    house.modules_have_docstrings,
    house.errors_handled,
]


Violations = dict[str, list[Complaint]]
"""Maps a file to its violations of one rule."""


@cache
def violations_in_tests() -> dict[Rule, Violations]:
    """Return the violations of the rules for tests. The files are read one after the other, so that only one syntax
    tree is in memory."""
    violations: dict[Rule, Violations] = {rule: {} for rule in TEST_RULES}
    with without_garbage_collection():
        for source in python_files("tests"):
            for rule in TEST_RULES:
                violations[rule][source.path] = list(rule(source))
    return violations


def unexcused_violations(rule: Rule, violations: Violations) -> list[str]:
    """Return the violations without an exception, and the exceptions without a violation."""
    excused = EXCEPTIONS.get(rule, {})
    new = [
        f"{path}:{line}: {text}"
        for path, complaints in violations.items()
        if path not in excused
        for line, text in complaints
    ]
    unneeded = [path for path in excused if path in violations and not violations[path]]
    return new + [f"{path}: remove its exception, which is no longer needed" for path in unneeded]


@pytest.mark.parametrize("rule", SOURCE_RULES, ids=lambda rule: rule.__name__)
def test_the_source_keeps_the_rule(rule: Rule) -> None:
    broken = unexcused_violations(rule, {source.path: list(rule(source)) for source in sources()})

    assert not broken, f"{rule.__doc__}\n" + "\n".join(broken)


@pytest.mark.parametrize("rule", TEST_RULES, ids=lambda rule: rule.__name__)
def test_the_tests_keep_the_rule(rule: Rule) -> None:
    broken = unexcused_violations(rule, violations_in_tests()[rule])

    assert not broken, f"{rule.__doc__}\n" + "\n".join(broken)


def shared_writes(files: list[Source]) -> dict[str, set[str]]:
    """Map each table to which more than one folder of a service writes, as service/table, to these folders."""
    writers: dict[str, set[str]] = defaultdict(set)
    for source in files:
        service = "/".join(source.path.split("/")[2:3])
        for table, _ in house.tables_written(source):
            writers[f"{service}/{table}"].add(source.path.rpartition("/")[0])
    return {table: folders for table, folders in writers.items() if len(folders) > 1}


def test_a_table_is_written_by_only_one_folder() -> None:
    shared_tables = shared_writes(sources())

    assert not {table: folders for table, folders in shared_tables.items() if table not in SHARED_TABLES}
    assert not SHARED_TABLES.keys() - shared_tables.keys(), "remove the tables that are no longer shared"


PLANTED: list[tuple[Rule, str, str]] = [
    (house.short_files, "x.py", "a = 1\n" * 701),
    (house.short_functions, "x.py", "def f():\n" + "    a = 1\n" * 70),
    (house.short_functions, "x.py", "def f(a, b, c, d, e, f, g): ..."),
    (house.simple_functions, "x.py", "def f(a):\n" + "    if a and a: a = 0\n" * 5),
    (house.simple_functions, "x.py", "def f(a):\n    return [b for b in a if b]" + " or a" * 9),
    (house.kernel_without_domain, "countersign/kernel/x.py", "def product_page(): ..."),
    (house.kernel_without_domain, "countersign/kernel/x.py", "class ReleaseNotes: ..."),
    (house.kernel_without_domain, "countersign/kernel/x.py", "def f(plans): ..."),
    (house.kernel_without_domain, "countersign/kernel/x.py", "a = 'your entitlements'"),
    (house.columns_listed, "x.py", "a = 'select * from t'"),
    (house.columns_listed, "x.py", "a = 'SELECT DISTINCT t.* FROM t'"),
    (house.statements_without_values, "x.py", "a = f'SELECT a FROM t WHERE b = {b}'"),
    (house.statements_without_values, "x.py", "a = f'SELECT a FROM {T} ' + b"),
    (house.statements_without_values, "x.py", "a = 'DELETE FROM t WHERE b = %s' % b"),
    (house.statements_without_values, "x.py", "a = 'UPDATE t SET b = {}'.format(b)"),
    (house.restricted_imports, "src/countersign/kernel/http/x.py", "import apsw"),
    (house.restricted_imports, "src/countersign/x.py", "from time import time"),
    (house.restricted_imports, "src/countersign/x.py", "import random"),
    (house.restricted_imports, "src/countersign/x.py", "def f():\n    from uuid import uuid4"),
    (house.restricted_imports, "src/countersign/x.py", "a = datetime.now(UTC)"),
    (house.restricted_imports, "src/countersign/x.py", "from countersign.a.keys import routes"),
    (house.broad_catches, "x.py", "try: a()\nexcept Exception: b()"),
    (house.broad_catches, "x.py", "try: a()\nexcept (ValueError, BaseException): b()"),
    (house.broad_catches, "x.py", "try: a()\nexcept: b()"),
    (house.broad_catches, "x.py", "with contextlib.suppress(Exception): a()"),
    (house.errors_handled, "x.py", "try: a()\nexcept ValueError: pass"),
    (house.errors_handled, "x.py", "try: a()\nexcept ValueError: ..."),
    (house.modules_have_docstrings, "x.py", "a = 1"),
    (house.modules_have_docstrings, "x.py", "\n'''Late.'''"),
    (house.modules_have_docstrings, "x.py", "'''no sentence'''"),
    (house.public_names_have_docstrings, "x.py", "def f(): return 1"),
    (house.public_names_have_docstrings, "x.py", "class A:\n    '''A.'''\n    async def f(self): return 1"),
    (house.no_leftovers, "x.py", "a = 1  # TO" + "DO"),
    (house.no_leftovers, "x.py", "import a  # type" + ": ignore"),
    (house.no_leftovers, "x.py", "print(1)"),
    (house.no_leftovers, "x.py", "breakpoint()"),
    (house.names_describe_content, "src/countersign/utils/x.py", ""),
    (house.names_describe_content, "src/countersign/utils.py", ""),
    (house.nouns_for_modules, "src/countersign/store/told.py", ""),
    (house.nouns_for_modules, "src/countersign/store/job_hanging.py", ""),
    (house.nouns_for_modules, "src/countersign/store/settled.py", ""),
    (house.nouns_for_classes, "x.py", "class Asked: ..."),
    (house.nouns_for_classes, "x.py", "def f():\n    class _Way: ..."),
    (house.plain_words, "x.py", "a = f'{b} is told by {c}'"),
    (house.plain_words, "x.py", "def f():\n    '''What stands in the file.'''"),
    (house.plain_words, "x.py", "a = 'this is no member of the organisation'"),
]

HARMLESS: list[tuple[Rule, str, str]] = [
    (house.short_functions, "x.py", "def f(self, a, b, c, d, e, f, *, g): ..."),
    (house.kernel_without_domain, "countersign/kernel/x.py", "lock.release()\na = 'RELEASE a; pg_catalog.b'"),
    (house.kernel_without_domain, "countersign/store/x.py", "def product_page(): ..."),
    (house.columns_listed, "x.py", "'''Never select * here.'''\na = 'SELECT count(*) FROM t'"),
    (house.statements_without_values, "x.py", "a = f'SELECT {COLUMNS} FROM t' + ' WHERE b = $1'"),
    (house.statements_without_values, "x.py", "a = f'Select a file, {name}'"),
    (house.restricted_imports, "src/countersign/kernel/database/sqlite_writer.py", "import apsw"),
    (house.restricted_imports, "src/countersign/kernel/clock.py", "import time"),
    (house.broad_catches, "x.py", "try: a()\nexcept BaseException:\n    b()\n    raise"),
    (house.public_names_have_docstrings, "x.py", "def _f(): return 1"),
    (house.nouns_for_modules, "src/countersign/store/processing.py", ""),
    (house.nouns_for_modules, "src/countersign/store/seed.py", ""),
    (house.nouns_for_classes, "x.py", "class Placeholder: ..."),
    (house.plain_words, "x.py", "a = 'the plan holds three steps'"),
]


def crowded_class_names(files: list[Source]) -> dict[str, list[str]]:
    """Map each name of a public class in more than two modules to these modules."""
    modules: dict[str, list[str]] = defaultdict(list)
    for source in files:
        for name in house.public_classes(source):
            modules[name].append(source.path)
    return {name: paths for name, paths in modules.items() if len(paths) > 2}


def test_a_class_name_is_in_two_modules_at_most() -> None:
    assert not crowded_class_names(sources())


def test_a_class_name_in_three_modules_is_found() -> None:
    files = [Source.of(f"src/countersign/{name}.py", "class Report: ...") for name in "abc"]

    assert crowded_class_names(files) == {"Report": [file.path for file in files]}
    assert not crowded_class_names(files[:2])


@pytest.mark.parametrize(("rule", "path", "text"), PLANTED)
def test_a_planted_offence_is_found(rule: Rule, path: str, text: str) -> None:
    assert list(rule(Source.of(path, text)))


@pytest.mark.parametrize(("rule", "path", "text"), HARMLESS)
def test_code_that_only_resembles_a_violation_passes(rule: Rule, path: str, text: str) -> None:
    assert not list(rule(Source.of(path, text)))


def test_every_rule_has_a_planted_offence() -> None:
    assert {rule for rule, _, _ in PLANTED} >= {*SOURCE_RULES, *TEST_RULES}


def test_a_table_of_two_writers_is_found() -> None:
    first_source = Source.of("src/countersign/a/x/y.py", "a = 'INSERT INTO t (b) VALUES ($1)'")
    second_source = Source.of("src/countersign/a/z/y.py", "a = 'UPDATE t SET b = $1'")
    other_source = Source.of("src/countersign/b/z/y.py", "a = 'UPDATE t SET b = $1'")

    assert shared_writes([first_source, second_source]) == {"a/t": {"src/countersign/a/x", "src/countersign/a/z"}}
    assert not shared_writes([first_source, other_source, other_source]), "each service has a database of its own"


# The contracts ------------------------------------------------------------------------------------


def lint_imports(folder: Path, config: Path) -> "subprocess.CompletedProcess[str]":
    """Check the package in the folder against the import contracts in the configuration file."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from importlinter.cli import lint_imports; "
        "sys.exit(lint_imports(config_filename=sys.argv[2], no_cache=True))"
    )
    command = [sys.executable, "-c", code, str(folder), str(config)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_import_contracts_are_kept() -> None:
    result = lint_imports(ROOT / "src", ROOT / ".importlinter")

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("kernel/clock.py", "countersign.kernel.database.port"),
        ("kernel/database/port.py", "countersign.kernel.http.routing"),
        ("kernel/errors.py", "countersign.store"),
        ("store/__init__.py", "countersign.cli"),
        ("settings.py", "countersign.kernel.clock"),
        ("store/__init__.py", "asyncpg"),
    ],
)
def test_a_planted_import_breaks_a_contract(tmp_path: Path, importer: str, imported: str) -> None:
    for path in (ROOT / "src").rglob("*.py"):
        copy = tmp_path / path.relative_to(ROOT / "src")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    with (tmp_path / "countersign" / importer).open("a") as file:
        file.write(f"\nimport {imported}\n")

    result = lint_imports(tmp_path, ROOT / ".importlinter")

    assert result.returncode == 1
    assert "BROKEN" in result.stdout


def unresolved_imports(text: str) -> list[str]:
    """Return the names that a script or its functions import from this repository and that do not exist."""
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    imported = [
        (node.module, alias.name)
        for node in imports
        if node.module and node.module.split(".")[0] in {"bench", "countersign", "tests", "tools"}
        for alias in node.names
    ]
    return [f"{module}.{name}" for module, name in imported if not is_importable(module, name)]


def is_importable(module: str, name: str) -> bool:
    """Return whether `from module import name` succeeds."""
    try:
        return (
            hasattr(importlib.import_module(module), name) or importlib.util.find_spec(f"{module}.{name}") is not None
        )
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("folder", ["bench", "tools", "examples"])
def test_a_script_outside_the_package_imports_only_existing_names(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        assert not unresolved_imports(path.read_text()), path


@pytest.mark.parametrize("module", ["countersign.kernel.gone", "countersign.settings"])
def test_a_planted_import_of_a_missing_module_is_found(module: str) -> None:
    assert unresolved_imports(f"def fill():\n    from {module} import gone\n") == [f"{module}.gone"]


# The repository -----------------------------------------------------------------------------------

# The brackets prevent the pattern from matching this file.
LOCAL_PATH = re.compile(r"""(^|["' (=\[])/(w[o]rk|r[o]ot|f[a]rm|U[s]ers|h[o]me/[a-z]+)/""", re.MULTILINE)
REGISTRY = re.compile(r"://[a-z.-]*(pypi|pythonhosted|npmjs|debian)\.|--(find-links|index-url|extra-index-url)\b")
LOCAL_ADDRESSES = {"a path of one machine": LOCAL_PATH, "the address of a package registry": REGISTRY}


def tracked_files() -> list[Path]:
    """Return every file that git tracks, or nothing outside a git repository."""
    result = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    return [ROOT / name for name in result.stdout.split("\0") if name and (ROOT / name).is_file()]


def addresses(text: str) -> list[str]:
    """Return the addresses in the text that are valid on only one machine or for only one package registry."""
    return [f"{name}: {matched[0]!r}" for name, pattern in LOCAL_ADDRESSES.items() if (matched := pattern.search(text))]


def test_tracked_files_name_no_machine_and_no_registry() -> None:
    addresses_by_path = {
        str(path.relative_to(ROOT)): addresses(path.read_text(errors="replace")) for path in tracked_files()
    }

    assert not {path: texts for path, texts in addresses_by_path.items() if texts}


@pytest.mark.parametrize(
    "text",
    ["see '/ro" + "ot/x'", "cd /wo" + "rk/x", "https://py" + "pi.org/simple", "--find-" + "links x"],
)
def test_a_planted_address_is_found(text: str) -> None:
    assert addresses(text)


def test_migrations_list_their_columns() -> None:
    for path in (ROOT / "src").rglob("*.sql"):
        assert not re.search(r"select\s+\*", path.read_text(), re.IGNORECASE), path


def test_every_dependency_is_locked_with_a_hash() -> None:
    lock = (ROOT / "requirements/run.txt").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    for dependency in project["dependencies"]:
        name = re.split(r"[<>=;\[ ]", dependency)[0]
        assert re.search(rf"^{name}==\S+.*\\\n    --hash=sha256:", lock, re.MULTILINE), f"make lock: {name}"
