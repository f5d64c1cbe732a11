"""The draft of a module text for an existing database: a model for each table with a key, a field for each column that
has a kind, and a comment with the reason for everything that is left out."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from countersign.connect import names
from countersign.connect.personal_columns import Guess, facts_of_tables, guess
from countersign.connect.schema import Database, ForeignKey, Relation, RelationId, Samples, TableColumn, UniqueKey
from countersign.declare.fields.field import LINKED
from countersign.declare.fields.text import MAX_LONGTEXT_LENGTH, MAX_TEXT_LENGTH
from countersign.declare.model import READ_COMMANDS, derived_model_name
from countersign.declare.review import FREE_TEXT, LEFT_OUT, LOOK
from countersign.declare.table import relation_of
from countersign.declare.text import (
    Call,
    Comment,
    Dictionary,
    FieldText,
    ModelText,
    ModuleText,
    Name,
    Value,
    printable,
)

MAX_SORTED_ROWS = 50_000
"""The maximum number of rows of a table whose text columns can be ordered by without an index."""
MAX_MONEY_SCALE = 4
UUID_LENGTH = 36

_MIGRATION_TABLES = frozenset(
    {
        *("schema_migrations", "schema_migration", "ar_internal_metadata", "django_migrations", "alembic_version"),
        *("flyway_schema_history", "databasechangelog", "databasechangeloglock", "knex_migrations", "migrations"),
        *("_prisma_migrations", "__efmigrationshistory", "goose_db_version", "spatial_ref_sys", "sqlite_sequence"),
    }
)
_REASONS = {
    "view": "a view: declare it by hand, with Table(key=…)",
    "materialized": "a materialized view: declare it by hand, with Table(key=…)",
    "partition": "a partition of another table",
    "extension": "a table of an extension",
    "inherited": "a parent of other tables: its key is not unique over their rows",
    "undecodable": "its name is not valid UTF-8",
    "undecodable_part": "a name in it is not valid UTF-8",
    "unknown": "a kind of relation that is not known",
}
NO_KEY = "no key: it has no primary key, and no unique index over required columns"

_DELETION_MARKS = ("deleted_at", "is_deleted", "archived_at")
"""The names of columns that mark rows as deleted."""
_VERSION_NAMES = frozenset({"lock_version", "row_version", "version"})
"""The names of columns in which applications count the changes of a row."""

_MONEY_WORDS = frozenset(
    {
        *("amount", "price", "cost", "total", "subtotal", "fee", "fees", "revenue", "balance", "budget", "payment"),
        *("betrag", "preis", "kosten", "summe", "umsatz", "gebuehr", "discount", "tax", "due", "paid", "charge"),
    }
)
_LONG_WORDS = frozenset(
    {
        *("note", "notes", "description", "comment", "comments", "body", "content", "text", "message", "summary"),
        *("notiz", "notizen", "bemerkung", "bemerkungen", "beschreibung", "biography", "bio", "remarks", "resume"),
    }
)
_KEY_TYPES = frozenset(
    {"text", "citext", "integer", "bigint", "numeric", "date", "moment", "local_moment", "enum", "uuid", "bytes"}
)
_OPTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", re.ASCII)
_TOKEN_SHAPE = re.compile(r"[A-Za-z][A-Za-z0-9]*[_-]{1,2}[0-9]+", re.ASCII)
_LEFT_OUT = {
    "money": "its text depends on the locale of the server: show it through a view as numeric",
    "time": "the type has no kind: show it through a view as text",
    "interval": "the type has no kind: show it through a view as text",
    "json": "documents are not offered",
    "bytes": "binary data is not offered",
    "array": "lists are not offered",
}


@dataclass(slots=True)
class Report:
    """What the draft contains and what it leaves out, as shown to the person who runs the command."""

    models: list[str] = field(default_factory=list[str])
    left_out: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    personal: Counter[str] = field(default_factory=Counter[str])
    secret: list[str] = field(default_factory=list[str])
    look: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Draft:
    """A module text with its report."""

    text: ModuleText
    report: Report


def draft(
    database: Database, samples: Samples, *, name: str, origin: str, tables: Collection[str] = (),
    reserved: Collection[str] = (), keys: Mapping[RelationId, UniqueKey] = MappingProxyType({}),
) -> Draft:
    """Return the module text for the database.

    `origin` describes the database and the day. `tables` names the tables and views to adopt; if it is empty, all
    tables are adopted. `reserved` are names that models cannot have. `keys` maps relations to keys that a person has
    chosen; these relations are adopted even if a rule would leave them out.
    """
    return _Drafter(database, samples, tables, keys).draft(name, origin, reserved)


def adopted(database: Database, tables: Collection[str] = ()) -> tuple[Relation, ...]:
    """Return the relations that a draft can adopt: relations that have a key and that no rule leaves out."""
    return tuple(each for each in database.relations if not _refusal(each, tables) and _key(each) is not None)


class _Drafter:
    """Writes the draft, table by table."""

    def __init__(
        self, database: Database, samples: Samples, tables: Collection[str], keys: Mapping[RelationId, UniqueKey]
    ) -> None:
        self._database = database
        self._samples = samples
        self._report = Report()
        self._keys: dict[RelationId, UniqueKey] = {}
        for relation in database.relations:
            key = keys.get(relation.id) or _key(relation)
            reason = "" if relation.id in keys else _refusal(relation, tables) or (NO_KEY if key is None else "")
            if reason:
                self._report.left_out.append((relation.place, reason))
            elif key is not None:
                self._keys[relation.id] = key
        self._facts = facts_of_tables(database.relations)
        self._models: dict[RelationId, str] = {}

    def draft(self, name: str, origin: str, reserved: Collection[str]) -> Draft:
        """Return the draft of the module with this name."""
        adopted = [each for each in self._database.relations if each.id in self._keys]
        adopted = self._with_fields(adopted)
        taken = set(reserved)
        for relation in adopted:
            self._models[relation.id] = names.model_name(relation.name, taken, name)
            taken.add(self._models[relation.id])
        models = self._class_names(adopted)
        body: list[ModelText | Comment] = [self._model(each, models[each.id]) for each in adopted]
        body += [Comment(printable(f"{place}: left out: {reason}")) for place, reason in self._report.left_out]
        return Draft(ModuleText(self._summary(name, origin), tuple(body), self._module(name, models)), self._report)

    def _with_fields(self, relations: Sequence[Relation]) -> list[Relation]:
        """Return the relations with at least one field. If a relation is left out, the refs to it are left out too,
        which may leave another relation without fields."""
        found = list(relations)
        while True:
            empty = [each for each in found if not self._has_field(each)]
            if not empty:
                return found
            for relation in empty:
                del self._keys[relation.id]
                self._report.left_out.append((relation.place, "no column that can be shown"))
            found = [each for each in found if each not in empty]

    def _has_field(self, relation: Relation) -> bool:
        """Return whether at least one column of the relation becomes a field or a ref."""
        deleted = _deletion_mark(relation, self._keys[relation.id])
        columns = [each for each in relation.columns if each.name != deleted]
        is_declared = any(not isinstance(self._declared(relation, each), str) for each in columns)
        return is_declared or bool(self._references(relation))

    def _class_names(self, relations: Sequence[Relation]) -> dict[RelationId, str]:
        found: dict[RelationId, str] = {}
        for relation in relations:
            wanted = names.class_name(self._models[relation.id])
            found[relation.id] = wanted if wanted not in found.values() else f"{wanted}{len(found)}"
        return found

    def _summary(self, name: str, origin: str) -> str:
        lines = len(self._report.look)
        return printable(f"{name}, from {origin}. {lines} {'column' if lines == 1 else 'columns'} to look at.")

    def _module(self, name: str, classes: Mapping[RelationId, str]) -> Call:
        grants = tuple(
            Call("Grant", (), (("model", model), ("commands", READ_COMMANDS), ("masked", "*")))
            for model in self._models.values()
        )
        options: list[tuple[str, Value]] = [
            ("version", "1.0.0"),
            ("icon", "database"),
            ("models", tuple(map(Name, classes.values()))),
            ("roles", (Call("Role", (f"{name}_reader", *grants)),)),
        ]
        path = self._database.search_path if self._needs_search_path() else ()
        return Call("Module", (name,), (*options, *((("search_path", path),) if path else ())))

    def _needs_search_path(self) -> bool:
        """Return whether a read may call functions of the database. Functions of views and of row-level security
        policies look up names on the search path of the database. Other reads run without this search path: otherwise a
        role that may create functions in one of its schemas could run code in them."""
        adopted = [relation for relation in self._database.relations if relation.id in self._models]
        return any(relation.has_row_rules or "view" in relation.kind for relation in adopted)

    def _model(self, relation: Relation, class_name: str) -> ModelText:
        model = self._models[relation.id]
        key = self._keys[relation.id]
        self._report.models.append(model)
        body: list[FieldText | Comment] = [Comment(printable(each)) for each in _remarks(relation, key)]
        fields = _FieldNames()
        referring = self._references(relation)
        body += [self._ref(relation, reference, fields) for reference in referring]
        deleted = _deletion_mark(relation, key)
        hidden = {*key.columns, deleted}.union(*(each.columns for each in referring))
        body += [self._field(relation, column, fields) for column in relation.columns if column.name not in hidden]
        body += _remarks_on_deleted(deleted)
        if not fields.taken:
            body += [self._field(relation, relation.column(column), fields) for column in key.columns]
        options: list[tuple[str, Value]] = [("table", _table(relation, key, deleted))]
        options += [("name", model)] if derived_model_name(class_name) != model else []
        label = names.label(relation.name, model)
        options += [("label", label), ("plural", label)] if label else []
        summary = f"A row of {printable(relation.place)}."
        return ModelText(class_name, tuple(options), summary, tuple(body))

    def _references(self, relation: Relation) -> list[ForeignKey]:
        """Return the foreign keys that become refs: foreign keys that refer to the key of an adopted table."""
        found: list[ForeignKey] = []
        used: set[frozenset[str]] = set()
        readable = {each.name for each in relation.columns}
        for each in relation.foreign_keys:
            key = self._keys.get(each.target)
            fits = key is not None and set(key.columns) == set(each.target_columns) and readable >= set(each.columns)
            if fits and frozenset(each.columns) not in used:
                used.add(frozenset(each.columns))
                found.append(each)
        return found

    def _ref(self, relation: Relation, reference: ForeignKey, fields: "_FieldNames") -> FieldText:
        key = self._keys[reference.target]
        target = self._models[reference.target]
        by_target = dict(zip(reference.target_columns, reference.columns, strict=True))
        columns = tuple(by_target[column] for column in key.columns)
        is_required = all(relation.column(column).is_required for column in columns)
        if len(columns) == 1:
            parts = names.words(columns[0])
            base = columns[0] if len(parts) < 2 or parts[-1] not in ("id", "fk") else "_".join(parts[:-1])
        else:
            base = target
        options: list[tuple[str, Value]] = [("columns", columns[0] if len(columns) == 1 else columns)]
        options += [("required", True)] if is_required else []
        return FieldText(fields.add(base), Call("Ref", (target,), tuple(options)))

    def _field(self, relation: Relation, column: TableColumn, fields: "_FieldNames") -> FieldText | Comment:
        verdict = self._guess(relation, column)
        declared = self._declared(relation, column)
        model = self._models[relation.id]
        if isinstance(declared, str):
            self._count(f"{model}.{column.name}", verdict, declared)
            return Comment(printable(f"{column.name}: left out: {declared}"))
        suffix = "_minor" if declared.word == "Money" else ""
        name = fields.add(column.name, suffix, fallback=f"column_{column.number}")
        self._count(f"{model}.{name}", verdict, declared)
        shown = names.label(column.name, name)
        options: list[tuple[str, Value]] = [("column", column.name)] if name != column.name else []
        options += [("label", shown)] if shown else []
        return FieldText(
            name, Call(declared.word, declared.arguments, (*options, *declared.options)), _comment(verdict)
        )

    def _count(self, place: str, verdict: Guess, declared: Call | str) -> None:
        """Add the field, or the left-out column, to the report."""
        if verdict.verdict == "secret":
            self._report.secret.append(place)
        elif isinstance(declared, str):
            self._report.look += [place] if declared.startswith(LOOK) else []
        elif verdict.verdict == "look":
            self._report.look.append(place)
        elif verdict.verdict == "personal":
            self._report.personal[verdict.label] += 1

    def _guess(self, relation: Relation, column: TableColumn) -> Guess:
        values = self._samples.get((relation.id, column.name), ())
        return guess(column, values, self._facts[relation.id])

    def _declared(self, relation: Relation, column: TableColumn) -> Call | str:
        """Return the declaration of the field without its column, or the reason why the column is left out."""
        verdict = self._guess(relation, column)
        is_reference = any(column.name in each.columns for each in relation.foreign_keys)
        if verdict.verdict == "secret":
            return verdict.reason
        if is_reference:
            return "a reference to a table or column that is not declared"
        if column.base in _LEFT_OUT:
            return f"{column.type_name}: {_LEFT_OUT[column.base]}"
        if column.base == "other":
            return f"the type {column.type_name} has no kind: show what you need of it through a view"
        is_text = column.base in ("text", "citext", "uuid", "address")
        if not is_text and verdict.verdict != "clear":
            return f"{LOOK}{verdict.reason}"
        required: list[tuple[str, Value]] = [("required", True)] if column.is_required else []
        if is_text:
            values = self._samples.get((relation.id, column.name), ())
            return _text(column, verdict, required, values, is_sorted=_is_sorted(relation, column))
        return _value(column, required)


class _FieldNames:
    """The names of the fields of one model."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def add(self, column: str, suffix: str = "", *, fallback: str = "field") -> str:
        """Return a new name for the field of the column. `fallback` is the name if the column has no Latin letters."""
        if suffix and names.words(column)[-1:] == [suffix.strip("_")]:
            suffix = ""
        name = names.field_name(column, self.taken, suffix, fallback=fallback)
        self.taken.add(name)
        return name


