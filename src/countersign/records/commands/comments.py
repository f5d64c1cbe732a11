"""Comments on records: whether a caller may comment on a record, and which comments a caller sees and changes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from countersign.declare import Where, where
from countersign.declare.fields.field import Stored
from countersign.declare.fields.kinds import is_record_id
from countersign.kernel.database.port import Dialect, Value
from countersign.records.access.view import READING, Caller, Condition, ModelView, Rows, View
from countersign.records.commands import unmask_input
from countersign.records.commands.errors import BadInput, no_such_record
from countersign.records.commands.filters import DelegatedParameters, Scope, any_of
from countersign.records.commands.run import Run


async def check_comment(run: Run, values: Mapping[str, Stored]) -> None:
    """Require that a comment is about a record that the caller sees, of a model that has comments.

    Raises:
        BadInput: the record does not exist for the caller, or its model has no comments.
    """
    model, record_id = str(values.get("model")), str(values.get("record"))
    view = run.caller.view.models.get(model)
    # When the service itself writes records, for example demonstration data, the caller has no views.
    if run.caller.view.models and (view is None or not _may_be_id(view, record_id)):
        raise no_such_record()
    if view is not None and not await unmask_input.exists(run, model, record_id):
        raise no_such_record()
    if view is not None and not view.model.comments:
        raise BadInput(f"comment.model: {model} has no comments: declare the model with the option `comments`")
    if view is not None and not view.has_comments:
        raise BadInput(f"comment.model: comments on {model} are for people who see all its records")


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
        readable = [name for name, view in self.view.models.items() if view.has_comments]
        return f"({' OR '.join([self._of_model(alias, name, add_parameter) for name in readable]) or '1 = 0'})"

    def _of_model(self, alias: str, name: str, add_parameter: Callable[[Value], str]) -> str:
        view = self.view.models[name]
        if view.model.table is not None:
            # The records are in another database.
            return f"({alias}.model = {add_parameter(name)})"
        visible_condition = any_of(
            Scope(self.dialect, DelegatedParameters(add_parameter), "subject"), view.model, view.visible
        )
        about = f'EXISTS (SELECT 1 FROM "{name}" AS subject WHERE subject.id = {alias}.record AND {visible_condition})'
        return f"({alias}.model = {add_parameter(name)} AND {about})"


def with_comments(caller: Caller, dialect: Dialect) -> Caller:
    """Return the caller with a view of comments that contains only those on records visible to the caller.
    Administrators see every record. Only its author changes a comment: an agent what it has written itself, and a
    person also what the own agents have written."""
    view = caller.view.models.get("comment")
    if view is None:
        return caller
    # The other commands reach only visible comments anyway.
    conditions: dict[str, tuple[Where | Condition, ...]] = {"update": (where("author", eq=caller.user_id),)}
    if not caller.is_administrator:
        conditions |= dict.fromkeys(READING, (CommentVisibility(caller.view, dialect),))
    if caller.is_agent:
        conditions["update"] = (where("author", eq=caller.user_id), where("agent", eq=caller.agent))
    comments = replace(
        view, rows={name: _narrowed(rows, conditions.get(name, ())) for name, rows in view.rows.items()}
    )
    return replace(caller, view=replace(caller.view, models={**caller.view.models, "comment": comments}))


def _narrowed(rows: Rows, conditions: tuple[Where | Condition, ...]) -> Rows:
    if not conditions:
        return rows
    return (conditions,) if rows is None else tuple((*row, *conditions) for row in rows)
