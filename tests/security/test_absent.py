"""The code must not run text as code, read formats that can act, or use weak cryptography."""

import ast
import re
from collections.abc import Callable, Iterator

import pytest

from tests.source import ROOT, Source, dotted_name, sources

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
# The round function of a permutation, which uses AES as a keyed function of one block.
MAY_BE_WEAK = {("src/countersign/records/masking/placeholder_tokens.py", "ECB")}
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write"
    r"|\beval\(|new Function\(|javascript:|addEventListener\(\s*[\"']message[\"']|onmessage\s*=\s*.*window"
)


def texts_run(source: Source) -> Iterator[str]:
    """Yield calls that run a text as code, in the interpreter or in the system's shell."""
    for node in source.nodes:
        if isinstance(node, ast.Call):
            if (name := dotted_name(node.func)) in RUNS_TEXT:
                yield name
            yield from (f"{name} shell" for keyword in node.keywords if keyword.arg == "shell")


def formats_read(source: Source) -> Iterator[str]:
    """Yield imports of readers for formats that may name code, files or addresses to fetch."""
    for node in source.nodes:
        names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module]
        yield from (name for name in names if name.partition(".")[0] in ACTING_FORMATS)


def weak_cryptography(source: Source) -> Iterator[str]:
    """Yield names of digests, ciphers, modes and paddings that are broken or easily misused."""
    for node in source.nodes:
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name in WEAK:
            yield name


def test_nothing_runs_a_text() -> None:
    assert not [(source.path, text) for source in sources() for text in texts_run(source)]


def test_nothing_reads_a_format_that_can_act() -> None:
    assert not [(source.path, text) for source in sources() for text in formats_read(source)]


def test_nothing_uses_a_broken_digest_or_cipher() -> None:
    assert {(source.path, call) for source in sources() for call in weak_cryptography(source)} == MAY_BE_WEAK


def test_pages_make_no_markup_of_text() -> None:
    assert SCRIPTS
    assert not [(path, match) for path, text in SCRIPTS.items() for match in MARKUP.findall(text)]


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
def test_a_planted_secret_is_found(look: Callable[[Source], Iterator[str]], code: str) -> None:
    assert list(look(Source.of("x.py", code)))


@pytest.mark.parametrize("code", ["node.innerHTML = text", "eval(text)", "window.addEventListener('message', take)"])
def test_planted_markup_is_found(code: str) -> None:
    assert MARKUP.search(code)