def _refusal(relation: Relation, tables: Collection[str]) -> str:
    """Return the reason why the relation is left out, apart from its key, or an empty text."""
    is_named = relation.place in tables or relation.name in tables
    if tables and not is_named:
        return "not named with --table"
    if relation.kind in ("view", "materialized") and is_named:
        return ""
    if relation.name.lower() in _MIGRATION_TABLES and not is_named:
        return "it belongs to a migration tool"
    return _REASONS.get(relation.kind, "")


def _key(relation: Relation) -> UniqueKey | None:
    """Return the primary key, or else the unique key with the fewest columns; among those, prefer keys of integers."""

    def rank(key: UniqueKey) -> tuple[bool, int, bool]:
        bases = [relation.column(each).base for each in key.columns]
        return not key.is_primary, len(bases), not all(each in ("integer", "bigint") for each in bases)

    readable = {each.name: each.base for each in relation.columns}
    fitting = [key for key in relation.keys if all(readable.get(each) in _KEY_TYPES for each in key.columns)]
    return min(fitting, key=rank, default=None)


def _remarks_on_deleted(column: str) -> list[Comment]:
    text = f"{column}{LEFT_OUT}it marks deleted rows, which deleted in Table hides"
    return [Comment(printable(text))] if column else []


def _deletion_mark(relation: Relation, key: UniqueKey) -> str:
    """Return the column that marks deleted rows, or an empty text. A column with a time counts only if it may be empty,
    as it is in rows that are not deleted."""

    def marks(column: TableColumn) -> bool:
        is_time = column.base in ("moment", "local_moment", "date") and not (column.is_required or column.has_default)
        return (is_time or column.base == "bool") and not column.is_generated and column.name not in key.columns

    by_name = {"_".join(names.words(each.name)): each.name for each in relation.columns if marks(each)}
    return next((by_name[each] for each in _DELETION_MARKS if each in by_name), "")


