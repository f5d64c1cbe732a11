"""Rules about refs: where they lead, and what becomes of them when that record goes."""

from collections.abc import Iterator
from typing import get_args

from countersign.declare.fields.ref import OnDelete, Ref
from countersign.declare.model import Declared
from countersign.declare.rules.whole import Whole, of_field


def refs_lead_somewhere(whole: Whole) -> Iterator[str]:
    """A ref's target exists, in a module that is surely there."""
    for model, field in whole.fields():
        if not isinstance(field, Ref):
            continue
        module = whole.module_of[model.name]
        if field.target not in whole.models:
            text = f"there is no model {field.target!r}: correct it, or switch on the module that has it"
            yield of_field(model, field.name, text)
        elif not whole.may_speak_of(module, field.target):
            need = whole.module_of[field.target].name
            text = f"{field.target} is of the module {need}, which {module.name} does not need: add {need!r} to needs"
            yield of_field(model, field.name, text)


def refs_fill_fields(whole: Whole) -> Iterator[str]:
    """What a ref fills are fields that callers may set, from fields of the other record that fit them."""
    for model, field in whole.fields():
        if isinstance(field, Ref):
            for name, source in field.fills.items():
                text = _wrong_filling(model, whole.models[field.target], name, source)
                if text:
                    yield of_field(model, field.name, f"it fills {name!r} from {source!r}: {text}")


def _wrong_filling(model: Declared, target: Declared, name: str, source: str) -> str | None:
    filled, other = model.fields.get(name), target.fields.get(source)
    if filled is None or other is None:
        return f"name a field of {model.name} and one of {target.name}"
    if filled.readonly or filled.kind != other.kind or isinstance(filled, Ref):
        return "name two fields of one kind, of which this is not readonly"
    if other.personal or other.restricted:
        return "a copy of what is personal or restricted has other readers"
    return None


def refs_let_go(whole: Whole) -> Iterator[str]:
    """What deleting the target does to a record can be done."""
    for model, field in whole.fields():
        if not isinstance(field, Ref):
            continue
        if field.on_delete not in get_args(OnDelete):
            known = ", ".join(get_args(OnDelete))
            yield of_field(model, field.name, f"on_delete must be one of {known}: correct it")
        if field.on_delete == "clear" and field.required:
            text = "a required ref cannot become empty: say on_delete refuse or cascade, or take required out"
            yield of_field(model, field.name, text)
