"""Guesses which columns are secret or personal. Text is masked by default, until a person decides that agents may read
it."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Literal, TypeAlias

from countersign.connect import names, personal_words, run_together
from countersign.connect.schema import Relation, RelationId, TableColumn
from countersign.connect.value_shapes import shape_of
from countersign.declare.review import FREE_TEXT

Verdict: TypeAlias = Literal["clear", "personal", "look", "secret"]

MIN_RUN = 5
"""The minimum length of a word that is searched inside a name without separators, such as `nationalidnumber`."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Facts about a table: whether each row is about one person, whether rows refer to people, whether one column
    defines the meaning of another column's values, and whether the table stores tokens or keys."""

    is_about_people: bool = False
    refers_to_people: bool = False
    has_attributes: bool = False
    keeps_secrets: bool = False


@dataclass(frozen=True, slots=True)
class Guess:
    """The verdict on a column, the label of its tokens if it is masked, and the reason in words."""

    verdict: Verdict
    reason: str = ""
    label: str = ""


def guess(column: TableColumn, values: Sequence[str] = (), table: TableFacts | None = None) -> Guess:
    """Return the verdict on a column, given some of its distinct values.

    Text and UUIDs are always masked, because later values may differ from the given ones. Numbers, dates and enums are
    clear, unless the name of the column or its table indicates that they are secret or personal.
    """
    facts = table or TableFacts()
    said = re.search(r"\bpii:([a-z]+)", column.comment.lower())
    if said:
        return Guess("personal", "the comment of the column says so", said[1].upper()[:20])
    if _is_secret(column) or (facts.keeps_secrets and names.words(column.name) == ["key"]):
        return Guess("secret", "secret")
    if column.base in ("text", "citext", "uuid", "address", "other", "json", "array", "interval"):
        return _text(column, values, facts.is_about_people)
    return _value(column, facts)


def facts_of_tables(relations: Sequence[Relation]) -> Mapping[RelationId, TableFacts]:
    """Return the facts about each relation. A relation is about people if its name says so, or if its primary key
    refers to such a relation. A relation refers to people by a foreign key or by the name of a column, directly or
    through other relations."""
    people = {each.id for each in relations if is_about_people(each)}
    people = _with_referring(relations, people, of_primary_key=True)
    near = people | {each.id for each in relations if any(_names_person(each, column) for column in each.columns)}
    near = _with_referring(relations, near)
    return {
        each.id: TableFacts(
            each.id in people, each.id in near, any(map(_names_attribute, each.columns)), _keeps_secrets(each)
        )
        for each in relations
    }


def _with_referring(
    relations: Sequence[Relation], found: set[RelationId], *, of_primary_key: bool = False
) -> set[RelationId]:
    """Return the found relations and all relations that refer to them, directly or indirectly. With `of_primary_key`,
    only foreign keys over all columns of the primary key count."""
    while True:
        more = {each.id for each in relations if _refers_to(each, found, of_primary_key=of_primary_key)} - found
        if not more:
            return found
        found = found | more


def _refers_to(relation: Relation, found: set[RelationId], *, of_primary_key: bool) -> bool:
    primary = next((set(key.columns) for key in relation.keys if key.is_primary), set[str]())
    references = [each for each in relation.foreign_keys if not of_primary_key or set(each.columns) == primary]
    return any(each.target in found for each in references)


def _names_person(relation: Relation, column: TableColumn) -> bool:
    """Return whether a column without a foreign key is named like a reference to people, such as `patient_id`."""
    parts = [names.singular(each) for each in names.words(column.name)]
    is_reference = len(parts) > 1 and parts[-1] in ("id", "nr", "no", "uuid") and "parent" not in parts
    is_declared = any(column.name in each.columns for each in relation.foreign_keys)
    return is_reference and not is_declared and set(parts[:-1]) <= personal_words.PEOPLE


def _keeps_secrets(relation: Relation) -> bool:
    return not personal_words.SECRET_TABLES.isdisjoint(names.words(relation.name))


def _names_attribute(column: TableColumn) -> bool:
    return not personal_words.ATTRIBUTE_WORDS.isdisjoint(names.words(column.name))


def is_about_people(relation: Relation) -> bool:
    """Return whether the name of the relation says that each row is about one person."""
    parts = names.words(relation.name)
    found = {names.singular(part) for part in parts} | set(parts)
    is_run = _contains("".join(parts), personal_words.PEOPLE_RUNS)
    return is_run or bool(found & personal_words.PEOPLE) or _contains(relation.name, personal_words.PEOPLE_PARTS)


def _is_secret(column: TableColumn) -> bool:
    if column.base in ("bool", "date", "moment", "local_moment", "time"):
        return False
    parts = names.words(column.name)
    has_pair = not personal_words.SECRET_PAIRS.isdisjoint(pairwise(parts))
    if has_pair or _contains(column.name, personal_words.SECRET_PARTS):
        return True
    if len(parts) > 1 and parts[-1] in ("count", "type"):
        return False
    return _has_word(parts, personal_words.SECRET_WORDS)


def _has_word(parts: Sequence[str], known: frozenset[str]) -> bool:
    """Return whether a name with these parts contains one of the words, also if the name has no separators."""
    run = "".join(parts)
    is_inside = any(len(word) >= MIN_RUN and word in run for word in known)
    return is_inside or not known.isdisjoint(_all_words(parts))