def _table(relation: Relation, key: UniqueKey, deleted: str) -> Call:
    place = relation_of(*([relation.schema] if relation.schema else []), relation.name)
    columns: Value = key.columns[0] if len(key.columns) == 1 else key.columns
    fingerprint = "" if relation.definition is None else relation.definition.fingerprint(key.columns)
    options: list[tuple[str, Value]] = [("key", columns), ("fingerprint", fingerprint)]
    options += [("deleted", deleted)] if deleted else []
    return Call("Table", (place,), (*options, *((("rows_about", relation.rows),) if relation.rows > 0 else ())))


def _remarks(relation: Relation, key: UniqueKey) -> list[str]:
    found: list[str] = []
    if relation.triggers:
        count = len(relation.triggers)
        found.append(f"{count} {'trigger' if count == 1 else 'triggers'}: {', '.join(relation.triggers)}")
    if not key.is_primary:
        found.append(f"the key is a unique index over {', '.join(key.columns)}")
    counting = [each.name for each in relation.columns if _counts_changes(each) and each.name not in key.columns]
    found += [f"{each} may count changes: then name it in version of Table, without a field" for each in counting]
    if relation.has_row_rules:
        found.append("row-level security: the role sees a part of the rows")
    if relation.unreadable:
        found.append(f"the role may not read {', '.join(relation.unreadable)}")
    return found


