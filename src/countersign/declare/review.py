"""The columns of a module text: what agents see of each column, and the decisions of people about it, which are written
into the module text. If the comment on a column begins with `look`, no person has decided on the column yet."""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from countersign.declare.fields.field import LINKED
from countersign.declare.model import derived_model_name
from countersign.declare.text import (
    Comment,
    FieldText,
    ModelText,
    ModuleText,
    TextError,
    Value,
    commented_line,
    printable,
    read,
    source_line,
)

LOOK = "look: "
"""The prefix of the comment on a column that a person must decide on."""
FREE_TEXT = "TEXT"
"""The label of text that no person has reviewed."""
LEFT_OUT = ": left out: "
"""Separates the name of a column from the reason, in the comment on a left-out column."""
_DECIDED = "decided"
"""The prefix of the comment on a field that a person has decided on."""
_HIDDEN = "hidden"
"""The prefix of the reason in the comment on a column that a person has hidden."""
_WAS = "; it was "
"""Separates the reason from the former declaration, in the comment on a left-out column."""
_NOTE = re.compile(r"decided(?: by (?P<by>.+?) on (?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2}))?(?:: (?P<reason>.*))?")
_TEXTS = ("Text", "LongText")


@dataclass(frozen=True, slots=True)
class TokenLabel:
    """The decision that agents see tokens with this label."""

    name: str


Decision: TypeAlias = Literal["clear", "hide"] | TokenLabel
"""A decision on what agents see of a column: its values, nothing, or tokens with a label."""


Choice: TypeAlias = Literal["personal", "clear", "hidden"]
"""The kind of a decision, without the label of tokens."""


@dataclass(frozen=True, slots=True)
class DecisionNote:
    """The person who has decided on a column, the day, and the reason. They are empty if the module text does not
    contain them."""

    by: str = ""
    day: str = ""
    reason: str = ""

    @property
    def text(self) -> str:
        """Return the note in the form that the comment on the column contains."""
        author = f" by {_plain(self.by)} on {self.day}" if self.by and self.day else ""
        return f"{_DECIDED}{author}{f': {_plain(self.reason)}' if self.reason else ''}"


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """A column of a table, as described by the module text.

    name         the name of its field, or of the column if it is left out; in quotes if it is left out and a field has
                 the same name
    label        the label of its tokens, or an empty text
    reason       the reason for what agents see of the column, if the module text states it
    is_left_out  the column has no field, so no caller sees it
    is_text      the values are text, so tokens can replace them
    state        whether a person has decided on the column, or `connect` has guessed
    note         the person who has decided, the day and the reason
    field        its declaration; for a column that a person has hidden, the former declaration
    written      the line of the column and the table of its model; they identify what a decision refers to
    """

    model: str
    name: str
    label: str
    reason: str
    is_left_out: bool = False
    is_text: bool = True
    state: Literal["undecided", "guessed", "decided"] = "undecided"
    note: DecisionNote = DecisionNote()
    field: FieldText | None = None
    written: tuple[FieldText | Comment, object] | None = None

    @property
    def place(self) -> str:
        """Return the model and the field, or the model and the column if the column is left out."""
        return f"{self.model}.{self.name}"

    @property
    def shown(self) -> str:
        """Describe what agents see of the column."""
        if self.is_left_out:
            return "nothing"
        return f"{self.label}_…" if self.label else "its values"

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Return the possible decisions. A ref has none, because it shows no value of the table. A left-out column
        without a former declaration can only be hidden, because a declaration requires its type."""
        if self.field is None:
            return ("hidden",) if self.state == "undecided" else ()
        if self.field.call.word == "Ref":
            return ()
        return ("personal", "clear", "hidden") if self.is_text else ("clear", "hidden")

    @property
    def revision(self) -> str:
        """Return a hash that changes whenever the line of the column or the table of its model changes."""
        return hashlib.sha256(repr(self.written).encode()).hexdigest()[:16]


def mapped_columns(module: ModuleText) -> list[MappedColumn]:
    """Return all columns that the models of the module text name, in the order of the text."""
    return [column for model in module.models for column in _of_model(model)]


def undecided_columns(module: ModuleText) -> list[MappedColumn]:
    """Return the columns that a person must decide on, in the order of the text."""
    return [each for each in mapped_columns(module) if each.state == "undecided"]


def model_name(model: ModelText) -> str:
    """Return the name of the model that a class declares."""
    return str(dict(model.options).get("name") or derived_model_name(model.class_name))


def _of_model(model: ModelText) -> Iterator[MappedColumn]:
    fields = _field_names(model)
    for each in model.body:
        column = _of_item(model_name(model), each, fields)
        if column is not None:
            yield replace(column, written=(each, dict(model.options).get("table")))


def _field_names(model: ModelText) -> frozenset[str]:
    return frozenset(each.name for each in model.body if isinstance(each, FieldText))


def _of_item(model: str, item: FieldText | Comment, fields: Collection[str]) -> MappedColumn | None:
    """Return the column that the item of a class describes, or None if the item does not describe a column."""
    if isinstance(item, Comment):
        return _left_out(model, item.text, fields) if LEFT_OUT in item.text else None
    if item.call.word == "Workflow":
        return None
    label = str(dict(item.call.options).get("personal") or "")
    column = MappedColumn(model, item.name, label, item.comment, is_text=_is_text(item), field=item)
    if item.comment.startswith(LOOK):
        return replace(column, reason=item.comment.removeprefix(LOOK))
    note = _note_of(item.comment)
    return replace(column, state="guessed") if note is None else replace(column, reason="", state="decided", note=note)


def _left_out(model: str, text: str, fields: Collection[str]) -> MappedColumn:
    column, _, reason = text.partition(LEFT_OUT)
    name = f'"{column}"' if column in fields else column
    if reason.startswith(LOOK):
        return MappedColumn(model, name, "", reason.removeprefix(LOOK), is_left_out=True, is_text=False)
    why, _, line = reason.partition(_WAS)
    column = MappedColumn(model, name, "", why, is_left_out=True, is_text=False, state="guessed")
    if not re.match(rf"{_HIDDEN}(?=$|[:,])", why):
        return column
    detail = why.removeprefix(_HIDDEN)
    note = _note_of(detail.removeprefix(", "))
    column = replace(column, reason=detail.removeprefix(": "), state="decided")
    if note is not None:
        column = replace(column, reason="", note=note)
    field = _former_field(line)
    if field is None:
        return column
    label = str(dict(field.call.options).get("personal") or "")
    name = f'"{field.name}"' if field.name in fields else field.name
    return replace(column, name=name, label=label, is_text=_is_text(field), field=field)


def _is_text(field: FieldText) -> bool:
    return field.call.word in _TEXTS


def _note_of(text: str) -> DecisionNote | None:
    match = _NOTE.fullmatch(text)
    return None if match is None else DecisionNote(**{name: given or "" for name, given in match.groupdict().items()})


def _plain(text: str) -> str:
    """Return a person's text on one line, without the words that separate the parts of a comment."""
    return printable(" ".join(text.split())).replace(LEFT_OUT, " left out ").replace(_WAS, ", it was ")


