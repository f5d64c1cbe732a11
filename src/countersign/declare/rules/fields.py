"""Rules about fields: names, options, defaults, personal data, restrictions and refs."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import get_args

from countersign.declare.condition import AGENT, CALLER, TODAY
from countersign.declare.errors import BadValue
from countersign.declare.fields.field import LITERAL, Field, FieldOptions
from countersign.declare.fields.kinds import LARGEST, Date, Decimal, Moment, Money, Number, OnDelete, Ref, Select
from countersign.declare.fields.text import LongText, Text
from countersign.declare.model import Declared
from countersign.declare.rules.declarations import BASE, Declarations, member_error, model_error

_OPTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", re.ASCII)
_TOKEN = re.compile(r"([A-Za-z][A-Za-z0-9]*)[_-]{1,2}[0-9]+", re.ASCII)


def fields_present(declarations: Declarations) -> Iterator[str]:
    """Require that a model declares fields and does not inherit fields."""
    for module in declarations.modules:
        for model in module.models:
            inherited = {name for kind in model.__mro__[1:] for name, value in vars(kind).items() if _is_field(value)}
            if inherited:
                names = ", ".join(sorted(inherited))
                text = f"fields are not inherited ({names}): declare them in the class itself, and derive it from Model"
                yield model_error(model.declared, text)
            elif not model.declared.fields:
                yield model_error(model.declared, "it has no field: declare one")


def _is_field(value: object) -> bool:
    return isinstance(value, Field)


def options_are_known(declarations: Declarations) -> Iterator[str]:
    """Require that all options of a field are known. For example, a misspelled `personal` would leave the field
    unmasked."""
    for model, field in declarations.fields():
        for name in field.unknown_options:
            known = ", ".join(FieldOptions.__annotations__)
            yield member_error(model, field.name, f"{name} means nothing: correct it to one of {known}")


def kinds_fit_module(declarations: Declarations) -> Iterator[str]:
    """Require that only built-in models have fields of internal kinds, which only the engine writes."""
    for model, field in declarations.fields():
        is_read = model.table is not None and isinstance(field, Moment | Decimal)
        if field.is_internal and not is_read and declarations.module_of[model.name].name != BASE:
            text = f"the kind {field.kind} is the engine's own: use Date, Text or LongText"
            yield member_error(model, field.name, text)


def unique_values_are_exact(declarations: Declarations) -> Iterator[str]:
    """Require that a unique field has no format that ignores case.

    The unique index of the database compares the values exactly.
    """
    for model, field in declarations.fields():
        if isinstance(field, Text) and field.ignores_case and field.unique:
            text = f"unique compares case, but the format {field.format} ignores it: use unique_with"
            yield member_error(model, field.name, text)


def money_named(declarations: Declarations) -> Iterator[str]:
    """Require that the name of a money field ends with its unit, `_minor`."""
    for model, field in declarations.fields():
        if isinstance(field, Money) and not field.name.endswith("_minor"):
            text = f"an amount is in minor units, and its name says so: call it {field.name}_minor"
            yield member_error(model, field.name, text)


def ranges_not_empty(declarations: Declarations) -> Iterator[str]:
    """Require that the range of a number is not empty, and that ranges and lengths are within the limits of their
    kinds."""
    for model, field in declarations.fields():
        if isinstance(field, Number) and not -LARGEST <= field.min_value <= field.max_value <= LARGEST:
            text = f"min_value and max_value must be in order and lie between {-LARGEST} and {LARGEST}: correct them"
            yield member_error(model, field.name, text)
        if isinstance(field, Text) and not 1 <= field.max_length <= field.length_limit:
            text = f"max_length must lie between 1 and {field.length_limit} for a {field.kind}: correct it"
            yield member_error(model, field.name, text + ("" if isinstance(field, LongText) else ", or use LongText"))


def options_plain_words(declarations: Declarations) -> Iterator[str]:
    """Require that a select has distinct options, which are plain words and do not look like placeholder tokens."""
    for model, field in declarations.fields():
        if isinstance(field, Select):
            yield from (member_error(model, field.name, text) for text in _option_errors(field, declarations.labels))


def _option_errors(field: Select, labels: frozenset[str]) -> Iterator[str]:
    if not field.options:
        yield 'a select needs options: name them, as in Select("new", "done")'
    for option, count in Counter(field.options).items():
        if count > 1:
            yield f"the option {option!r} is there twice: take one out"
        if not _OPTION.fullmatch(option):
            yield f"the option {option!r} must be letters, digits, _ and - (100 at most): rename it"
        token = _TOKEN.fullmatch(option)
        if token and token[1].upper() in labels:
            yield f"the option {option!r} looks like a placeholder token of {token[1].upper()}: rename it"


def long_text_not_indexed(declarations: Declarations) -> Iterator[str]:
    """Require that long text is neither unique nor indexed, because a value may be too long for an index entry."""
    for model, field in declarations.fields():
        if isinstance(field, LongText) and field.index:
            yield member_error(model, field.name, "long text cannot be unique or indexed: use Text, or take it out")


def defaults_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that a default is a valid value of its field."""
    for model, field in declarations.fields():
        text = None if field.default is None else _default_error(field)
        if text:
            yield member_error(model, field.name, text)


