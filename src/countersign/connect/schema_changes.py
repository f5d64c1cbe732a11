"""Finds what has changed in a database since a module text was written, and applies the changes to the module text.
Edits by people are kept: a field keeps its name and its label, and a field whose column was removed becomes a
comment."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from countersign.connect import draft, fit, names, personal_columns, table_history
from countersign.connect.model_history import (
    GONE,
    History,
    LeftOut,
    declared_columns,
    history_of,
    is_about,
    new_columns,
    numbers_of,
    present_names,
)
from countersign.connect.schema import (
    Database,
    Relation,
    RelationId,
    Samples,
    TableColumn,
    UniqueKey,
    relation_id,
)
from countersign.declare import Declared, Field, review
from countersign.declare.review import LEFT_OUT, model_name
from countersign.declare.table import Table
from countersign.declare.text import (
    Call,
    Comment,
    Dictionary,
    FieldText,
    ModelText,
    ModuleText,
    Value,
    commented_line,
    printable,
    source_line,
)

_KEPT = (
    *("label", "label_de", "help", "required", "unique", "unique_with", "shared_by", "index", "restricted"),
    *("needs_approval", "readonly"),
)
"""The options that every kind of field has. A field keeps them when its kind changes."""
_UNDECIDED = f"{review.LOOK}no one has looked at its column"
_TEXTS = ("Text", "LongText")
_ASKED = (*_TEXTS, "Select", "Bool")
"""The declaration words of fields in clear that a person must confirm when their column was renamed."""
_NO_VALUES = ("Ref", "Workflow")
"""The declaration words of fields that do not show values of the table."""


@dataclass(frozen=True, slots=True)
class ModelChange:
    """The changes of one model's table.

    lines      the changes in words, each with a sign: `+` new, `-` removed, `~` renamed, `!` must be reviewed
    changed    the class with the changes, or None if the changes cannot be applied
    is_proven  the table is the reviewed table with these changes, neither the key nor the kind of a field changes, and
               agents read no new column in clear; otherwise a person must review the fields
    clear      the fields of the changed class that agents read in clear, each with the name of its column if they
               differ
    """

    model: str
    lines: tuple[str, ...]
    changed: ModelText | None
    is_proven: bool
    clear: tuple[str, ...]


def histories_of(module: ModuleText, models: Mapping[str, Declared], database: Database) -> dict[str, History]:
    """Return the histories of the tables of these models. Guessing former definitions is slow, so the histories are
    computed once and passed to the other functions."""
    return {
        name: history_of(each, models[name], database) for each in module.models if (name := model_name(each)) in models
    }


def changes(
    module: ModuleText,
    models: Mapping[str, Declared],
    database: Database,
    samples: Samples,
    histories: Mapping[str, History] | None = None,
) -> list[ModelChange]:
    """Return the changes of the tables of the module text's models. `samples` are values of new columns, which help to
    guess whether the columns are personal. If `histories` is missing, they are computed."""
    texts = {name: each for each in module.models if (name := model_name(each)) in models}
    if histories is None:
        histories = histories_of(module, models, database)
    fresh = _fresh_models(models, database, samples, histories)
    found = [
        _Comparison(each, models[name], database, fresh, histories[name]).change() for name, each in texts.items()
    ]
    return [each for each in found if each.lines]


def new_tables(module: ModuleText, models: Mapping[str, Declared], database: Database) -> list[str]:
    """Return the tables with a key that neither a model nor a comment of the module text names."""
    known = {relation.id for relation in _relations(models, database).values()}
    left_out = LeftOut(module.body)
    return [
        each.place for each in draft.adopted(database) if each.id not in known and not left_out.contains(each.place)
    ]


def relations_with_new_columns(
    module: ModuleText, models: Mapping[str, Declared], database: Database, histories: Mapping[str, History]
) -> list[Relation]:
    """Return the tables of the models to which columns were added after the module text was written."""
    relations = _relations(models, database)
    return [
        relations[name]
        for each in module.models
        if (name := model_name(each)) in relations
        and new_columns(each, models[name], relations[name], histories[name])
    ]


def accepted(module: ModuleText, changes: Collection[ModelChange]) -> ModuleText:
    """Apply the changes to the module text, and update its number of columns to review."""
    changed = {each.changed.class_name: each.changed for each in changes if each.changed is not None}
    body = tuple(changed.get(each.class_name, each) if isinstance(each, ModelText) else each for each in module.body)
    return review.decided(replace(module, body=body), {}) if changed else module


def _relations(models: Mapping[str, Declared], database: Database) -> dict[str, Relation]:
    found = {name: database.relation(each.table) for name, each in models.items() if each.table is not None}
    return {name: each for name, each in found.items() if each is not None}


def _fresh_models(
    models: Mapping[str, Declared], database: Database, samples: Samples, histories: Mapping[str, History]
) -> dict[RelationId, ModelText]:
    """Draft the models of the same tables, with the same keys, from the current schema. The refs name the models of the
    module text."""
    relations = _relations(models, database)
    if not relations:
        return {}
    tables = {each.place for each in relations.values()}
    keys = _present_keys(relations, histories)
    drafted = draft.draft(database, samples, name="module", origin="", tables=tables, keys=keys).text.models
    by_relation = {relation_id(_place(each), default_schema=""): each for each in drafted}
    given_names = {relation.id: name for name, relation in reversed(relations.items())}
    targets = {model_name(each): given_names.get(id_, "") for id_, each in by_relation.items()}
    return {
        id_: replace(each, body=tuple(_with_target(item, targets) for item in each.body))
        for id_, each in by_relation.items()
    }


def _present_keys(
    relations: Mapping[str, Relation], histories: Mapping[str, History]
) -> dict[RelationId, UniqueKey]:
    """Return the keys whose columns all exist."""
    found: dict[RelationId, UniqueKey] = {}
    for name, relation in relations.items():
        key = histories[name].key if name in histories else ()
        if key and set(key) <= {each.name for each in relation.columns}:
            found[relation.id] = UniqueKey(key)
    return found


def _place(model: ModelText) -> str:
    (place,) = _table_call(model).arguments
    return str(place)


def _with_target(item: FieldText | Comment, given_names: Mapping[str, str]) -> FieldText | Comment:
    """Replace the target of the ref by the name that the module text uses for this model."""
    if isinstance(item, Comment) or item.call.word != "Ref":
        return item
    target = str(next(iter(item.call.arguments)))
    return replace(item, call=replace(item.call, arguments=(given_names.get(target, target),)))


def _table_call(model: ModelText) -> Call:
    call = dict(model.options)["table"]
    if not isinstance(call, Call):
        raise TypeError(f"{model.class_name} has no Table(…)")
    return call


class _Comparison:
    """Compares one model with its table, and collects the changes."""

    def __init__(
        self,
        text: ModelText,
        model: Declared,
        database: Database,
        fresh: Mapping[RelationId, ModelText],
        history: History,
    ) -> None:
        self._text = text
        self._model = model
        self._database = database
        self._table = model.table or Table("", "")
        self._relation = database.relation(self._table)
        self._fresh = None if self._relation is None else fresh.get(self._relation.id)
        self._history = history
        self._numbers: Mapping[str, int] = {} if self._relation is None else numbers_of(self._relation)
        self._lines: list[str] = []
        self._is_proven = history.is_proven

    def change(self) -> ModelChange:
        """Compare the model with its table."""
        relation = self._relation
        if relation is None:
            self._lines.append(f"! its table {self._table.relation} is gone, or may no longer be read")
            return self._result(None)
        if relation.definition is None and self._table.fingerprint:
            self._lines.append(f"! {relation.place} cannot be compared now, because a table is locked: try again later")
            return self._result(None)
        self._explain(relation)
        options = self._options(relation)
        if options is None:
            return self._result(None)
        body = [self._item(each, relation) for each in self._text.body]
        if self._table.fingerprint:
            body += self._added(relation, {each.name for each in body if isinstance(each, FieldText)})
        changed = replace(self._text, options=options, body=tuple(body))
        return self._result(changed if changed != self._text else None)

    def _result(self, changed: ModelText | None) -> ModelChange:
        fields = [each for each in (changed or self._text).body if isinstance(each, FieldText)]
        clear = [each for each in fields if each.call.word not in _NO_VALUES and not _is_personal(each)]
        lines = tuple(map(printable, self._lines))
        return ModelChange(self._model.name, lines, changed, self._is_proven, tuple(map(_with_column_name, clear)))

    def _explain(self, relation: Relation) -> None:
        """Add lines about how the table differs from the reviewed table."""
        history = self._history
        for old, new in history.renamed.items():
            is_called = "is now called" if history.is_proven else "is gone, or may now be called"
            self._lines.append(f"~ the column {old} {is_called} {new}")
        if history.is_proven:
            self._lines += [f"~ {history.note}"] if history.note else []
        elif history.note:
            self._lines.append(f"! {history.note}, so the model is hidden")
        else:
            self._explain_unknown(relation)

    def _explain_unknown(self, relation: Relation) -> None:
        """Add lines that say that the change of the table is unknown, and describe the current table."""
        self._lines.append(
            f"! {relation.place} is no longer the table that was reviewed, and columns may have exchanged their "
            "names, so the model is hidden"
        )
        facts = "" if relation.definition is None else table_history.facts(relation.definition)
        self._lines += [f"! {facts}"] if facts else []
        left_out = LeftOut(self._text.body)
        named = declared_columns(self._model)
        others = [each for each in relation.columns if each.name not in named and not left_out.contains(each.name)]
        if unnamed := [f"{each.name} {each.type_name}" for each in others if not self._is_new(each.name)]:
            self._lines.append(f"! the file does not name {', '.join(unnamed)}: agents do not see it")

    def _is_new(self, column: str) -> bool:
        """Return whether the fingerprint does not cover the column."""
        is_later = self._numbers.get(column, 0) > self._history.last
        return bool(self._table.fingerprint) and (is_later or column in self._history.recreated)

    def _item(self, item: FieldText | Comment, relation: Relation) -> FieldText | Comment:
        """Return the updated field or comment."""
        if isinstance(item, Comment):
            return self._comment(item, relation)
        field = self._model.fields.get(item.name)
        return item if field is None else self._field(item, field, relation)

    def _field(self, item: FieldText, field: Field, relation: Relation) -> FieldText | Comment:
        columns = tuple(self._history.renamed.get(each, each) for each in field.table_columns)
        moved = item if columns == field.table_columns else _with_columns(item, columns)
        present = {column.name for column in relation.columns}
        if gone := [each for each in columns if each not in present]:
            return self._without_columns(item, moved, gone, relation)
        if any(map(self._is_new, columns)):
            self._explain_new(item, columns)
        if field.kind == "ref" or not columns:
            return moved
        return self._of_column(item, moved, field, relation.column(columns[0]))

    def _of_column(self, item: FieldText, moved: FieldText, field: Field, column: TableColumn) -> FieldText | Comment:
        """Return the updated field for a column that exists. `moved` is the field with the current name of its
        column."""
        if not self._needs_look(item, moved, column):
            if moved != item and item.call.word in _ASKED and not _is_personal(item):
                self._is_proven = False
                self._lines.append(f"! agents read {column.name} in clear: look whether it has the same content")
            return self._of_type(moved, field, column)
        self._is_proven = False
        masked = self._masked(moved, column)
        if isinstance(masked, Comment) or masked.call.word != item.call.word:
            return masked
        return self._of_type(masked, field, column)

    def _without_columns(
        self, item: FieldText, moved: FieldText, gone: Sequence[str], relation: Relation
    ) -> FieldText | Comment:
        """Return the updated field, or a comment in its place, if columns of the field were removed or may no longer be
        read."""
        names_gone = ", ".join(gone)
        if not set(relation.unreadable).isdisjoint(gone):
            self._lines.append(f"! the role may no longer read {names_gone}: grant SELECT")
            return moved
        self._lines.append(f"- {names_gone}: {self._gone()}: {source_line(item)}")
        return Comment(printable(f"{names_gone}{LEFT_OUT}{GONE}; it was {commented_line(item)}"))

    def _gone(self) -> str:
        """Describe what is known about a column whose name no longer exists in the table."""
        return GONE if self._is_explained() else "no column has this name now, and its column may have another name"

    def _is_explained(self) -> bool:
        """Return whether the change is known, which implies that all other columns are unchanged."""
        return self._history.is_same or self._history.is_proven or bool(self._history.note)

    def _needs_look(self, item: FieldText, moved: FieldText, column: TableColumn) -> bool:
        """Return whether the column may not be the column that a person has reviewed, or has a new name that suggests
        other content."""
        if self._history.is_proven:
            return moved != item and self._has_a_personal_name(moved, column)
        if moved != item or self._is_new(column.name):
            return True
        return not self._is_explained() and not _is_personal(item)

    def _explain_new(self, item: FieldText, columns: Collection[str]) -> None:
        """Add a line about a field that reads a column that the fingerprint does not cover. A person may have added the
        field for this column, or the column has the same name as a removed column."""
        new = ", ".join(filter(self._is_new, columns))
        if self._history.is_proven:
            self._lines.append(f"! {new} is newer than the fingerprint, so the model is hidden: {source_line(item)}")
            self._is_proven = self._is_proven and _is_personal(item)
        else:
            self._lines.append(f"! {new} is a new column with this name: {source_line(item)}")

    def _has_a_personal_name(self, item: FieldText, column: TableColumn) -> bool:
        """Return whether the new name of a renamed column suggests that it is secret, or that it is personal although
        agents read it in clear. The fingerprint proves that it is the same column, but not that its content is
        unchanged."""
        drafted = self._drafted(column.name)
        if isinstance(drafted, Comment):
            is_secret = drafted.text == printable(f"{column.name}{LEFT_OUT}secret")
            return is_secret or (not _is_personal(item) and self._has_another_verdict(column))
        is_undecided = drafted.comment.startswith(review.LOOK)
        return not _is_personal(item) and _is_personal(drafted) and not is_undecided

    def _has_another_verdict(self, column: TableColumn) -> bool:
        """Return whether the new name of the column must be reviewed, for a reason that does not apply to its former
        name."""
        former = next((old for old, new in self._history.renamed.items() if new == column.name), column.name)
        if self._relation is None:
            return False
        facts = personal_columns.facts_of_tables(self._database.relations)[self._relation.id]
        now, before = (
            personal_columns.guess(replace(column, name=name), (), facts) for name in (column.name, former)
        )
        return now.verdict != "clear" and now != before

    def _masked(self, item: FieldText, column: TableColumn) -> FieldText | Comment:
        """Return the field, masked at least as much as in a new draft, because its column may not be the reviewed
        column."""
        if _is_personal(item):
            return _undecided(item)
        drafted = self._drafted(column.name)
        if isinstance(drafted, Comment):
            return Comment(printable(f"{drafted.text}; it was {commented_line(item)}"))
        if not _is_personal(drafted):
            return item if self._history.is_proven else _undecided(item)
        if item.call.word not in _TEXTS:
            return self._redrafted(item, drafted, column)
        label = str(dict(drafted.call.options)["personal"])
        options = (*item.call.options, *review.label_options(item.call.word, label))
        return _undecided(replace(item, call=replace(item.call, options=options)))

    def _comment(self, comment: Comment, relation: Relation) -> Comment:
        """Return the comment on a left-out column with the current name of the column, or with a remark that the column
        was removed."""
        name, is_left_out, reason = comment.text.partition(LEFT_OUT)
        for old, new in self._history.renamed.items():
            if is_about(old, [comment.text]):
                return Comment(printable(f"{new}{LEFT_OUT}{comment.text.removeprefix(printable(old) + LEFT_OUT)}"))
        is_present = name in present_names(relation)
        if self._history.is_same or not is_left_out or reason.startswith(GONE) or is_present:
            return comment
        self._lines.append(f"- {name}: {self._gone()}; it was left out")
        return Comment(f"{name}{LEFT_OUT}{GONE}; it was left out: {reason}")

    def _of_type(self, item: FieldText, field: Field, column: TableColumn) -> FieldText | Comment:
        """Return the field unchanged, or redrafted if the table is not the reviewed table and the kind no longer fits
        the type of the column. In the reviewed table, a person has chosen the kind for the type."""
        is_fitting = fit.column_fits(field, column, is_sqlite=self._database.is_sqlite)
        if is_fitting or self._history.is_same or self._history.is_proven:
            return self._with_labels(item, column)
        self._lines.append(f"! {column.name} is now {column.type_name}, the file says {item.call.word}")
        self._is_proven = False
        drafted = self._drafted(column.name)
        if isinstance(drafted, FieldText) and _is_personal(item) and not _is_personal(drafted):
            drafted = Comment(printable(f"{column.name}{LEFT_OUT}{review.LOOK}its type has changed"))
        if isinstance(drafted, Comment):
            return Comment(printable(f"{drafted.text}; it was {commented_line(item)}"))
        return self._redrafted(item, drafted, column)

    def _redrafted(self, item: FieldText, drafted: FieldText, column: TableColumn) -> FieldText:
        """Declare the field as in a new draft, but keep its name, labels and restrictions, and its former declaration
        as a comment."""
        kept = tuple((name, value) for name, value in item.call.options if name in _KEPT)
        others = {"column", "label", "label_de", *(name for name, _ in kept)}
        options = tuple((name, value) for name, value in drafted.call.options if name not in others)
        call = replace(drafted.call, options=(*kept, *options))
        comment = printable("; ".join(filter(None, (drafted.comment, f"it was {commented_line(item)}"))))
        redrafted = _with_columns(FieldText(item.name, call, comment), (column.name,))
        return redrafted if _is_personal(redrafted) else _undecided(redrafted)

    def _drafted(self, column: str) -> FieldText | Comment:
        """Return the field or comment for the column in the new draft. A column of a key or of a ref has neither."""
        for each in self._fresh.body if self._fresh is not None else ():
            if isinstance(each, FieldText) and columns_of(each) == (column,) and each.call.word != "Ref":
                return each
            if isinstance(each, Comment) and is_about(column, [each.text]):
                return each
        return Comment(printable(f"{column}{LEFT_OUT}{_UNDECIDED}"))

    def _with_labels(self, item: FieldText, column: TableColumn) -> FieldText:
        """Add new values of an enum type to a select as options, which a person must confirm, since a person may have
        removed an option before. Other fields, and selects with the option `values`, are returned unchanged."""
        is_select = item.call.word == "Select" and column.base == "enum"
        if not is_select or not {name for name, _ in item.call.options}.isdisjoint(("values", "unknown")):
            return item
        known = list(map(_option_name, item.call.arguments))
        added = [each for each in column.allowed if each not in known]
        if not added:
            return item
        self._lines += [f"+ {column.name} has the new value {each}, which is shown as empty" for each in added]
        self._is_proven = False
        return replace(item, call=_with_choices(item.call, known, column.allowed, added))

    def _added(self, relation: Relation, taken: set[str]) -> list[FieldText | Comment]:
        """Return the fields and comments for new columns."""
        new = {each.name: each for each in new_columns(self._text, self._model, relation, self._history)}
        found: list[FieldText | Comment] = self._unreadable(relation)
        for item in self._fresh.body if self._fresh is not None else ():
            if isinstance(item, Comment):
                found += self._added_comment(item, new)
            elif set(columns_of(item)) <= new.keys():
                added = _with_columns(replace(item, name=names.unique(item.name, taken)), columns_of(item))
                taken.add(added.name)
                types = ", ".join(f"{each} {new[each].type_name}" for each in columns_of(item))
                self._lines.append(f"+ {types}: not in the file, so agents do not see it: {source_line(added)}")
                # A person must review a new column before agents may read it in clear.
                self._is_proven = self._is_proven and (added.call.word in _NO_VALUES or _is_personal(added))
                found.append(added)
        return found

    def _unreadable(self, relation: Relation) -> list[FieldText | Comment]:
        """Return comments for the new columns that the role may not read."""
        left_out = LeftOut(self._text.body)
        named = declared_columns(self._model)
        found: list[FieldText | Comment] = []
        for name in relation.unreadable:
            if self._is_new(name) and name not in named and not left_out.contains(name):
                self._lines.append(f"+ {name}: not in the file, and the role may not read it")
                found.append(Comment(printable(f"{name}{LEFT_OUT}the role may not read it")))
        return found

    def _added_comment(self, comment: Comment, new: Mapping[str, TableColumn]) -> list[FieldText | Comment]:
        """Return the comment if it is about a new column that is left out."""
        column = new.get(comment.text.partition(LEFT_OUT)[0])
        if column is None:
            column = next((each for name, each in new.items() if is_about(name, [comment.text])), None)
        if column is None:
            return []
        reason = comment.text.removeprefix(printable(column.name) + LEFT_OUT)
        self._lines.append(f"+ {column.name} {column.type_name}: not in the file, and left out: {reason}")
        return [comment]

    def _options(self, relation: Relation) -> tuple[tuple[str, Value], ...] | None:
        """Return the options of the class with the current key and fingerprint, or None if the table has no key. A key
        whose columns exist is kept, because the ids of records are computed from it."""
        table = _table_call(self._text)
        given = dict(table.options)
        key = self._present_key(relation)
        if key is None:
            return None
        given["key"] = key[0] if len(key) == 1 else key
        if self._table.fingerprint and relation.definition is not None:
            given["fingerprint"] = relation.definition.fingerprint(key)
        for name in given.keys() & {"version", "deleted"}:
            given[name] = self._history.renamed.get(str(given[name]), given[name])
        changed = replace(table, options=tuple(given.items()))
        return tuple((name, changed if name == "table" else value) for name, value in self._text.options)

    def _present_key(self, relation: Relation) -> tuple[str, ...] | None:
        """Return the columns of the key, or None if the table has no key."""
        key = self._history.key
        gone = [each for each in key if each not in {column.name for column in relation.columns}]
        if not gone:
            self._explain_key(relation)
            return key
        if not set(relation.unreadable).isdisjoint(key):
            self._lines.append(f"! the role may no longer read the key ({', '.join(key)}): grant SELECT")
            return None
        if self._fresh is None:
            self._lines.append(f"! {relation.place} has no key any more, or no column that can be shown")
            return None
        self._lines.append(f"! {', '.join(gone)} of its key is gone, so the ids of its records change")
        self._is_proven = False
        fresh = dict(_table_call(self._fresh).options)["key"]
        return tuple(map(str, fresh)) if isinstance(fresh, tuple) else (str(fresh),)

    def _explain_key(self, relation: Relation) -> None:
        """Add a line if no unique index covers the key of a changed table."""
        key = self._history.key
        has_index = any(set(each.columns) <= set(key) for each in relation.keys)
        if not self._history.is_proven and not has_index and relation.kind not in ("view", "materialized"):
            self._lines.append(f"! no unique index covers its key ({', '.join(key)}): with another one all ids change")


def _undecided(field: FieldText) -> FieldText:
    """Put the remark that the column was not reviewed before the comment of the field."""
    if field.comment.startswith(review.LOOK):
        return field
    return replace(field, comment="; ".join(filter(None, (_UNDECIDED, field.comment))))


def _is_personal(field: FieldText) -> bool:
    return any(name == "personal" for name, _ in field.call.options)


def _with_column_name(field: FieldText) -> str:
    """Return the name of the field, followed by the name of its column if they differ."""
    columns = ", ".join(columns_of(field))
    return field.name if columns == field.name else f"{field.name} ({columns})"


def _with_choices(call: Call, known: Sequence[str], allowed: Sequence[str], added: Sequence[str]) -> Call:
    """Add options to a select. If the name of an option differs from its value, also map all options to their
    values."""
    choices, values = draft.choices(added, known)
    options = call.options
    if any(label != option for label, option in values):
        named: list[tuple[Value, Value]] = [(each, each) for each in known if each in allowed]
        options = (("values", Dictionary((*named, *values))), *options)
    return replace(call, arguments=(*call.arguments, *choices), options=options)


def _option_name(argument: Value) -> str:
    """Return the name of an option of a select, which is declared as a text or as Option(…)."""
    return str(next(iter(argument.arguments), "")) if isinstance(argument, Call) else str(argument)


def columns_of(field: FieldText) -> tuple[str, ...]:
    """Return the columns of a drafted field."""
    options = dict(field.call.options)
    found = options.get("columns") or options.get("column") or field.name
    return tuple(str(each) for each in found) if isinstance(found, tuple) else (str(found),)


def _with_columns(field: FieldText, columns: tuple[str, ...]) -> FieldText:
    """Return the field with these columns. If the field has the name of its only column, the option is omitted."""
    name = "columns" if field.call.word == "Ref" else "column"
    value: Value = columns if len(columns) > 1 else next(iter(columns))
    options = tuple((each, given) for each, given in field.call.options if each != name)
    if columns != (field.name,):
        options = ((name, value), *options)
    return replace(field, call=replace(field.call, options=options))


