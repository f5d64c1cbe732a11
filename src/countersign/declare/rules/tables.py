"""Rules about models with a table of an existing database."""

from collections.abc import Iterator
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from countersign.declare.fields.field import Field
from countersign.declare.fields.kinds import Moment, Money, Ref, Select
from countersign.declare.model import Declared, table_commands
from countersign.declare.rules.declarations import Declarations, member_error, model_error
from countersign.declare.table import DEFAULT_SCHEMA, Table, relation_names
from countersign.declare.workflow import Move

MAX_SCALE = 4


def tables_are_named(declarations: Declarations) -> Iterator[str]:
    """Require that a table has a valid relation and that the columns of its key are distinct."""
    for model in declarations.models.values():
        if model.table is not None:
            yield from (member_error(model, "table", text) for text in _table_errors(model.table))


def _table_errors(table: Table) -> Iterator[str]:
    try:
        relation_names(table.relation)
    except ValueError as error:
        yield f'the relation {table.relation!r}: {error}: write it like "public.customer"'
    columns = table.key_columns
    if not columns or not all(columns) or len(set(columns)) != len(columns):
        yield "the key must name different columns: correct it"
    if not all(map(_is_sql_text, (table.relation, *columns))):
        yield "a name of a table or column contains NUL or half of a surrogate pair: correct it"
    yield from _option_errors(table)


def _option_errors(table: Table) -> Iterator[str]:
    if table.deletes and not table.writable:
        yield "deletes needs writable=True: add it, or take deletes out"
    if table.version and (not table.writable or table.version in table.key_columns or not _is_sql_text(table.version)):
        yield "version needs writable=True and a column that is not in the key: correct it, or take it out"
    others = (*table.key_columns, *table.version_columns)
    if table.deleted and (table.deleted in others or not _is_sql_text(table.deleted)):
        yield "deleted needs a column that is neither in the key nor in version: correct it, or take it out"


def _is_sql_text(name: str) -> bool:
    """Return whether a database can contain the text."""
    try:
        return b"\0" not in name.encode()
    except UnicodeEncodeError:
        return False


def tables_have_their_commands(declarations: Declarations) -> Iterator[str]:
    """Require that models with a table of an existing database have only the commands that the table supports, and
    neither rules nor values that the engine writes."""
    for model in declarations.models.values():
        if model.table is not None:
            yield from _writing_errors(model, model.table)


def _writing_errors(model: Declared, table: Table) -> Iterator[str]:
    known_commands = table_commands(table)
    for name in model.commands:
        if name not in known_commands:
            text = f"a model with this table has no command {name}: name some of {', '.join(known_commands)}"
            yield member_error(model, "commands", text)
    if any((model.locked, model.locked_with, model.rules, model.needs_approval, model.reads)):
        yield model_error(model, "a model with a table has no rules: take locks, rules, approvals and reads out")
    if model.workflow is not None and not table.writable:
        yield model_error(model, "a workflow needs a table with writable=True: add it, or take the workflow out")
    yield from _marker_errors(model, table)
    for field in model.fields.values():
        if field.computed is not None or field.sum_of is not None:
            yield member_error(model, field.name, "a model with a table has no computed fields: take it out")


def _marker_errors(model: Declared, table: Table) -> Iterator[str]:
    """Yield an error for each field whose column counts versions or marks deleted rows."""
    for field in model.fields.values():
        if table.version in field.table_columns:
            yield member_error(model, field.name, "its column counts versions, so callers cannot set it: take it out")
        if table.deleted in field.table_columns:
            yield member_error(model, field.name, "its column marks deleted rows, so it says nothing: take it out")


def workflows_over_columns_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that, in a model with a table of an existing database, the state field of a workflow has the option
    `unknown` for states that other applications write, that no action begins or ends in this state, and that actions
    need no tables of the engine."""
    for model in declarations.models.values():
        field = None if model.workflow is None else model.fields.get(model.workflow.field)
        if model.table is None or model.workflow is None or not isinstance(field, Select):
            continue
        if not field.unknown or field.options[0] == field.unknown:
            text = 'other applications may write other states: add unknown="…" with an option that is not the first'
            yield member_error(model, field.name, text)
        for move in model.workflow.moves.values():
            text = _move_error(move, field)
            if text is not None:
                yield member_error(model, move.name, text)


def _move_error(move: Move, field: Select) -> str | None:
    if field.unknown and field.unknown in (*move.sources, move.to):
        return f"{field.unknown!r} stands for all other values of the column: take it out of the action"
    if move.effect is not None or move.rules or move.needs_records or move.reads:
        return "an action over a column has no effect, rules, needs_records and reads: take them out"
    return None


def written_tables_have_one_model(declarations: Declarations) -> Iterator[str]:
    """Require that only one model writes a table. Otherwise the history of one model would show the changes of the
    other model as changes of another application."""
    writer_by_names: dict[tuple[str, ...], Declared] = {}
    for model in declarations.models.values():
        if model.table is None or not model.table.writable:
            continue
        names = relation_names(model.table.relation)
        writer = writer_by_names.setdefault((DEFAULT_SCHEMA, *names)[-2:], model)
        if writer is not model:
            text = f"{writer.name} and {model.name} write one table, {model.table.relation}: take writable out of one"
            yield member_error(model, "table", text)


def columns_named_validly(declarations: Declarations) -> Iterator[str]:
    """Require that names of columns, labels and values are text that a database can contain."""
    for model, field in declarations.fields():
        values = map(str, field.values) if isinstance(field, Select) else ()
        if model.table is not None and not all(map(_is_sql_text, (*field.table_columns, field.label, *values))):
            text = "its column, label or values contain NUL or half of a surrogate pair: correct it"
            yield member_error(model, field.name, text)


def columns_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that only models with a table of an existing database have options for columns, and that these options
    are valid."""
    for model, field in declarations.fields():
        if model.table is None and _is_about_column(field):
            text = "column, columns, values, unknown and sortable are for models with a table: take them out"
            yield member_error(model, field.name, text)
        if isinstance(field, Money) and not 0 <= field.scale <= MAX_SCALE:
            yield member_error(model, field.name, f"scale must lie between 0 and {MAX_SCALE}: correct it")
        if isinstance(field, Moment) and not _is_zone(field.zone):
            yield member_error(model, field.name, f"there is no time zone {field.zone!r}: correct it")


def _is_about_column(field: Field) -> bool:
    is_select = isinstance(field, Select) and (field.values or field.unknown)
    return bool(field.column_option or not field.sortable or (isinstance(field, Ref) and field.columns) or is_select)


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ValueError, ZoneInfoNotFoundError, OSError):
        return False
    return True


def tables_refer_to_tables(declarations: Declarations) -> Iterator[str]:
    """Require that a ref of a model with a table refers to a model with a table, and has as many columns as the key of
    that table."""
    for model, field in declarations.fields():
        if not isinstance(field, Ref):
            continue
        target: Declared = declarations.models[field.target]
        if (model.table is None) != (target.table is None):
            text = f"{model.name} and {target.name} are not in one database: take the ref out"
            yield member_error(model, field.name, text)
        elif target.table is not None and len(field.table_columns) != len(target.table.key_columns):
            text = f"the key of {target.name} has {len(target.table.key_columns)} columns: name as many in columns"
            yield member_error(model, field.name, text)
