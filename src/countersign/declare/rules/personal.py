"""Rules about who may see a field: personal data with its label, and fields restricted to roles."""

import re
from collections.abc import Iterator

from countersign.declare.fields.field import LITERAL, Field
from countersign.declare.fields.text import LongText, Text
from countersign.declare.rules.whole import Whole, of_field

_LABEL = re.compile(r"[A-Z][A-Z0-9]{0,19}", re.ASCII)


def personal_labelled(whole: Whole) -> Iterator[str]:
    """A personal field is text, and its label can stand before a token's number."""
    for model, field in whole.fields():
        if field.personal is not None:
            yield from (of_field(model, field.name, text) for text in _wrong_label(field, field.personal))


def _wrong_label(field: Field, label: str) -> Iterator[str]:
    if not _LABEL.fullmatch(label):
        yield f"the label {label!r} must be capitals and digits, a capital first, 20 at most: write it like EMAIL"
    if label == LITERAL:
        yield f"the label {LITERAL} stands for text that only looks like a token: choose another"
    if not isinstance(field, Text):
        yield f"placeholder tokens stand for text, and this is a {field.kind}: use Text, or restrict it to roles"


def linked_is_personal(whole: Whole) -> Iterator[str]:
    """Only tokens can be linked, and those of free text are not."""
    for model, field in whole.fields():
        if field.linked and not field.personal:
            yield of_field(model, field.name, "only personal fields are linked: give it a label, or take linked out")
        if field.linked and isinstance(field, LongText):
            text = f"free text is never linked: take another label than {field.personal}, or say linked=False"
            yield of_field(model, field.name, text)


def restricted_to_roles(whole: Whole) -> Iterator[str]:
    """The roles that a field is restricted to exist."""
    for model, field in whole.fields():
        for role in field.restricted:
            if role not in whole.roles:
                text = f"it is restricted to the role {role!r}, which no module declares: correct it, or declare it"
                yield of_field(model, field.name, text)