def _counts_changes(column: TableColumn) -> bool:
    is_named = "_".join(names.words(column.name)) in _VERSION_NAMES
    return is_named and column.is_required and column.base in ("integer", "bigint") and not column.is_generated


def _comment(verdict: Guess) -> str:
    if verdict.verdict == "look":
        return f"{LOOK}{verdict.reason}"
    return verdict.reason if verdict.verdict == "personal" else ""


def _is_sorted(relation: Relation, column: TableColumn) -> bool:
    return relation.rows <= MAX_SORTED_ROWS or column.orders_by_index


def _text(
    column: TableColumn, verdict: Guess, options: list[tuple[str, Value]], values: Sequence[str], *, is_sorted: bool
) -> Call:
    word = "LongText" if _is_long(column, verdict, values) else "Text"
    max_length = UUID_LENGTH if column.base == "uuid" else column.max_length
    if 0 < max_length <= MAX_LONGTEXT_LENGTH:
        options = [*options, ("max_length", max_length)]
    if verdict.label:
        options = [*options, ("personal", verdict.label)]
        if word == "LongText" and verdict.label in LINKED:
            options = [*options, ("linked", False)]
    return Call(word, (), (*options, *(() if is_sorted else (("sortable", False),))))


def _is_long(column: TableColumn, verdict: Guess, values: Sequence[str]) -> bool:
    """Return whether the column contains text of several lines. The maximum length decides; a column without one is
    judged by its name and its values."""
    if column.base == "uuid":
        return False
    if column.max_length or verdict.label not in ("", FREE_TEXT):
        return column.max_length > MAX_TEXT_LENGTH
    return bool(set(names.words(column.name)) & _LONG_WORDS) or any("\n" in each for each in values)


