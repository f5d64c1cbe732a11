"""What the code must not contain: no text is run as code, no format is read that can act, no weak cryptography."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in (ROOT / "frontend").rglob("*.ts*")
    if not {"node_modules", "generated"} & set(path.parts)
}
RUNS_TEXT = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "subprocess.getoutput"}
ACTING_FORMATS = {
    *("pickle", "marshal", "shelve", "dill", "xml", "lxml", "yaml", "ldap", "ldap3"),
    *("jinja2", "mako", "memcache", "pymemcache"),
}
WEAK = {"MD5", "md5", "SHA1", "sha1", "ARC4", "Blowfish", "TripleDES", "PKCS1v15", "CBC", "CFB", "ECB"}
# The round function of a permutation, which takes AES as what it is: a keyed function of one block.
MAY_BE_WEAK = {("src/countersign/records/masking/permutation.py", "ECB")}
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write"
    r"|\beval\(|new Function\(|javascript:|addEventListener\(\s*[\"']message[\"']|onmessage\s*=\s*.*window"
)


@cache
def sources() -> dict[str, ast.Module]:
    """Every file of the product, parsed by the first test that asks: no worker waits for it while it collects."""
    files = (ROOT / "src").rglob("*.py")
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in files}


def texts_run(tree: ast.AST) -> Iterator[str]:
    """Calls that run a text: of the interpreter's, or of the system's shell."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if (name := ast.unparse(node.func)) in RUNS_TEXT:
                yield name
            yield from (f"{name} shell" for each in node.keywords if each.arg == "shell")


def formats_read(tree: ast.AST) -> Iterator[str]:
    """Imports of what reads a format that may name code, files or addresses to fetch."""
    for node in ast.walk(tree):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module]
        yield from (name for name in names if name.partition(".")[0] in ACTING_FORMATS)


def weak_cryptography(tree: ast.AST) -> Iterator[str]:
    """Names of digests, ciphers, modes and paddings that are broken or easily used wrongly."""
    for node in ast.walk(tree):
        found = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if found in WEAK:
            yield found


def test_nothing_runs_a_text() -> None:
    assert not [(path, each) for path, tree in sources().items() for each in texts_run(tree)]


def test_nothing_reads_a_format_that_can_act() -> None:
    assert not [(path, each) for path, tree in sources().items() for each in formats_read(tree)]


def test_nothing_uses_a_broken_digest_or_cipher() -> None:
    assert {(path, each) for path, tree in sources().items() for each in weak_cryptography(tree)} == MAY_BE_WEAK


def test_pages_make_no_markup_of_text() -> None:
    assert SCRIPTS
    assert not [(path, each) for path, text in SCRIPTS.items() for each in MARKUP.findall(text)]


@pytest.mark.parametrize(
    ("look", "code"),
    [
        (texts_run, "eval(text)"),
        (texts_run, "subprocess.run(text, shell=True)"),
        (formats_read, "import xml.etree.ElementTree"),
        (formats_read, "from pickle import loads"),
        (weak_cryptography, "hashlib.md5(data)"),
        (weak_cryptography, "Cipher(AES(key), modes.ECB())"),
    ],
)
def test_what_is_planted_is_found(look: Callable[[ast.AST], Iterator[str]], code: str) -> None:
    assert list(look(ast.parse(code)))


@pytest.mark.parametrize("code", ["node.innerHTML = text", "eval(text)", "window.addEventListener('message', take)"])
def test_planted_markup_is_found(code: str) -> None:
    assert MARKUP.search(code)
