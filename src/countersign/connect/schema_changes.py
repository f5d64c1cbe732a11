"""What has changed in a database since a module text was written, and the module text with these changes. What a person
has written stays: a field keeps its name and its label, and a field without a column becomes a comment."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from countersign.connect import draft, fit, names, table_history
from countersign.connect.review import LEFT_OUT, model_name
from countersign.connect.schema import (
    Database,
    Relation,
    RelationId,
    Samples,
    TableColumn,
    UniqueKey,
    relation_id,
)
from countersign.declare import Declared, Field
from countersign.declare.table import Table
from countersign.declare.text import (
    Call,
    Comment,
    FieldText,
    ModelText,
    ModuleText,
    Value,
    printable,
    source_line,
)

_LABELS = ("label", "label_de")
_GONE = "the column is gone"
_NO_VALUES = ("Ref", "Workflow")
"""The declaration words of fields that show no value of the table."""


@dataclass(frozen=True, slots=True)
class ModelChange:
    """What has changed in the table of a model.

    lines      the changes in words, each with a sign: `+` new, `-` gone, `~` renamed, `!` needs a look
    changed    the class with the changes, or None if the changes cannot be taken over
    is_proven  the table is the one that was reviewed, apart from the lines. Without a proof columns may have exchanged
               their names, so a person has to look at the fields
    clear      the fields that agents read in clear, with the changes
    """

    model: str
    lines: tuple[str, ...]
    changed: ModelText | None
    is_proven: bool
    clear: tuple[str, ...]


def changes(
    module: ModuleText, models: Mapping[str, Declared], database: Database, samples: Samples
) -> list[ModelChange]:
    """Return the changes of the tables of these models, which are those of the module text that have a table.
    `samples` are values of new columns, for the guess."""
    fresh = _fresh_models(models, database, samples)
    found = [
        _Comparison(each, models[model_name(each)], database, fresh).change()
        for each in module.models
        if model_name(each) in models
    ]
    return [each for each in found if each.lines]


def new_tables(module: ModuleText, models: Mapping[str, Declared], database: Database) -> list[str]:
    """Return the tables with a key that the module text names neither in a model nor in a comment."""
    known = {relation.id for relation in _relations(models, database).values()}
    comments = [each.text for each in module.body if isinstance(each, Comment)]
    return [
        each.place
        for each in draft.adopted(database)
        if each.id not in known and not _is_left_out(each.place, comments)
    ]


def relations_with_new_columns(
    module: ModuleText, models: Mapping[str, Declared], database: Database
) -> list[Relation]:
    """Return the tables of the models that have columns which were added after the module text was written."""
    relations = _relations(models, database)
    return [
        relations[name]
        for each in module.models
        if (name := model_name(each)) in relations and _new_columns(each, models[name], relations[name])
    ]


def accepted(module: ModuleText, changes: Collection[ModelChange]) -> ModuleText:
    """Return the module text with these changes."""
    changed = {each.changed.class_name: each.changed for each in changes if each.changed is not None}
    body = tuple(changed.get(each.class_name, each) if isinstance(each, ModelText) else each for each in module.body)
    return replace(module, body=body)


def _relations(models: Mapping[str, Declared], database: Database) -> dict[str, Relation]:
    found = {name: database.relation(each.table) for name, each in models.items() if each.table is not None}
    return {name: each for name, each in found.items() if each is not None}


def _fresh_models(models: Mapping[str, Declared], database: Database, samples: Samples) -> dict[RelationId, ModelText]:
    """Return the models that a draft of the same tables has now. Its refs name the models of the module text."""
    relations = _relations(models, database)
    tables = {each.place for each in relations.values()}
    database = _with_keys_of_views(models, database)
    drafted = draft.draft(database, samples, name="module", origin="", tables=tables) if tables else None
    by_relation: dict[RelationId, ModelText] = {}
    given_names: dict[str, str] = {}
    for each in drafted.text.models if drafted is not None else ():
        (place,) = _table_call(each).arguments
        id_ = relation_id(str(place), default_schema="")
        by_relation[id_] = each
        given = next((name for name, relation in relations.items() if relation.id == id_), "")
        given_names[model_name(each)] = given
    return {
        relation: replace(each, body=tuple(_with_target(item, given_names) for item in each.body))
        for relation, each in by_relation.items()
    }


def _with_keys_of_views(models: Mapping[str, Declared], database: Database) -> Database:
    """Return the database in which each view has the key that its model names."""
    keys = {
        relation.id: UniqueKey(table.key_columns)
        for model in models.values()
        if (table := model.table) is not None
        and (relation := database.relation(table)) is not None
        and relation.kind in ("view", "materialized")
        and {each.name for each in relation.columns} >= set(table.key_columns)
    }
    relations = (replace(each, keys=(keys[each.id],)) if each.id in keys else each for each in database.relations)
    return replace(database, relations=tuple(relations))


def _with_target(item: FieldText | Comment, given_names: Mapping[str, str]) -> FieldText | Comment:
    """Return the ref with the name that the module text gives to its target."""
    if isinstance(item, Comment) or item.call.word != "Ref":
        return item
    target = str(next(iter(item.call.arguments)))
    return replace(item, call=replace(item.call, arguments=(given_names.get(target, target),)))


def _table_call(model: ModelText) -> Call:
    call = dict(model.options)["table"]
    if not isinstance(call, Call):
        raise TypeError(f"{model.class_name} has no Table(…)")
    return call


def _is_left_out(name: str, comments: Collection[str]) -> bool:
    """Return whether a comment says that the column or table with this name is left out."""
    return any(each.startswith(f"{printable(name)}{LEFT_OUT}") for each in comments)


def _new_columns(
    text: ModelText, model: Declared, relation: Relation, renamed: Mapping[str, str] = MappingProxyType({})
) -> list[TableColumn]:
    """Return the columns that were added after the module text was written, and that it does not name. `renamed` maps
    former names to present ones."""
    if model.table is None:
        return []
    last = table_history.last_number(model.table.fingerprint)
    if not relation.schema:
        # SQLite numbers its columns anew when one is dropped.
        last -= len(_gone_columns(text, model, relation) - renamed.keys())
    numbers = {} if relation.definition is None else table_history.numbers(relation.definition)
    unnamed = [each for each in _unnamed_columns(text, model, relation) if each.name not in renamed.values()]
    return [each for each in unnamed if numbers.get(each.name, 0) > last]


def _gone_columns(text: ModelText, model: Declared, relation: Relation) -> set[str]:
    """Return the columns that the module text names and the table no longer has."""
    named = {column for field in model.fields.values() for column in field.table_columns}
    comments = [each.text for each in text.body if isinstance(each, Comment) and LEFT_OUT in each.text]
    named |= {each.partition(LEFT_OUT)[0] for each in comments if f"{LEFT_OUT}{_GONE}" not in each}
    return named - _present_names(relation)


def _present_names(relation: Relation) -> set[str]:
    """Return the names of the columns of the table, as fields and as comments contain them."""
    names_of_columns = {each.name for each in relation.columns} | set(relation.unreadable)
    return names_of_columns | set(map(printable, names_of_columns))


def _unnamed_columns(text: ModelText, model: Declared, relation: Relation) -> list[TableColumn]:
    named = {column for field in model.fields.values() for column in field.table_columns}
    named |= set(model.table.key_columns if model.table is not None else ())
    comments = [each.text for each in text.body if isinstance(each, Comment)]
    return [each for each in relation.columns if each.name not in named and not _is_left_out(each.name, comments)]


class _Comparison:
    """Compares one model with its table, and collects the changes."""

    def __init__(
        self, text: ModelText, model: Declared, database: Database, fresh: Mapping[RelationId, ModelText]
    ) -> None:
        self._text = text
        self._model = model
        self._database = database
        self._table = model.table or Table("", "")
        self._relation = database.relation(self._table)
        self._fresh = None if self._relation is None else fresh.get(self._relation.id)
        self._lines: list[str] = []
        self._renamed: Mapping[str, str] = {}
        self._is_proven = True

    def change(self) -> ModelChange:
        """Return the changes."""
        relation = self._relation
        if relation is None:
            self._lines.append(f"! its table {self._table.relation} is gone, or may no longer be read")
            return self._result(None)
        if relation.definition is not None and self._table.fingerprint:
            self._explain(relation)
        if self._fresh is None:
            self._lines.append(f"! {relation.place} has no key any more, or no column that can be shown")
            self._is_proven = False
            return self._result(None)
        body = [self._item(each, relation) for each in self._text.body]
        body += self._added(relation, {each.name for each in body if isinstance(each, FieldText)})
        options = self._options(relation, self._fresh)
        return self._result(replace(self._text, options=options, body=tuple(body)))

    def _result(self, changed: ModelText | None) -> ModelChange:
        fields = [each for each in (changed or self._text).body if isinstance(each, FieldText)]
        clear = tuple(each.name for each in fields if each.call.word not in _NO_VALUES and not _is_personal(each))
        lines = tuple(map(printable, self._lines))
        return ModelChange(self._model.name, lines, changed, self._is_proven, clear)

    def _explain(self, relation: Relation) -> None:
        """Find out how the table differs from the one with the fingerprint."""
        definition, fingerprint = relation.definition, self._table.fingerprint
        key = self._table.key_columns
        if definition is None or definition.fits(fingerprint, key):
            return
        gone = _gone_columns(self._text, self._model, relation)
        renamed = table_history.renamed_columns(definition, fingerprint, key, gone)
        self._renamed = renamed or {}
        # SQLite gives the number of a column that is dropped to another one, which then looks like a renamed column.
        self._is_proven = renamed is not None and not self._database.is_sqlite
        for old, new in self._renamed.items():
            self._lines.append(f"~ the column {old} is now called {new}")
        if not self._is_proven:
            self._lines.append(
                f"! {relation.place} is no longer the table that was reviewed, and columns may have exchanged their "
                "names, so the model is hidden"
            )

    def _item(self, item: FieldText | Comment, relation: Relation) -> FieldText | Comment:
        """Return what becomes of a part of the class."""
        if isinstance(item, Comment):
            return self._comment(item, relation)
        field = self._model.fields.get(item.name)
        return item if field is None else self._field(item, field, relation)

    def _field(self, item: FieldText, field: Field, relation: Relation) -> FieldText | Comment:
        columns = tuple(self._renamed.get(each, each) for each in field.table_columns)
        moved = item if columns == field.table_columns else _with_columns(item, columns)
        present = {column.name for column in relation.columns}
        gone = ", ".join(each for each in columns if each not in present)
        if not gone:
            return moved if field.kind == "ref" else self._of_type(moved, field, relation.column(columns[0]))
        if not set(relation.unreadable).isdisjoint(columns):
            self._lines.append(f"! the role may no longer read {gone}: grant SELECT")
            return moved
        self._lines.append(f"- {gone}: the column is gone: {source_line(item)}")
        return Comment(printable(f"{gone}{LEFT_OUT}{_GONE}; it was {source_line(item)}"))

    def _comment(self, comment: Comment, relation: Relation) -> Comment:
        """Return the comment on a column that is left out with the present name of the column, or without a reason if
        the column is gone."""
        name, is_left_out, reason = comment.text.partition(LEFT_OUT)
        for old, new in self._renamed.items():
            if _is_left_out(old, [comment.text]):
                return Comment(printable(f"{new}{LEFT_OUT}{comment.text.removeprefix(printable(old) + LEFT_OUT)}"))
        if not is_left_out or reason.startswith(_GONE) or name in _present_names(relation):
            return comment
        self._lines.append(f"- {name}: the column is gone; it was left out")
        return Comment(f"{name}{LEFT_OUT}{_GONE}")

    def _of_type(self, item: FieldText, field: Field, column: TableColumn) -> FieldText | Comment:
        """Return the field as it is, or as a draft declares its column if its kind no longer fits the type."""
        if fit.column_fits(field, column, is_sqlite=self._database.is_sqlite):
            return self._with_labels(item, column)
        self._lines.append(f"! {column.name} is now {column.type_name}, the file says {item.call.word}")
        drafted = self._drafted(column.name)
        if isinstance(drafted, Comment):
            return drafted
        kept = tuple((name, value) for name, value in item.call.options if name in _LABELS)
        options = tuple((name, value) for name, value in drafted.call.options if name not in (*_LABELS, "column"))
        call = replace(drafted.call, options=(*kept, *options))
        return _with_columns(FieldText(item.name, call, drafted.comment), (column.name,))

    def _drafted(self, column: str) -> FieldText | Comment:
        """Return what a draft has for the column. A column of a key or of a ref has nothing."""
        for each in self._fresh.body if self._fresh is not None else ():
            if isinstance(each, FieldText) and columns_of(each) == (column,) and each.call.word != "Ref":
                return each
            if isinstance(each, Comment) and _is_left_out(column, [each.text]):
                return each
        return Comment(printable(f"{column}{LEFT_OUT}{draft.LOOK}its type has changed"))

    def _with_labels(self, item: FieldText, column: TableColumn) -> FieldText:
        """Return a select with the values that an enum type got. Other fields stay as they are, and so does a select
        that names the values of its options."""
        is_select = item.call.word == "Select" and column.base == "enum"
        if not is_select or not {name for name, _ in item.call.options}.isdisjoint(("values", "unknown")):
            return item
        known = set(map(_option_name, item.call.arguments))
        added = [each for each in column.allowed if each not in known]
        for each in added:
            self._lines.append(f"+ {column.name} has the new value {each}, which is shown as empty")
        possible = tuple(each for each in added if draft.is_option(each))
        return replace(item, call=replace(item.call, arguments=(*item.call.arguments, *possible)))

    def _added(self, relation: Relation, taken: set[str]) -> list[FieldText | Comment]:
        """Return the fields and comments for new columns."""
        new = {each.name: each for each in _new_columns(self._text, self._model, relation, self._renamed)}
        found: list[FieldText | Comment] = self._unreadable(relation)
        for item in self._fresh.body if self._fresh is not None else ():
            if isinstance(item, Comment):
                found += self._added_comment(item, new)
            elif set(columns_of(item)) <= new.keys():
                added = _with_columns(replace(item, name=names.unique(item.name, taken)), columns_of(item))
                taken.add(added.name)
                types = ", ".join(f"{each} {new[each].type_name}" for each in columns_of(item))
                self._lines.append(f"+ {types}: not in the file, so agents do not see it: {source_line(added)}")
                found.append(added)
        return found

    def _unreadable(self, relation: Relation) -> list[FieldText | Comment]:
        """Return comments for the new columns that the role may not read."""
        numbers = {} if relation.definition is None else table_history.numbers(relation.definition)
        last = table_history.last_number(self._table.fingerprint)
        comments = [each.text for each in self._text.body if isinstance(each, Comment)]
        found: list[FieldText | Comment] = []
        for name in relation.unreadable if self._table.fingerprint else ():
            if numbers.get(name, 0) > last and not _is_left_out(name, comments):
                self._lines.append(f"+ {name}: not in the file, and the role may not read it")
                found.append(Comment(printable(f"{name}{LEFT_OUT}the role may not read it")))
        return found

    def _added_comment(self, comment: Comment, new: Mapping[str, TableColumn]) -> list[FieldText | Comment]:
        """Return the comment if it is about a new column that is left out."""
        for name, column in new.items():
            if _is_left_out(name, [comment.text]):
                reason = comment.text.removeprefix(printable(name) + LEFT_OUT)
                self._lines.append(f"+ {name} {column.type_name}: not in the file, and left out: {reason}")
                return [comment]
        return []

    def _options(self, relation: Relation, fresh: ModelText) -> tuple[tuple[str, Value], ...]:
        """Return the options of the class with the present key and fingerprint."""
        table = _table_call(self._text)
        given = dict(table.options)
        key = tuple(self._renamed.get(each, each) for each in self._table.key_columns)
        given["key"] = key[0] if len(key) == 1 else key
        is_unique = any(set(each.columns) <= set(key) for each in relation.keys)
        if relation.kind not in ("view", "materialized") and not is_unique:
            given["key"] = dict(_table_call(fresh).options)["key"]
            self._lines.append(f"! ({', '.join(key)}) is no longer its key, so the ids of its records change")
        if self._table.fingerprint:
            given["fingerprint"] = _fingerprint(relation, given["key"])
        changed = replace(table, options=tuple(given.items()))
        return tuple((name, changed if name == "table" else value) for name, value in self._text.options)


def _is_personal(field: FieldText) -> bool:
    return any(name == "personal" for name, _ in field.call.options)


def _fingerprint(relation: Relation, key: Value) -> str:
    """Return the fingerprint of the relation for the key, which is a column or several."""
    columns = key if isinstance(key, tuple) else (key,)
    return "" if relation.definition is None else relation.definition.fingerprint(tuple(map(str, columns)))


def _option_name(argument: Value) -> str:
    """Return the name of an argument of a select, which is a text or an Option(…)."""
    return str(next(iter(argument.arguments), "")) if isinstance(argument, Call) else str(argument)


def columns_of(field: FieldText) -> tuple[str, ...]:
    """Return the columns of a field of a draft."""
    options = dict(field.call.options)
    found = options.get("columns") or options.get("column") or field.name
    return tuple(str(each) for each in found) if isinstance(found, tuple) else (str(found),)


def _with_columns(field: FieldText, columns: tuple[str, ...]) -> FieldText:
    """Return the field of these columns. A field with the name of its column needs no option."""
    name = "columns" if field.call.word == "Ref" else "column"
    value: Value = columns if len(columns) > 1 else next(iter(columns))
    options = tuple((each, given) for each, given in field.call.options if each != name)
    if columns != (field.name,):
        options = ((name, value), *options)
    return replace(field, call=replace(field.call, options=options))


