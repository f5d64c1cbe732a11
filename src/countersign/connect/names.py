"""Names of models and fields for the tables and columns of an existing database, whose names can be any text."""

import keyword
import re
import unicodedata
from collections.abc import Collection

from countersign.declare.rules.modules import (
    ENGINE_TABLES,
    MAX_LENGTH,
    RESERVED_FIELDS,
    RESERVED_PATHS,
    SYSTEM_COLUMNS,
)
from countersign.declare.text import WORDS, printable

MAX_LABEL_LENGTH = 60

_GERMAN = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "æ": "ae", "ø": "oe", "å": "a"}
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PLURALS = {"people": "person", "children": "child", "men": "man", "women": "woman", "mice": "mouse", "data": "data"}
_SINGULAR_ENDINGS = ("ss", "us", "is", "news", "series", "species")


def words(name: str) -> list[str]:
    """Return the words of a name in lower case, without accents. Words end at underscores, digits and capitals."""
    composed = unicodedata.normalize("NFC", name).translate(_GERMAN)
    plain = "".join(each for each in unicodedata.normalize("NFKD", composed) if not unicodedata.combining(each))
    return [each.lower() for each in _WORD.findall(plain)]


def singular(word: str) -> str:
    """Return the singular of an English word. Words that only look like a plural may lose their last letter."""
    if word in _PLURALS:
        return _PLURALS[word]
    if len(word) < 4 or word.endswith(_SINGULAR_ENDINGS) or not word.endswith("s"):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("sses", "xes", "ches", "shes", "zes")) else word[:-1]


def model_name(table: str, taken: Collection[str], module: str) -> str:
    """Return a valid name for the model of a table, different from all names in `taken`. A reserved name gets the name
    of the module before it."""
    parts = words(table)
    name = "_".join([*parts[:-1], singular(parts[-1])]) if parts else "table"
    name = _starts_with_letter(name, "table")
    if name in RESERVED_PATHS or name in ENGINE_TABLES or name.startswith(("sqlite_", "pg_")) or name in taken:
        name = f"{module}_{name}"
    return unique(name, taken)


def field_name(column: str, taken: Collection[str], suffix: str = "", *, fallback: str = "field") -> str:
    """Return a valid name for the field of a column, different from all names in `taken`. `fallback` is the name if the
    column has neither Latin letters nor digits."""
    name = _starts_with_letter("_".join(words(column)) or fallback, "field")
    if name in RESERVED_FIELDS or name in SYSTEM_COLUMNS or keyword.iskeyword(name):
        name = f"{name}_value"
    return unique(name, taken, suffix)


def module_name(database: str) -> str:
    """Return a valid name for the module of a database."""
    return _starts_with_letter("_".join(words(database)) or "database", "database")[:MAX_LENGTH].rstrip("_")


def class_name(model: str) -> str:
    """Return the name of the class of a model, which differs from the words of the declaration language."""
    name = "".join(each.capitalize() for each in model.split("_"))
    return f"{name}Record" if name in WORDS or keyword.iskeyword(name) else name


def unique(name: str, taken: Collection[str], suffix: str = "") -> str:
    """Return the name, shortened to the maximum length, with a number at its end if it is taken."""
    number = 1
    while True:
        end = (f"_{number}" if number > 1 else "") + suffix
        found = f"{name[: MAX_LENGTH - len(end)].rstrip('_')}{end}"
        if found not in taken:
            return found
        number += 1


def label(original: str, name: str) -> str:
    """Return a label if the name has lost characters of the original, such as accents or Japanese letters. Otherwise
    the default label is sufficient, and the result is an empty text."""
    shown = " ".join(printable(original).split())[:MAX_LABEL_LENGTH]
    is_lossy = not original.isascii() or not words(original)
    has_letters = any(each.isalnum() for each in shown)
    return shown if is_lossy and has_letters and shown != name else ""


def _starts_with_letter(name: str, prefix: str) -> str:
    return name if name[:1].isalpha() else f"{prefix}_{name}"
