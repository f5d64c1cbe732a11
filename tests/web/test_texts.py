"""The texts of the pages: complete in both languages, in plain words, and all in the catalogues."""

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from countersign.kernel.http.german import GERMAN
from countersign.store import scopes
from countersign.web import store_site
from tools import pages

ROOT = Path(__file__).parents[2]
LOCALES = ROOT / "frontend/locales"
FILES = ("common", "store", "work")
PLACEHOLDER = re.compile(r"\{(\w+)\}")
# Words that texts of a page must not contain.
BANNED = re.compile(
    r"\b(nobody|whoever|told|tells|is none|lets go|let go|stands for|holds|is no \w+ of)\b"
    r"|\b(yank\w*|plans?\b(?! to)|pick(?:ed)?\b|take away|taken away|meanwhile|of it\b|who does not)",
    re.IGNORECASE,
)
# German written without umlauts or sharp s, and informal address.
NOT_GERMAN = re.compile(
    r"\b(fuer|ueber\w*|koenn\w*|moeg\w*|aender\w*|geaend\w*|loesch\w*|geloesch\w*|waehl\w*|ausgewaehl\w*|zurueck\w*|"
    r"pruef\w*|geprueft|naechst\w*|spaet\w*|gross\w*|muess\w*|eintraeg\w*|datensaetz\w*|schliess\w*|du|dein\w*|dir|dich)\b",
    re.IGNORECASE,
)


def catalogue(language: str) -> dict[str, str]:
    """Return all texts of a language by namespace and key."""
    texts: dict[str, str] = {}
    for name in FILES:
        namespaces: dict[str, dict[str, str]] = json.loads((LOCALES / language / f"{name}.json").read_text())
        texts |= {f"{space}.{key}": text for space, keys in namespaces.items() for key, text in keys.items()}
    return texts


def python_texts() -> Iterator[tuple[str, str]]:
    """Yield the English texts of the pages that are made in Python, with their German."""
    yield from GERMAN.items()
    english, german = store_site.TEXTS["en"], store_site.TEXTS["de"]
    assert english.keys() == german.keys()
    yield from ((english[key], german[key]) for key in english)


def test_both_languages_have_the_same_keys_in_the_same_order() -> None:
    assert list(catalogue("en")) == list(catalogue("de"))
    assert len(catalogue("en")) > 800


def test_no_text_is_empty_and_both_languages_have_the_same_placeholders() -> None:
    english, german = catalogue("en"), catalogue("de")

    assert not [key for key in english if not english[key].strip() or not german[key].strip()]
    assert not [
        key for key in english if set(PLACEHOLDER.findall(english[key])) != set(PLACEHOLDER.findall(german[key]))
    ]


@pytest.mark.parametrize("language", ["en", "de"])
def test_texts_have_typographic_quotes_and_apostrophes(language: str) -> None:
    assert not {key: text for key, text in catalogue(language).items() if re.search(r"['\"]|\.\.\.| {2}|^\s|\s$", text)}


def test_english_texts_use_the_terms_of_the_glossary() -> None:
    texts = {**catalogue("en"), **{english: english for english, _ in python_texts()}}

    assert not {key: text for key, text in texts.items() if BANNED.search(text)}


def test_german_texts_have_umlauts_and_a_formal_address() -> None:
    texts = {**catalogue("de"), **dict(python_texts())}

    assert not {key: text for key, text in texts.items() if NOT_GERMAN.search(text)}


def test_german_texts_of_several_words_are_translated() -> None:
    english = catalogue("en")
    same_texts = {key: text for key, text in catalogue("de").items() if text == english[key]}
    words_by_key = {key: re.sub(r"\{\w+\}|\(\w+\)|\W", " ", text).split() for key, text in same_texts.items()}

    # Offered questions are in English, since the catalog understands only English questions.
    assert not {key for key, value in words_by_key.items() if len(value) > 1 and not key.startswith("ask.offer.")}


def test_the_sources_have_no_text_outside_of_the_catalogues() -> None:
    if not pages.has_node() or not (pages.SOURCES / "node_modules/typescript").is_dir():
        pytest.skip("no Node with the packages of the pages here (make setup)")
    result = subprocess.run(
        ["node", "lint.mjs"], cwd=pages.SOURCES, env=pages.environment(), capture_output=True, text=True, check=False
    )

    assert not result.stderr
    assert result.returncode == 0


TRANSLATED = ("translate", "t", "field", "readonly_field", "form_page", "message_page", "redirect_page", "page")


def pages_in_python() -> Iterator[Path]:
    """Yield the modules that make plain pages."""
    for path in (ROOT / "src/countersign").rglob("*.py"):
        if re.search(r"kernel\.http import .*\bhtml\b|kernel\.http\.html import", path.read_text()):
            yield path


def translated_texts(path: Path) -> Iterator[str]:
    """Yield the sentences that the module passes to a function which translates them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in TRANSLATED:
            values = (*node.args, *(keyword.value for keyword in node.keywords))
            texts = [
                value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)
            ]
            yield from (text for text in texts if " " in text.strip())


def test_texts_that_python_translates_have_german() -> None:
    texts = [(path.name, text) for path in pages_in_python() for text in translated_texts(path)]

    assert not [(name, text) for name, text in texts if text not in GERMAN]
    assert not [text for text in scopes.MEANING.values() if text not in GERMAN]