_KINDS = {
    "integer": "Number", "bigint": "Number", "float": "Decimal", "bool": "Bool", "date": "Date", "moment": "Moment",
}  # fmt: skip


def _value(column: TableColumn, options: list[tuple[str, Value]]) -> Call:
    if column.base == "enum":
        return _select(column, options)
    if column.base == "local_moment":
        return Call("Moment", (), (*options, ("zone", "UTC")))
    if column.base == "numeric":
        is_money = column.scale is not None and 0 < column.scale <= MAX_MONEY_SCALE
        is_named = bool(set(names.words(column.name)) & _MONEY_WORDS)
        return Call("Money", (), (*options, ("scale", column.scale))) if is_money and is_named else Call(
            "Decimal", (), tuple(options)
        )
    return Call(_KINDS[column.base], (), tuple(options))


def _select(column: TableColumn, options: list[tuple[str, Value]]) -> Call:
    """Return a select of the labels of an enum type."""
    found, values = choices(column.allowed)
    if all(label == option for label, option in values):
        return Call("Select", found, tuple(options))
    return Call("Select", found, (("values", Dictionary(values)), *options))


def choices(
    labels: Collection[str], taken: Collection[str] = ()
) -> tuple[tuple[Value, ...], tuple[tuple[Value, Value], ...]]:
    """Return the options for the labels of an enum type, and a map from each label to the name of its option. A label
    that is not a valid name gets a new, unused name, and becomes the label of its option."""
    found: list[Value] = []
    values: list[tuple[Value, Value]] = []
    names_taken = set(taken)
    for label in labels:
        base = label if is_option(label) else "_".join(names.words(label)) or "option"
        option = names.unique(base if is_option(base) else f"value_{base}", names_taken)
        names_taken.add(option)
        found.append(option if option == label else Call("Option", (option, printable(label) or option)))
        values.append((label, option))
    return tuple(found), tuple(values)


def is_option(label: str) -> bool:
    """Return whether the label of an enum type is a valid name of an option."""
    return _OPTION.fullmatch(label) is not None and _TOKEN_SHAPE.fullmatch(label) is None
