"""Which audit entries exist for a caller: those of records it sees, as far as they tell of fields it sees."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from countersign.kernel.database.port import Dialect, Value
from countersign.records.access.view import Caller, ModelView, Rows, View
from countersign.records.commands.conditions import Scope, any_of
from countersign.records.commands.sql import Borrowed

_POSITION = ("lane", "number")


@dataclass(frozen=True, eq=False)
class Tellable:
    """That an entry is about a record the caller sees now, and about a field of it that the caller sees."""

    view: View
    dialect: Dialect

    def sql(self, alias: str, put: Callable[[Value], str]) -> str:
        """Entries of records that are gone are told to those who see every record of their model."""
        told = [self._told(alias, name, view, put) for name, view in self.view.models.items()]
        return f"({' OR '.join(told)})"

    def _told(self, alias: str, name: str, view: ModelView, put: Callable[[Value], str]) -> str:
        tests = [f"{alias}.model = {put(name)}"]
        if view.visible is not None:
            reached = any_of(Scope(self.dialect, Borrowed(put), "told"), view.model, view.visible)
            tests.append(f'EXISTS (SELECT 1 FROM "{name}" AS told WHERE told.id = {alias}.record_id AND {reached})')
        if view.denied:
            # Names of fields hold neither % nor a sign of LIKE but the underscore, which stands for itself too.
            former = (name for each in view.fields if (name := view.model.fields[each].former_name))
            named = (*view.fields, *former)
            seen = [f"',' || {alias}.fields || ',' LIKE {put(f'%,{each},%')}" for each in named]
            tests.append(f"({' OR '.join([f'{alias}.fields = {put(str())}', *seen])})")
        return f"({' AND '.join(tests)})"


def _without_positions(view: ModelView) -> ModelView:
    """For all but administrators, who are told every entry: where an entry stands in its chain would say how many are
    hidden before it, and the stored names of its fields which of them are."""
    fields = {name: sight for name, sight in view.fields.items() if name not in _POSITION}
    denied = tuple(sorted({*view.denied, *(f"{view.model.name}.{name}" for name in _POSITION)}))
    return replace(view, fields=fields, denied=denied, rewritten=frozenset({"fields"}))


def with_audit(caller: Caller, dialect: Dialect) -> Caller:
    """The caller, its view of the audit narrowed to the entries that exist for it."""
    view = caller.view.models.get("audit_entry")
    if view is None:
        return caller
    condition = Tellable(caller.view, dialect)

    def narrowed(rows: Rows) -> Rows:
        return ((condition,),) if rows is None else tuple((*each, condition) for each in rows)

    audit = replace(view, rows={command: narrowed(rows) for command, rows in view.rows.items()})
    if not caller.is_administrator:
        audit = _without_positions(audit)
    return replace(caller, view=replace(caller.view, models={**caller.view.models, "audit_entry": audit}))
