"""The columns of a module text that no person has decided on yet, those whose comment begins with `look`, and the
decisions on them, each of which is a change of the module text."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from countersign.connect.draft import LOOK
from countersign.connect.names import derived_model_name
from countersign.declare.fields.field import LINKED
from countersign.declare.text import Comment, FieldText, ModelText, ModuleText, Value, commented_line, printable

LEFT_OUT = ": left out: "
"""Divides the name of a column and the reason, in the comment on a column that is left out."""


@dataclass(frozen=True, slots=True)
class TokenLabel:
    """The decision that agents see tokens with this label."""

    name: str


Decision: TypeAlias = Literal["clear", "hide"] | TokenLabel
"""What agents see of a column: its values, nothing, or tokens with a label."""


@dataclass(frozen=True, slots=True)
class UndecidedColumn:
    """A column to look at. `label` is the label of its tokens; a column that is left out has none, nor has one whose
    values agents read. `is_left_out` says which, and `is_text` whether tokens can stand for its values. The name of a
    column that is left out is in quotes if a field has the same name. `written` is its line and the table of its model:
    a decision is about these alone."""

    model: str
    name: str
    label: str
    reason: str
    is_left_out: bool = False
    is_text: bool = True
    written: tuple[FieldText | Comment, object] | None = None

    @property
    def place(self) -> str:
        """Return the model and the field, or the model and the column if the column is left out."""
        return f"{self.model}.{self.name}"

    @property
    def shown(self) -> str:
        """Describe what agents see of the column."""
        if self.label:
            return f"{self.label}_…"
        return "nothing" if self.is_left_out else "its values"


def undecided_columns(module: ModuleText) -> list[UndecidedColumn]:
    """Return the columns to look at, in the order of the text."""
    return [column for model in module.models for column in _of_model(model)]


def model_name(model: ModelText) -> str:
    """Return the name of the model of a class."""
    return str(dict(model.options).get("name") or derived_model_name(model.class_name))


def _of_model(model: ModelText) -> Iterator[UndecidedColumn]:
    fields = _field_names(model)
    for each in model.body:
        for column in _of_item(model_name(model), each, fields):
            yield replace(column, written=(each, dict(model.options).get("table")))


def _field_names(model: ModelText) -> frozenset[str]:
    return frozenset(each.name for each in model.body if isinstance(each, FieldText))


def _of_item(model: str, item: FieldText | Comment, fields: Collection[str]) -> Iterator[UndecidedColumn]:
    if isinstance(item, FieldText) and item.comment.startswith(LOOK):
        label = dict(item.call.options).get("personal")
        is_text = item.call.word in ("Text", "LongText")
        yield UndecidedColumn(model, item.name, str(label or ""), item.comment.removeprefix(LOOK), is_text=is_text)
    elif isinstance(item, Comment) and f"{LEFT_OUT}{LOOK}" in item.text:
        column, _, reason = item.text.partition(f"{LEFT_OUT}{LOOK}")
        name = f'"{column}"' if column in fields else column
        yield UndecidedColumn(model, name, "", reason, is_left_out=True, is_text=False)


def decided(module: ModuleText, decisions: Mapping[str, Decision]) -> ModuleText:
    """Return the module text after these decisions, each on the place of an undecided column. A column that is left out
    can only be hidden: its declaration needs its type."""
    body = tuple(_decided_model(each, decisions) if isinstance(each, ModelText) else each for each in module.body)
    found = replace(module, body=body)
    return replace(found, summary=_with_count(module.summary, len(undecided_columns(found))))


def _with_count(summary: str, count: int) -> str:
    """Return the summary of a draft with another number of columns to look at."""
    text = f"{count} {'column' if count == 1 else 'columns'} to look at."
    return re.sub(r"\b[0-9]+ columns? to look at\.$", text, summary)


def _decided_model(model: ModelText, decisions: Mapping[str, Decision]) -> ModelText:
    name, fields = model_name(model), _field_names(model)
    body: list[FieldText | Comment] = []
    for each in model.body:
        column = next(_of_item(name, each, fields), None)
        decision = None if column is None else decisions.get(column.place)
        body.append(each if decision is None else _decided_item(each, decision))
    return replace(model, body=tuple(body))


def _decided_item(item: FieldText | Comment, decision: Decision) -> FieldText | Comment:
    if isinstance(item, Comment):
        return Comment(item.text.replace(f"{LEFT_OUT}{LOOK}", f"{LEFT_OUT}hidden: ", 1)) if decision == "hide" else item
    if decision == "hide":
        column = dict(item.call.options).get("column") or item.name
        return Comment(printable(f"{column}{LEFT_OUT}hidden; it was {commented_line(item)}"))
    kept = [(name, value) for name, value in item.call.options if name not in ("personal", "linked")]
    options = (*kept, *_label_options(item, decision.name)) if isinstance(decision, TokenLabel) else tuple(kept)
    return replace(item, call=replace(item.call, options=options), comment="")


def _label_options(item: FieldText, label: str) -> tuple[tuple[str, Value], ...]:
    """Return the options for another label of a field. Tokens that a person has not linked stay so."""
    options = label_options(item.call.word, label)
    is_unlinked = dict(item.call.options).get("linked") is False
    return (("personal", label), ("linked", False)) if is_unlinked else options


def label_options(word: str, label: str) -> tuple[tuple[str, Value], ...]:
    """Return the options for the label. Long text is never linked."""
    is_linked = word == "LongText" and label in LINKED
    return ("personal", label), *((("linked", False),) if is_linked else ())