@lru_cache(maxsize=10_000)
def _former_field(line: str) -> FieldText | None:
    """Return the declaration in the comment on a hidden column, or None if it is incomplete."""
    if not line:
        return None
    try:
        former_module = read(f'class Former(Model):\n    {line}\n\nmodule = Module("former", version="1")\n')
    except TextError:
        return None
    fields = [each for model in former_module.models for each in model.body if isinstance(each, FieldText)]
    # A character in the name of the column was replaced when the comment was written. In the comment of the field, this
    # does not matter.
    return fields[0] if len(fields) == 1 and "\ufffd" not in source_line(fields[0]) else None


def decided(
    module: ModuleText, decisions: Mapping[str, Decision], note: DecisionNote | None = None
) -> ModuleText:
    """Apply the decisions, which are keyed by `MappedColumn.place`, to the module text. A left-out column without a
    former declaration can only be hidden, because a declaration requires its type."""
    given_note = note or DecisionNote()
    body = tuple(
        _decided_model(each, decisions, given_note) if isinstance(each, ModelText) else each for each in module.body
    )
    new_module = replace(module, body=body)
    return replace(new_module, summary=_with_count(module.summary, len(undecided_columns(new_module))))


def _with_count(summary: str, count: int) -> str:
    """Replace the number of columns to review in the summary of a draft."""
    text = f"{count} {'column' if count == 1 else 'columns'} to look at."
    return re.sub(r"\b[0-9]+ columns? to look at\.$", text, summary)


def _decided_model(model: ModelText, decisions: Mapping[str, Decision], note: DecisionNote) -> ModelText:
    columns = {column.written[0]: column for column in _of_model(model) if column.written is not None}
    body: list[FieldText | Comment] = []
    for each in model.body:
        column = columns.get(each)
        decision = None if column is None else decisions.get(column.place)
        body.append(each if column is None or decision is None else _decided_item(each, column, decision, note))
    return replace(model, body=tuple(body))


def _decided_item(
    item: FieldText | Comment, column: MappedColumn, decision: Decision, note: DecisionNote
) -> FieldText | Comment:
    if column.field is None:
        is_possible = decision == "hide" and column.state == "undecided"
        return _hidden(item, column.reason, note) if is_possible else item
    return _hidden_field(column.field, note) if decision == "hide" else _shown_field(column.field, decision, note)


def _hidden(item: FieldText | Comment, reason: str, note: DecisionNote) -> FieldText | Comment:
    """Return the comment on a left-out column after the decision to hide it."""
    if isinstance(item, FieldText):
        return item
    name, _, _ = item.text.partition(LEFT_OUT)
    detail = f"{_HIDDEN}: {reason}" if note == DecisionNote() else _hidden_reason(note)
    return Comment(f"{name}{LEFT_OUT}{detail}")


def _hidden_field(field: FieldText, note: DecisionNote) -> Comment:
    name = dict(field.call.options).get("column") or field.name
    return Comment(printable(f"{name}{LEFT_OUT}{_hidden_reason(note)}{_WAS}{commented_line(field)}"))


def _shown_field(field: FieldText, decision: Literal["clear"] | TokenLabel, note: DecisionNote) -> FieldText:
    kept = [(name, value) for name, value in field.call.options if name not in ("personal", "linked")]
    options = (*kept, *_label_options(field, decision.name)) if isinstance(decision, TokenLabel) else tuple(kept)
    return replace(field, call=replace(field.call, options=options), comment=note.text)


def _hidden_reason(note: DecisionNote) -> str:
    return _HIDDEN if note == DecisionNote() else f"{_HIDDEN}, {note.text}"


def _label_options(item: FieldText, label: str) -> tuple[tuple[str, Value], ...]:
    """Return the options of a field with the new label. If tokens of the field were not linked, they stay unlinked."""
    options = label_options(item.call.word, label)
    is_unlinked = dict(item.call.options).get("linked") is False
    return (("personal", label), ("linked", False)) if is_unlinked else options


def label_options(word: str, label: str) -> tuple[tuple[str, Value], ...]:
    """Return the options for the label. Long text is never linked."""
    is_linked = word == "LongText" and label in LINKED
    return ("personal", label), *((("linked", False),) if is_linked else ())
