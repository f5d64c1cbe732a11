"""Finds the records that refer to a record to be deleted. The deletion deletes them too, sets their refs to null, or is
prevented by them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple, TypeAlias

from countersign.declare.fields.kinds import OnDelete
from countersign.declare.registry import Referrer
from countersign.records.access.view import Rows, View
from countersign.records.commands import filters
from countersign.records.commands.filters import Parameters
from countersign.records.commands.prepared_command import PreparedCommand
from countersign.records.commands.run import Run

MAX_RECORDS = 5_000
"""The maximum number of referring records that one deletion may delete or change."""
MAX_CONNECTED_RECORDS = 1_000
"""The same maximum for records of connected tables, whose rows are locked meanwhile."""

REFUSAL = "another record refers to this one"
"""The error for every deletion that a reference prevents. It is the same whether or not the caller sees the referring
record."""

_IDS_AT_ONCE = 500

Key: TypeAlias = tuple[str, str]
"""The key of a record: the name of its model, and its id."""


class Reference(NamedTuple):
    """The reference of the record `source` to the record `target` in the field `field`. `on_delete` is what deleting
    the target with `cascade` does to the source."""

    source: Key
    field: str
    target: Key
    revision: int
    on_delete: OnDelete


@dataclass(frozen=True, slots=True)
class Dependents:
    """The dependents of a deletion.

    `deleted` are the records to delete, starting with the record itself. `links` are all references to these records:
    `cleared` are the references to set to null, and `blocking` those that prevent the deletion. `complete` is false if
    there are more references than the limit.
    """

    deleted: tuple[Key, ...]
    cleared: tuple[Reference, ...]
    blocking: tuple[Reference, ...]
    links: tuple[Reference, ...]
    complete: bool

    def leaves_first(self) -> tuple[list[Key], bool]:
        """Return the deleted records, and whether each record follows the records that refer to it. With circular
        references, no such order exists."""
        deleted_keys = set(self.deleted)
        graph: dict[Key, set[Key]] = {key: set() for key in self.deleted}
        for link in self.links:
            if link.source in deleted_keys and link.target in deleted_keys:
                graph[link.target].add(link.source)
        try:
            return list(TopologicalSorter(graph).static_order()), True
        except CycleError:
            return list(reversed(self.deleted)), False


async def find(
    run: Run,
    model: str,
    record_id: str,
    *,
    cascade: bool,
    seen_by: View | None = None,
    locks: bool = False,
    limit: int | None = None,
) -> Dependents:
    """Return the records that refer to the record. With `cascade`, also return the records that refer to the records
    that are deleted with it.

    With `seen_by`, only links that the view shows are followed. With `locks`, the found rows are locked until the
    transaction ends. The caller must have locked the record itself for a deletion, so that no new references can
    appear. The search stops after `limit` links. The default is the maximum of one deletion.

    Raises:
        BadInput: the record is a row of a connected table, and the deletion would have unknown effects.
    """
    search = _Search(run, seen_by, max_records(run, model) if limit is None else limit, cascade=cascade, locks=locks)
    return await search.search((model, record_id))


def max_records(run: Run, model: str) -> int:
    """Return the maximum number of referring records that deleting a record of the model may delete or change."""
    return MAX_CONNECTED_RECORDS if model in run.engine.adopted else MAX_RECORDS


class _Search:
    """A breadth-first search that goes from records to the records that refer to them."""

    def __init__(self, run: Run, seen_by: View | None, limit: int, *, cascade: bool, locks: bool) -> None:
        self._run = run
        self._seen_by = seen_by
        self._limit = limit
        self._cascade = cascade
        self._locks = locks
        self._lock = " FOR UPDATE" if locks and run.engine.dialect == "postgres" else ""
        self._deleted: dict[Key, None] = {}
        self._links: list[Reference] = []

    async def search(self, root: Key) -> Dependents:
        self._deleted[root] = None
        level: Mapping[str, Sequence[str]] = {root[0]: [root[1]]}
        while level and len(self._links) <= self._limit:
            level = await self._next(level)
        return self._found(complete=len(self._links) <= self._limit)

    async def _next(self, level: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Return the records to delete because they refer to records of this level."""
        next_level: dict[str, list[str]] = {}
        for name, record_ids in level.items():
            for referrer, on_delete in await self._referrers(name):
                for start in range(0, len(record_ids), _IDS_AT_ONCE):
                    batch = record_ids[start : start + _IDS_AT_ONCE]
                    self._add(await self._referring(referrer, on_delete, name, batch), next_level)
                    if len(self._links) > self._limit:
                        return {}
        return next_level

    def _add(self, links: Iterable[Reference], next_level: dict[str, list[str]]) -> None:
        for link in links:
            self._links.append(link)
            if self._cascade and link.on_delete == "cascade" and link.source not in self._deleted:
                self._deleted[link.source] = None
                next_level.setdefault(link.source[0], []).append(link.source[1])

    async def _referrers(self, target: str) -> list[tuple[Referrer, OnDelete]]:
        """Return the refs to a model, with what deleting a referenced record does."""
        registry, store = self._run.engine.registry, self._run.engine.adopted.get(target)
        table = registry.models[target].table
        if table is not None and table.deleted:
            # The row stays in the table, marked as deleted, so other rows may still refer to it.
            return []
        actions: Mapping[Key, OnDelete] = {}
        if store is not None:
            actions = await store.deletion_actions(self._run, registry.models[target])
        return [
            (each, actions.get((each.model.name, each.ref.name), each.ref.on_delete))
            for each in registry.referrers[target]
        ]

    async def _referring(
        self, referrer: Referrer, on_delete: OnDelete, target: str, record_ids: Sequence[str]
    ) -> list[Reference]:
        name, field = referrer.model.name, referrer.ref.name
        rows = self._seen_rows(referrer)
        if rows == ():
            return []
        if name in self._run.engine.adopted:
            return await self._connected(referrer, on_delete, record_ids, rows)
        parameters = Parameters()
        places = ", ".join(parameters.put(record_id) for record_id in record_ids)
        tests = [f't."{field}" IN ({places})', f't."{field}" <> t.id']
        if rows is not None:
            scope = filters.Scope(self._run.engine.dialect, parameters, "t")
            tests.append(filters.any_of(scope, referrer.model, rows))
        text = (
            f'SELECT t.id, t.revision, t."{field}" FROM "{name}" AS t WHERE {" AND ".join(tests)} '
            f"ORDER BY t.id LIMIT {parameters.put(self._limit + 1 - len(self._links))}{self._lock}"
        )
        reference_rows = await self._run.transaction.fetch(text, *parameters.values)
        return [Reference((name, row[0]), field, (target, row[2]), row[1], on_delete) for row in reference_rows]

    def _seen_rows(self, referrer: Referrer) -> Rows:
        """Return the rows of a model whose refs are followed. They are empty if the view does not show the ref."""
        if self._seen_by is None:
            return None
        view = self._seen_by.models.get(referrer.model.name)
        is_shown = view is not None and view.is_readable and referrer.ref.name in view.fields
        return view.visible if view is not None and is_shown else ()

    async def _connected(
        self, referrer: Referrer, on_delete: OnDelete, record_ids: Sequence[str], rows: Rows
    ) -> list[Reference]:
        name, field = referrer.model.name, referrer.ref
        locked_for = on_delete if self._locks and self._cascade else None
        limit = self._limit + 1 - len(self._links)
        records = await self._run.engine.adopted[name].referring(
            self._run, referrer, record_ids, rows, limit, locked_for
        )
        return [
            Reference(
                (name, each.id), field.name, (field.target, str(each.values[field.name])), each.revision, on_delete
            )
            for each in records
        ]

    def _found(self, *, complete: bool) -> Dependents:
        cleared_links: list[Reference] = []
        blocking: list[Reference] = []
        for link in self._links:
            if link.source not in self._deleted:
                is_cleared = self._cascade and link.on_delete == "clear"
                (cleared_links if is_cleared else blocking).append(link)
        return Dependents(tuple(self._deleted), tuple(cleared_links), tuple(blocking), tuple(self._links), complete)


async def is_blocked_as_seen(run: Run, prepared_command: PreparedCommand) -> bool:
    """Return whether a record that the caller sees prevents the deletion. A record that an earlier step of the plan
    deletes, or whose ref an earlier step changes, does not prevent it."""
    caller_view = run.caller.view
    dependent_records = await find(
        run,
        prepared_command.model,
        prepared_command.record_id or "",
        cascade=prepared_command.cascade,
        seen_by=caller_view,
    )
    blocking = list(dependent_records.blocking)
    for step in run.earlier if blocking else ():
        deleted_keys: set[Key] = set()
        if step.command == "delete" and step.record_id is not None:
            dependents = await find(run, step.model, step.record_id, cascade=step.cascade, seen_by=caller_view)
            deleted_keys = set(dependents.deleted)
        blocking = [link for link in blocking if link.source not in deleted_keys and not _changes_ref(step, link)]
    return bool(blocking)


def _changes_ref(step: PreparedCommand, link: Reference) -> bool:
    """Return whether the step empties the ref or changes it to another record."""
    field_input = step.given.get(link.field) if (step.model, step.record_id) == link.source else None
    return field_input is not None and field_input.stored != link.target[1]
