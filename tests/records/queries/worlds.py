"""Generates random models, random records of these models, and random queries on the records."""

import random
from collections.abc import Mapping, Sequence
from typing import Any
from unicodedata import normalize

from hypothesis import strategies as st

from countersign.declare import Bool, Date, Declared, Field, LongText, Model, Money, Number, Ref, Select, Text, Where
from tests.records.queries import oracle
from tests.records.queries.oracle import Query, Record

LARGEST = 2**53 - 1
CONTROL = "".join(chr(code) for code in range(32) if chr(code) not in "\t\n")
"""The characters that no text may contain. A carriage return is stored as a newline."""
# Names that are also key words of SQL. Statements must quote all columns.
NAMES = ("order", "group", "select", "from", "user", "value", "total", "count", "limit", "t", "when", "index", "desc")
OPTIONS = ("zulu", "alpha", "Mike", "10", "9", "new", "a-b", "a_b", "null", "true", "ALPHA", "x")
# Texts that differ in case, composition, width, direction or order of code points, and texts with wildcards and quotes
# of SQL.
WORDS = (
    *("", " ", "a", "A", "ab", "Ab", "b", "aB ", "straße", "STRASSE", "ẞ", "ss", "é", "e\u0301", "É", "E\u0301", "ﬁ"),
    *("fi", "İ", "i\u0307", "ı", "I", "i", "K", "K", "k", "ς", "σ", "Σ", "ΑΣ", "ᾳ", "ᾼ", "αι", "ŉ", "\U0001f600"),
    *("\uffff", "\U0010ffff", "\ue000", "z", "~", "10", "9", "1", "%", "_", "a%b", "a_b", "\\", "'", '"', "$1", "?"),
    *("\u200b", "a\nb", "\t", "Å", "Å", "Å", "각", "각", "x" * 1_000, "null", "NULL", "-1", "0x", ";--", "א", "\u0345"),
)
NUMBERS = (-LARGEST, -LARGEST + 1, -(2**31) - 1, -1, 0, 1, 2, 3, 1_234, 2**31, 2**32, LARGEST - 1, LARGEST)
DATES = ("0001-01-01", "1969-12-31", "1970-01-01", "2024-02-29", "2026-11-20", "2026-11-21", "9999-12-31")

KINDS: Mapping[str, type[Field]] = {
    "text": Text, "longtext": LongText, "number": Number, "money": Money, "date": Date, "bool": Bool, "select": Select,
    "ref": Ref,
}  # fmt: skip


class Target(Model, plural="Targets"):
    """The target of refs of the random model."""

    title = Text()


@st.composite
def models(draw: st.DrawFn) -> type[Model]:
    """Generate a model called thing with 4 to 12 fields of any kind. Each field is randomly indexed."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=4, max_size=12))
    names = draw(st.permutations(NAMES))
    fields: dict[str, Field] = {}
    for name, kind in zip(names, kinds, strict=False):
        if kind == "select":
            options = draw(st.lists(st.sampled_from(OPTIONS), min_size=1, unique=True))
            fields[name] = Select(*options, index=draw(st.booleans()))
        elif kind == "ref":
            fields[name] = Ref(draw(st.sampled_from(["target", "thing"])))
        else:
            indexed = kind != "longtext" and draw(st.booleans())
            fields[f"{name}_minor" if kind == "money" else name] = KINDS[kind](index=indexed)
    return type("Thing", (Model,), {"__doc__": "Anything.", "__module__": __name__, **fields})


def value_of(rng: random.Random, field: Field, refs: Mapping[str, Sequence[str]]) -> Any:
    """Return a value of the kind of the field. Other records often have the same value."""
    if field.kind in oracle.TEXT_KINDS:
        return "".join(rng.choices(WORDS, k=rng.choice([1, 1, 1, 2, 3])))[:1_000]
    if field.kind in ("number", "money"):
        return rng.choice(NUMBERS) if rng.random() < 0.7 else rng.randint(-20, 20)
    if field.kind == "date":
        return rng.choice(DATES) if rng.random() < 0.7 else f"{rng.randint(1, 9999):04}-{rng.randint(1, 12):02}-15"
    if isinstance(field, Select):
        return rng.choice(field.options)
    if isinstance(field, Ref):
        return rng.choice(refs[field.target]) if refs[field.target] else None
    return rng.random() < 0.5


def rows(rng: random.Random, model: Declared, refs: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the fields of a new record. A quarter of them are empty: some are omitted, and some are null."""
    empty = rng.choice([0.0, 0.25, 0.9])
    values = {name: value_of(rng, field, refs) for name, field in model.fields.items() if rng.random() >= empty}
    return values | {name: None for name in model.fields if name not in values and rng.random() < 0.5}


