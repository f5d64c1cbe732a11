"""Comments on records: whether a caller may comment on a record, and which comments a caller sees."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from countersign.declare.fields.field import Stored
from countersign.declare.fields.kinds import is_record_id
from countersign.kernel.database.port import Dialect, Value
from countersign.records.access.view import READING, Caller, ModelView, Rows, View
from countersign.records.commands import unmask_input
from countersign.records.commands.errors import no_such_record
from countersign.records.commands.queries import DelegatedParameters, Scope, any_of
from countersign.records.commands.run import Run


async def check_comment(run: Run, values: Mapping[str, Stored]) -> None:
    """Require that a comment is about a record that the caller sees.

    Raises:
        BadInput: the record does not exist for the caller.
    """
    model, record_id = str(values.get("model")), str(values.get("record"))
    view = run.caller.view.models.get(model)
    # When the service itself writes records, for example demonstration data, the caller has no views.
    if run.caller.view.models and (view is None or not _may_be_id(view, record_id)):
        raise no_such_record()
    if view is not None and not await unmask_input.exists(run, model, record_id):
        raise no_such_record()


def _may_be_id(view: ModelView, record_id: str) -> bool:
    """Return whether the text has the format of an id. The ids of an existing database have other lengths."""
    return view.model.table is not None or is_record_id(record_id)


@dataclass(frozen=True, eq=False)
class CommentVisibility:
    """An SQL condition that selects the comments on records that the caller can see now."""

    view: View
    dialect: Dialect

    def sql(self, alias: str, add_parameter: Callable[[Value], str]) -> str:
        """Return the condition."""
        readable = [name for name, view in self.view.models.items() if view.is_readable and name != "comment"]
        return f"({' OR '.join([self._of_model(alias, name, add_parameter) for name in readable]) or '1 = 0'})"

    def _of_model(self, alias: str, name: str, add_parameter: Callable[[Value], str]) -> str:
        view = self.view.models[name]
        if view.model.table is not None:
            # The records are in another database. Its comments are for those who see all records of the model.
            return f"({alias}.model = {add_parameter(name)})" if view.visible is None else "1 = 0"
        visible_condition = any_of(
            Scope(self.dialect, DelegatedParameters(add_parameter), "subject"), view.model, view.visible
        )
        about = f'EXISTS (SELECT 1 FROM "{name}" AS subject WHERE subject.id = {alias}.record AND {visible_condition})'
        return f"({alias}.model = {add_parameter(name)} AND {about})"


def with_comments(caller: Caller, dialect: Dialect) -> Caller:
    """Return the caller with a view of comments that contains only those on records visible to the caller.
    Administrators see every record."""
    view = caller.view.models.get("comment")
    if view is None or caller.is_administrator:
        return caller
    condition = CommentVisibility(caller.view, dialect)

    def narrowed(rows: Rows) -> Rows:
        return ((condition,),) if rows is None else tuple((*row, condition) for row in rows)

    # The other commands reach only visible comments anyway.
    comments = replace(
        view, rows={name: narrowed(rows) if name in READING else rows for name, rows in view.rows.items()}
    )
    return replace(caller, view=replace(caller.view, models={**caller.view.models, "comment": comments}))
