"""The guide to writing a module uses the example's own code, and explains every word of the language."""

import inspect
import re
from collections.abc import Iterator

from countersign import declare
from countersign.declare.fields.field import FieldOptions
from countersign.declare.model import ModelOptions
from tests import docs

EXAMPLE = docs.ROOT / "examples/module"
PAGE = (docs.ROOT / "docs/how-to/write-a-module.md").read_text()
KINDS_PAGE = (docs.ROOT / "docs/how-to/add-a-field-kind.md").read_text()

ENGINE_ALONE = {"ADMINISTRATOR", "BadValue", "DeclarationError", "Declared", "Field", "Moment", "Structure", "Where"}
"""Names that a module's author never writes."""


def code(language: str) -> Iterator[str]:
    """Yield the lines of the page's code in the language, without empty ones."""
    for block in re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        yield from filled_lines(block)


def filled_lines(text: str) -> list[str]:
    """Return the lines that are not empty."""
    return [line for line in text.splitlines() if line.strip()]


def test_the_page_shows_the_whole_example_in_its_order() -> None:
    assert list(code("python")) == filled_lines((EXAMPLE / "countersign_equipment/__init__.py").read_text())
    assert list(code("toml")) == filled_lines((EXAMPLE / "pyproject.toml").read_text())


def test_the_page_shows_every_word_of_the_language() -> None:
    language_words = {*declare.__all__, *FieldOptions.__annotations__, *ModelOptions.__annotations__} - ENGINE_ALONE
    for declared in (
        declare.Module,
        declare.Role,
        declare.Grant,
        declare.Move,
        declare.Number,
        declare.Text,
        declare.Ref,
    ):
        language_words |= inspect.signature(declared).parameters.keys()
    language_words |= {name for name in vars(declare.Work) if not name.startswith("_")}
    # Arguments without keywords: the target of a ref, the states and the grants.
    language_words -= {"target", "sources", "grants", "options"}

    assert not [word for word in sorted(language_words) if not re.search(rf"\b{word}\b", PAGE + KINDS_PAGE)]


def test_the_example_is_about_as_short_as_promised() -> None:
    assert len(filled_lines((EXAMPLE / "countersign_equipment/__init__.py").read_text())) < 40