def rule(rng: random.Random, model: Declared, records: Sequence[Record]) -> Where:
    """Return a row condition of a role, with a value that a record has."""
    name = rng.choice(["id", *model.fields])
    values = [record[name] for record in records if record[name] is not None]
    operator = rng.choice(oracle.operators(model, name)) if values else "is_null"
    if operator == "is_null":
        return Where(name, operator, rng.random() < 0.5)
    return Where(name, operator, rng.sample(values, min(len(values), 5)) if operator == "in" else rng.choice(values))


@st.composite
def conditions(draw: st.DrawFn, model: Declared, names: Sequence[str], records: Sequence[Record]) -> dict[str, Any]:
    """Generate a condition on a field or id, usually with a value that a record has."""
    name = draw(st.sampled_from(["id", *names]))
    operator = draw(st.sampled_from(oracle.operators(model, name)))
    if operator == "is_null":
        return {"field": name, "op": operator, "value": draw(st.booleans())}
    operand = operands(model, name, records)
    if operator == "in":
        return {"field": name, "op": operator, "value": draw(st.lists(operand, min_size=1, max_size=5))}
    value = draw(operand)
    if operator == "contains":
        start, stop = sorted(draw(st.tuples(st.integers(0, len(value)), st.integers(0, len(value)))))
        excerpt = draw(st.sampled_from([value, value[start:stop]]))
        value = draw(
            st.sampled_from([excerpt, excerpt.upper(), excerpt.lower(), excerpt.casefold(), normalize("NFD", excerpt)])
        )
    return {"field": name, "op": operator, "value": value}


def operands(model: Declared, name: str, records: Sequence[Record]) -> st.SearchStrategy[Any]:
    """Return values to compare a field with: values that exist, and others of its kind."""
    existing_ids = [record[name] for record in records if record[name] is not None]
    known_ids = st.sampled_from(existing_ids) if existing_ids else st.nothing()
    if name == "id" or isinstance(model.fields[name], Ref):
        return known_ids | st.sampled_from(["0" * 24, "f" * 24, "", "no id", "A" * 24])
    field = model.fields[name]
    strategies: Mapping[str, st.SearchStrategy[Any]] = {
        "number": st.integers(-LARGEST, LARGEST) | st.sampled_from(NUMBERS),
        "money": st.integers(-LARGEST, LARGEST) | st.sampled_from(NUMBERS),
        "date": st.dates().map(str) | st.sampled_from(DATES),
        "bool": st.booleans(),
        "select": st.sampled_from(field.options) if isinstance(field, Select) else st.nothing(),
    }
    characters = st.characters(exclude_categories=["Cs"], exclude_characters=CONTROL)
    return known_ids | strategies.get(field.kind, st.sampled_from(WORDS) | st.text(characters, max_size=4))


@st.composite
def queries(draw: st.DrawFn, model: Declared, names: Sequence[str], records: Sequence[Record]) -> Query:
    """Generate a query on these fields. Each part may be missing."""
    query: dict[str, Any] = {}
    if draw(st.booleans()):
        query["filter"] = draw(st.lists(conditions(model, names, records), max_size=3))
    if draw(st.booleans()):
        key = st.fixed_dictionaries(
            {"field": st.sampled_from(["id", *names])}, optional={"dir": st.sampled_from(["asc", "desc"])}
        )
        query["order"] = draw(st.lists(key, max_size=5))
    if draw(st.booleans()):
        query["limit"] = draw(st.integers(1, len(records) + 2) | st.just(5_000))
    if draw(st.booleans()):
        query["offset"] = draw(st.integers(0, len(records) + 2) | st.just(LARGEST))
    return query