def _default_error(field: Field) -> str | None:
    if field.computed is not None or field.sum_of is not None:
        return "a computed field has no default: take it out"
    if field.default in (AGENT, CALLER, TODAY):
        return _runtime_default_error(field)
    if isinstance(field, Ref):
        return "ids are not known before there are records: a Ref can have no default but CALLER"
    try:
        field.read(field.default)
    except BadValue as error:
        return f"the default {field.default!r} does not fit, it {error}: correct it"
    return None


def _runtime_default_error(field: Field) -> str | None:
    if field.default is CALLER:
        is_person = isinstance(field, Ref) and field.target == "user"
        return None if is_person else 'CALLER is a person: only a Ref("user") can have it as default'
    if field.default is AGENT:
        return None if isinstance(field, Text) else "AGENT is a label: only a Text can have it as default"
    return None if isinstance(field, Date) else "TODAY is a day: only a Date can have it as default"


def required_can_be_met(declarations: Declarations) -> Iterator[str]:
    """Require that callers or the engine can set a required field."""
    for model, field in declarations.fields():
        if not field.required:
            continue
        if field.computed is not None or field.sum_of is not None:
            text = "a computed field is empty where a source is, so that it cannot be required: take required out"
            yield member_error(model, field.name, text)
        elif field.readonly and field.default is None and _callers_can_add(model) and not _is_state_field(model, field):
            text = "it is readonly, so it can never be set: give it a default, or take required or readonly out"
            yield member_error(model, field.name, text)


def _callers_can_add(model: Declared) -> bool:
    return "create" in model.commands or "import" in model.commands


def _is_state_field(model: Declared, field: Field) -> bool:
    return model.workflow is not None and model.workflow.field == field.name


_LABEL = re.compile(r"[A-Z][A-Z0-9]{0,19}", re.ASCII)


def personal_labelled(declarations: Declarations) -> Iterator[str]:
    """Require that a personal field is text and that its label is valid in a token."""
    for model, field in declarations.fields():
        if field.personal is not None:
            yield from (member_error(model, field.name, text) for text in _label_errors(field, field.personal))


def is_label(text: str) -> bool:
    """Return whether the text can be the label of tokens."""
    return _LABEL.fullmatch(text) is not None and text != LITERAL


def _label_errors(field: Field, label: str) -> Iterator[str]:
    if not _LABEL.fullmatch(label):
        yield f"the label {label!r} must be capitals and digits, a capital first, 20 at most: write it like EMAIL"
    if label == LITERAL:
        yield f"the label {LITERAL} is reserved for text that only looks like a token: choose another"
    if not field.is_maskable:
        yield f"placeholder tokens stand for text, and this is a {field.kind}: use Text, or restrict it to roles"


def linked_is_personal(declarations: Declarations) -> Iterator[str]:
    """Require that a linked field is personal and is not free text."""
    for model, field in declarations.fields():
        if field.linked and not field.personal:
            text = "only personal fields are linked: give it a label, or take linked out"
            yield member_error(model, field.name, text)
        if field.linked and isinstance(field, LongText):
            text = f"free text is never linked: take another label than {field.personal}, or say linked=False"
            yield member_error(model, field.name, text)


def restricted_to_roles(declarations: Declarations) -> Iterator[str]:
    """Require that the roles in `restricted` exist."""
    for model, field in declarations.fields():
        for role in field.restricted:
            if role not in declarations.roles:
                text = f"it is restricted to the role {role!r}, which no module declares: correct it, or declare it"
                yield member_error(model, field.name, text)


def ref_targets_exist(declarations: Declarations) -> Iterator[str]:
    """Require that the target of a ref exists and belongs to the same module, `base`, or a module that it needs."""
    for model, field in declarations.fields():
        if not isinstance(field, Ref):
            continue
        module = declarations.module_of[model.name]
        if field.target not in declarations.models:
            text = f"there is no model {field.target!r}: correct it, or switch on the module that has it"
            yield member_error(model, field.name, text)
        elif not declarations.may_use_model(module, field.target):
            need = declarations.module_of[field.target].name
            text = f"{field.target} is of the module {need}, which {module.name} does not need: add {need!r} to needs"
            yield member_error(model, field.name, text)


def refs_fill_fields(declarations: Declarations) -> Iterator[str]:
    """Require that a ref fills fields that callers may set, from fields of the same kind in the referenced record."""
    for model, field in declarations.fields():
        if isinstance(field, Ref):
            for name, source in field.fills.items():
                text = _filling_error(model, declarations.models[field.target], name, source)
                if text:
                    yield member_error(model, field.name, f"it fills {name!r} from {source!r}: {text}")


def _filling_error(model: Declared, target: Declared, name: str, source: str) -> str | None:
    filled, other = model.fields.get(name), target.fields.get(source)
    if filled is None or other is None:
        return f"name a field of {model.name} and one of {target.name}"
    if filled.readonly or filled.kind != other.kind or isinstance(filled, Ref):
        return "both fields must have one kind other than ref, and this field must not be readonly"
    if other.personal or other.restricted:
        return "the source is personal or restricted, and a copy has other readers"
    return None


def on_delete_possible(declarations: Declarations) -> Iterator[str]:
    """Require that the `on_delete` of a ref can be carried out."""
    for model, field in declarations.fields():
        if not isinstance(field, Ref):
            continue
        if field.on_delete not in get_args(OnDelete):
            known = ", ".join(get_args(OnDelete))
            yield member_error(model, field.name, f"on_delete must be one of {known}: correct it")
        if field.on_delete == "clear" and field.required:
            text = "a required ref cannot become empty: say on_delete refuse or cascade, or take required out"
            yield member_error(model, field.name, text)
