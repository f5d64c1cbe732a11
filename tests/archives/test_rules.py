"""Every rule that the reader can raise is documented, and every documented rule can be raised."""

import ast
from collections.abc import Iterator
from pathlib import Path

from countersign.archives.refusals import RULES

FOLDER = Path(__file__).parents[2] / "src/countersign/archives"
RAISING = ("ArchiveRefused", "NameViolation")


def words(node: ast.expr) -> Iterator[str]:
    """Yield the texts that an expression can evaluate to."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from words(node.body)
        yield from words(node.orelse)


def raised_rules() -> set[str]:
    """Return every rule that is passed to a refusal, directly or through a variable."""
    rules: set[str] = set()
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in RAISING and node.args:
                rules |= set(words(node.args[0]))
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("rule", "self._too_much"):
                rules |= set(words(node.value))
            if isinstance(node, ast.keyword) and node.arg == "rule":
                rules |= set(words(node.value))
    return rules


def test_the_table_has_every_rule_that_is_raised_and_no_other() -> None:
    assert raised_rules() == RULES.keys()
