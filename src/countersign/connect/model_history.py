"""Determines, from the fingerprint of a model, how its table has changed since the module text was written, and which
columns are new."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from countersign.connect import table_history
from countersign.connect.schema import Database, Relation, TableColumn
from countersign.declare import Declared
from countersign.declare.review import LEFT_OUT
from countersign.declare.text import Comment, ModelText, printable
from countersign.kernel.database.table_fingerprints import TableDefinition

GONE = "the column is gone"


class LeftOut:
    """The names of columns and tables that comments describe as left out, without columns that no longer existed at
    that time."""

    def __init__(self, body: Iterable[object]) -> None:
        comments = [each.text for each in body if isinstance(each, Comment)]
        self.comments = [each for each in comments if LEFT_OUT in each and f"{LEFT_OUT}{GONE}" not in each]
        self.names = {each.partition(LEFT_OUT)[0] for each in self.comments}

    def contains(self, name: str) -> bool:
        """Return whether a comment describes the column or table with this name as left out."""
        shown = printable(name)
        return shown in self.names or (LEFT_OUT in shown and is_about(name, self.comments))


def is_about(name: str, comments: Collection[str]) -> bool:
    """Return whether one of the comments describes the column or table with this name as left out."""
    beginning = f"{printable(name)}{LEFT_OUT}"
    return any(each.startswith(beginning) for each in comments)


@dataclass(frozen=True, slots=True)
class History:
    """How a table has changed since its fingerprint was computed.

    key        the columns of the key, by their current names
    last       the highest number of a column that the fingerprint covers; columns with higher numbers are new
    is_same    the columns that the fingerprint covers are unchanged
    is_proven  only names or numbers have changed, and `renamed` maps the former names to the current ones
    recreated  columns of a SQLite file that were dropped and created again
    note       a description of the change, if it is known
    """

    key: tuple[str, ...]
    last: int = 0
    is_same: bool = True
    is_proven: bool = True
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    recreated: frozenset[str] = frozenset()
    note: str = ""


def history_of(text: ModelText, model: Declared, database: Database) -> History:
    """Return how the table of the model became what it is."""
    table = model.table
    relation = None if table is None else database.relation(table)
    if table is None or relation is None:
        return History(())
    last, key = table_history.last_number(table.fingerprint), table.key_columns
    definition = relation.definition
    if definition is None or not table.fingerprint or definition.matches(table.fingerprint, key):
        return History(key, last)
    restored = table_history.restored_number(definition, table.fingerprint, key)
    if restored and not database.is_sqlite:
        note = "the columns have other numbers, in the same order, as after a restored dump"
        return History(key, restored, is_same=False, note=note)
    return _changed(definition, table.fingerprint, key, _gone(text, model, relation), is_sqlite=database.is_sqlite)


def _gone(text: ModelText, model: Declared, relation: Relation) -> list[set[str]]:
    """Return two sets of missing columns, which the model names and the table does not have: the first includes columns
    that only comments name, the second does not, because a comment may name anything."""
    present = present_names(relation)
    declared = declared_columns(model) - present
    commented = declared | (LeftOut(text.body).names - present)
    return [commented, declared] if commented != declared else [commented]


def _changed(
    definition: TableDefinition, fingerprint: str, key: tuple[str, ...], gone: list[set[str]], *, is_sqlite: bool
) -> History:
    """Return the history of a changed table. `gone` lists possible sets of columns that were removed."""
    last = table_history.last_number(fingerprint)
    found = (table_history.renamed_columns(definition, fingerprint, key, each) for each in gone)
    explained = next((each for each in found if each is not None), None)
    renamed = explained or {}
    present_key = tuple(renamed.get(each, each) for each in key)
    if not is_sqlite:
        note = "" if explained is not None else table_history.explanation(definition, fingerprint, key, gone[0])
        return History(present_key, last, False, explained is not None, renamed, note=note)
    # When a column is dropped, SQLite renumbers the columns after it, so that the next column looks like a renamed one.
    last -= len(gone[0] - renamed.keys())
    recreated = table_history.recreated_columns(definition, fingerprint, key)
    return History(present_key, last, False, False, renamed, recreated)


def new_columns(text: ModelText, model: Declared, relation: Relation, history: History) -> list[TableColumn]:
    """Return the columns that were added after the module text was written and that it does not name. Without a
    fingerprint, return no columns."""
    if model.table is None or not model.table.fingerprint:
        return []
    numbers = numbers_of(relation)
    named = declared_columns(model) | set(history.renamed.values())
    left_out = LeftOut(text.body)
    later = [each for each in relation.columns if numbers.get(each.name, 0) > history.last]
    return [each for each in later if each.name not in named and not left_out.contains(each.name)]


def numbers_of(relation: Relation) -> Mapping[str, int]:
    """Map the columns of the relation to their numbers."""
    return {} if relation.definition is None else table_history.numbers(relation.definition)


def declared_columns(model: Declared) -> set[str]:
    """Return the columns that the fields, the key and the other options of the table name."""
    named = {column for each in model.fields.values() for column in each.table_columns}
    return named | set(model.table.columns_without_field if model.table is not None else ())


def present_names(relation: Relation) -> set[str]:
    """Return the names of the table's columns, both unchanged and in the printable form that comments contain."""
    names_of_columns = {each.name for each in relation.columns} | set(relation.unreadable)
    return names_of_columns | set(map(printable, names_of_columns))