def _all_words(parts: Iterable[str]) -> set[str]:
    """Return the parts of a name, their singulars, and the words inside parts without separators."""
    found = {word for part in parts for word in (part, *run_together.words(part, personal_words.VOCABULARY))}
    return found | {names.singular(word) for word in found}


def _contains(text: str, parts: Iterable[str]) -> bool:
    return any(part in text for part in parts)


def _text(column: TableColumn, values: Sequence[str], of_people: bool) -> Guess:
    label = _label_of_name(column, of_people)
    shape, share = shape_of(values)
    if label:
        return Guess("personal", _with_share("name", shape, share), label)
    if shape:
        return Guess("personal", f"{share:.0%} of {len(values)} values", shape)
    if column.base == "address":
        return Guess("personal", "type", "IP")
    return Guess("look", "text that no one has looked at", FREE_TEXT)


def _with_share(reason: str, shape: str, share: float) -> str:
    return f"{reason}, {share:.0%} of the values" if shape else reason


def _value(column: TableColumn, table: TableFacts) -> Guess:
    """Return the verdict on a column that is not text. Only text can be replaced by tokens, so the column is either
    clear or not declared."""
    return Guess("look", reason) if (reason := _reason_to_look(column, table)) else Guess("clear")


def _reason_to_look(column: TableColumn, table: TableFacts) -> str:
    """Return the reason why a person must review a column that is not text, or an empty text."""
    parts = names.words(column.name)
    if _is_personal_value(column, parts, table):
        return "a personal value, and tokens stand for text only"
    if _is_harmless(column, parts):
        return ""
    if table.is_about_people:
        return "a value in a table about people"
    return "" if _is_of_business(parts) else _reason_of_table(column, parts, table)


def _reason_of_table(column: TableColumn, parts: Sequence[str], table: TableFacts) -> str:
    if table.refers_to_people:
        return "a value in a table that refers to people"
    if table.has_attributes and not personal_words.VALUE_WORDS.isdisjoint(parts):
        return "a value whose meaning another column says"
    return "a number that may identify a person" if _is_identifying(column, parts) else ""


def _is_harmless(column: TableColumn, parts: Sequence[str]) -> bool:
    is_switch = column.base == "bool" and not personal_words.HARMLESS_IN_PEOPLE.isdisjoint(parts)
    return is_switch or column.base == "bytes"


def _is_of_business(parts: Sequence[str]) -> bool:
    return bool(parts) and personal_words.BUSINESS_WORDS.issuperset(each for each in parts if not each.isdigit())


def _is_personal_value(column: TableColumn, parts: Sequence[str], table: TableFacts) -> bool:
    if not personal_words.PERSONAL_VALUE_PAIRS.isdisjoint(pairwise(parts)):
        return True
    written = unicodedata.normalize("NFKC", column.name).casefold()
    if _has_word(parts, personal_words.PERSONAL_VALUES) or _contains(written, personal_words.PERSONAL_VALUE_PARTS):
        return True
    # A boolean is neither an address nor a number, even if its name suggests so.
    return column.base != "bool" and bool(_label_of_name(column, table.is_about_people))


def _is_identifying(column: TableColumn, parts: Sequence[str]) -> bool:
    """Return whether the column may contain an identity number: an integer with a name like `card_no`, or a large
    integer whose name has no word of a business process."""
    if column.base not in ("integer", "bigint"):
        return False
    known = personal_words.NUMBERING_WORDS | personal_words.BUSINESS_WORDS
    is_named = not personal_words.IDENTITY_WORDS.isdisjoint(_all_words(parts)) or "コード" in column.name
    if known.issuperset(parts) and not is_named:
        return False
    last = parts[-1] if parts else ""
    is_numbering = last in personal_words.NUMBERING_WORDS or last.endswith(("nr", "number", "nummer"))
    return is_named or is_numbering or column.base == "bigint"


def _label_of_name(column: TableColumn, of_people: bool) -> str:
    parts = names.words(column.name)
    if parts and parts[-1] in personal_words.HARMLESS_ENDINGS and len(parts) > 1:
        return ""
    if parts == ["name"] and of_people:
        return "PERSON"
    of_pairs = map(personal_words.LABEL_PAIRS.get, pairwise(parts))
    of_words = (personal_words.LABEL_OF_WORD.get(word) for part in parts for word in (part, names.singular(part)))
    of_runs = map(personal_words.LABEL_OF_WORD.get, sorted(_all_words(parts)))
    found = next(filter(None, chain(of_pairs, of_words)), "")
    return found or _label_in_run(column.name, "".join(parts)) or next(filter(None, of_runs), "")


def _label_in_run(written: str, name: str) -> str:
    """Return the label of a word inside a name without separators, such as `kundenvorname` or a Japanese name."""
    text = unicodedata.normalize("NFKC", written).casefold()
    of_parts = (label for part, label in personal_words.LABEL_PARTS.items() if part in text)
    of_words = (label for word, label in personal_words.LABEL_OF_WORD.items() if len(word) >= MIN_RUN and word in name)
    return next(chain(of_parts, of_words), "")
