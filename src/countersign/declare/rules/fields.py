"""Rules about what is said of one field: its kind, default, options, ranges."""

import re
from collections.abc import Iterator

from countersign.declare.errors import BadValue
from countersign.declare.fields.date import Date
from countersign.declare.fields.field import Field, FieldOptions
from countersign.declare.fields.moment import Moment
from countersign.declare.fields.number import LARGEST, Money, Number
from countersign.declare.fields.ref import Ref
from countersign.declare.fields.select import Select
from countersign.declare.fields.structure import Structure
from countersign.declare.fields.text import LongText, Text
from countersign.declare.model import Declared
from countersign.declare.rules.whole import BASE, Whole, of_field, of_model
from countersign.declare.where import CALLER, TODAY

_OPTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", re.ASCII)
_TOKEN = re.compile(r"([A-Za-z][A-Za-z0-9]*)[_-]{1,2}[0-9]+", re.ASCII)


def fields_present(whole: Whole) -> Iterator[str]:
    """A model has fields, all of them its own."""
    for module in whole.modules:
        for each in module.models:
            inherited = {name for kind in each.__mro__[1:] for name, value in vars(kind).items() if _is_field(value)}
            if inherited:
                names = ", ".join(sorted(inherited))
                text = f"fields are not inherited ({names}): declare them in the class itself, and derive it from Model"
                yield of_model(each.declared, text)
            elif not each.declared.fields:
                yield of_model(each.declared, "it has no field: declare one")


def _is_field(value: object) -> bool:
    return isinstance(value, Field)


def options_are_known(whole: Whole) -> Iterator[str]:
    """What is said of a field means something: a misspelt `personal` would hide nothing."""
    for model, field in whole.fields():
        for name in field.misspelt:
            known = ", ".join(FieldOptions.__annotations__)
            yield of_field(model, field.name, f"{name} means nothing: correct it to one of {known}")


def kinds_fit_module(whole: Whole) -> Iterator[str]:
    """Kinds that only the engine writes are for its own models."""
    for model, field in whole.fields():
        if isinstance(field, Moment | Structure) and whole.module_of[model.name].name != BASE:
            yield of_field(model, field.name, f"the kind {field.kind} is the engine's own: use Date, Text or LongText")


def unique_values_are_exact(whole: Whole) -> Iterator[str]:
    """The database keeps the values of a unique field apart as they are written, and not those that a format takes for
    the same."""
    for model, field in whole.fields():
        if isinstance(field, Text) and field.ignores_case and field.unique:
            text = f"unique values differ in case too, and those of the format {field.format} do not: use unique_with"
            yield of_field(model, field.name, text)


def money_named(whole: Whole) -> Iterator[str]:
    """The name of an amount says its unit."""
    for model, field in whole.fields():
        if isinstance(field, Money) and not field.name.endswith("_minor"):
            text = f"an amount is in minor units, and its name says so: call it {field.name}_minor"
            yield of_field(model, field.name, text)


def ranges_open(whole: Whole) -> Iterator[str]:
    """A range holds values, all of which the kind can hold."""
    for model, field in whole.fields():
        if isinstance(field, Number) and not -LARGEST <= field.least <= field.most <= LARGEST:
            text = f"least and most must be in order and lie between {-LARGEST} and {LARGEST}: correct them"
            yield of_field(model, field.name, text)
        if isinstance(field, Text) and not 1 <= field.longest <= field.most:
            text = f"longest must lie between 1 and {field.most} for a {field.kind}: correct it"
            yield of_field(model, field.name, text + ("" if isinstance(field, LongText) else ", or use LongText"))


def options_plain(whole: Whole) -> Iterator[str]:
    """A select has options, each once, all plain words; none of them looks like a placeholder token."""
    for model, field in whole.fields():
        if isinstance(field, Select):
            yield from (of_field(model, field.name, text) for text in _wrong_options(field, whole.labels))


def _wrong_options(field: Select, labels: frozenset[str]) -> Iterator[str]:
    if not field.options:
        yield 'a select needs options: name them, as in Select("new", "done")'
    for option in dict.fromkeys(field.options):
        if field.options.count(option) > 1:
            yield f"the option {option!r} is there twice: take one out"
        if not _OPTION.fullmatch(option):
            yield f"the option {option!r} must be letters, digits, _ and - (100 at most): rename it"
        token = _TOKEN.fullmatch(option)
        if token and token[1].upper() in labels:
            yield f"the option {option!r} looks like a placeholder token of {token[1].upper()}: rename it"


def long_text_not_indexed(whole: Whole) -> Iterator[str]:
    """Long text is neither unique nor indexed: it may be longer than an entry of an index."""
    for model, field in whole.fields():
        if isinstance(field, LongText) and field.index:
            yield of_field(model, field.name, "long text cannot be unique or indexed: use Text, or take it out")


def defaults_fit(whole: Whole) -> Iterator[str]:
    """A default is a value of its field."""
    for model, field in whole.fields():
        text = None if field.default is None else _wrong_default(field)
        if text:
            yield of_field(model, field.name, text)


def _wrong_default(field: Field) -> str | None:
    if field.computed is not None or field.sum_of is not None:
        return "a computed field has no default: take it out"
    if field.default is CALLER:
        is_person = isinstance(field, Ref) and field.target == "user"
        return None if is_person else 'CALLER is a person: only a Ref("user") can have it as default'
    if field.default is TODAY:
        return None if isinstance(field, Date) else "TODAY is a day: only a Date can have it as default"
    if isinstance(field, Ref):
        return "ids are not known before there are records: a Ref can have no default but CALLER"
    try:
        field.read(field.default)
    except BadValue as error:
        return f"the default {field.default!r} does not fit, it {error}: correct it"
    return None


def required_can_be_met(whole: Whole) -> Iterator[str]:
    """What a record cannot be without, somebody can give it."""
    for model, field in whole.fields():
        if not field.required:
            continue
        if field.computed is not None or field.sum_of is not None:
            text = "a computed field is empty where a source is, so that it cannot be required: take required out"
            yield of_field(model, field.name, text)
        elif field.readonly and field.default is None and _is_made_by_callers(model) and not _is_governed(model, field):
            text = "nobody could give it, since it is readonly: give it a default, or take required or readonly out"
            yield of_field(model, field.name, text)


def _is_made_by_callers(model: Declared) -> bool:
    return "create" in model.commands or "import" in model.commands


def _is_governed(model: Declared, field: Field) -> bool:
    return model.workflow is not None and model.workflow.field == field.name
