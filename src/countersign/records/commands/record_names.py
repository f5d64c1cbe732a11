"""What the records that others refer to are called, both ways: names for ids in exports, ids for names in imports."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from countersign.declare import Ref
from countersign.declare.fields.ref import is_record_id
from countersign.records.access.people import folded
from countersign.records.access.view import ModelView
from countersign.records.commands import conditions
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Run
from countersign.records.commands.sql import Parameters

_AT_ONCE = 1_000


def named_by(run: Run, ref: Ref) -> ModelView | None:
    """The caller's view of the model that the reference is to, where it reads in clear what its records are called."""
    view = run.caller.view.models.get(ref.target)
    if view is None or not view.is_readable or view.model.shown_as not in view.fields:
        return None
    shown = view.model.fields[view.model.shown_as]
    return view if shown.is_folded and view.sees_in_clear(shown.name) else None


def name_column(run: Run, scope: conditions.Scope, ref: Ref) -> str:
    """The SQL expression of what the record is called that a reference is to; NULL where the caller may not see it, or
    does not read in clear what it is called."""
    view = named_by(run, ref)
    if view is None:
        return "NULL"
    inner = conditions.Scope(scope.dialect, scope.parameters, f"{scope.alias}_{ref.name}_name")
    seen = conditions.any_of(inner, view.model, view.visible)
    return (
        f'(SELECT {inner.alias}."{view.model.shown_as}" FROM "{ref.target}" AS {inner.alias} '
        f'WHERE {inner.alias}.id = {scope.alias}."{ref.name}" AND {seen})'
    )


async def ids_of(run: Run, ref: Ref, cells: Iterable[str]) -> tuple[dict[str, str], dict[str, int]]:
    """By cell, the id of the one record that the caller may see and that is called so; and of the cells that several
    records are called by, how many there are. A name in another case counts where none is written exactly so."""
    view = named_by(run, ref)
    wanted = {each for each in cells if not is_record_id(each) and not _has_token(run, each)}
    if view is None or not wanted:
        return {}, {}
    matches = await _matches(run, view, wanted)
    return (
        {cell: record_id for cell, (record_id, count) in matches.items() if count == 1},
        {cell: count for cell, (_, count) in matches.items() if count > 1},
    )


def _has_token(run: Run, cell: str) -> bool:
    """A token is refused here as it is in every reference; nothing is looked up by it."""
    grammar = run.engine.grammar
    return run.caller.view.is_masked and grammar.might_hold_token(cell) and bool(grammar.tokens(cell))


async def _matches(run: Run, view: ModelView, wanted: Collection[str]) -> dict[str, tuple[str, int]]:
    """By cell, a record that is called so, and how many are."""
    exact, loose = dict[str, tuple[str, int]](), dict[str, tuple[str, int]]()
    for some in _batches(sorted({folded(each) for each in wanted})):
        for name, key, record_id, count in await _called(run, view, some):
            exact[name] = (record_id, count)
            loose[key] = (record_id, count + loose.get(key, ("", 0))[1])
    found = {each: exact.get(each) or loose.get(folded(each)) for each in wanted}
    return {cell: match for cell, match in found.items() if match is not None}


async def _called(run: Run, view: ModelView, names: Sequence[str]) -> Sequence[tuple[str, str, str, int]]:
    """By spelling, the records called by one of the folded names: the name, its folded form, an id, and how many."""
    name, parameters = view.model.shown_as, Parameters()
    scope = conditions.Scope(run.engine.dialect, parameters, "t")
    places = ", ".join(parameters.put(each) for each in names)
    seen = conditions.any_of(scope, view.model, view.visible)
    text = (
        f'SELECT t."{name}", t."{name}__folded", min(t.id), count(*) FROM "{view.model.name}" AS t '
        f'WHERE t."{name}__folded" IN ({places}) AND {seen} GROUP BY t."{name}", t."{name}__folded"'
    )
    scan = run.engine.records.database.scan if run.open_transaction is None else run.reader.fetch
    rows = await scan(text, *parameters.values)
    return [(str(row[0]), str(row[1]), str(row[2]), int(row[3])) for row in rows]


def refuse_ambiguous(ref: Ref, cell: str, counts: Mapping[str, int]) -> None:
    """Insist that a cell names one record.

    Raises:
        BadInput: several records are called so.
    """
    if cell in counts:
        raise BadInput(f"names {counts[cell]} {ref.target} records: give the id of one")


def _batches(items: Sequence[str]) -> Iterable[Sequence[str]]:
    for start in range(0, len(items), _AT_ONCE):
        yield items[start : start + _AT_ONCE]
