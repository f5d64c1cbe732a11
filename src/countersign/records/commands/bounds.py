"""The rows of a grant as bounds: what a command leaves behind must be among the records it may be run on."""

from collections.abc import Mapping

from countersign.declare import Where
from countersign.declare.computing import computed
from countersign.declare.fields.field import Stored
from countersign.records.access.view import Condition, ModelView
from countersign.records.commands import guard
from countersign.records.commands.refusals import no_such_record


def require_within(
    view: ModelView | None, command: str, values: Mapping[str, Stored], record_id: str | None = None
) -> None:
    """Insist that a record with these values is one that the caller's command reaches; or its rows would only bind what
    is there, and not what it makes.

    Raises:
        BadInput: it is not, as if there were no such record.
    """
    rows = () if view is None else view.rows.get(command, ())
    if rows is None or view is None:
        return
    empty: dict[str, Stored] = {name: 0 if each.sum_of else None for name, each in view.model.fields.items()}
    known = {**empty, **values, "id": record_id}
    known |= computed(view.model, known)
    if not any(all(_holds(view, known, each) for each in alternative) for alternative in rows):
        raise no_such_record()


def _holds(view: ModelView, values: Mapping[str, Stored], condition: Where | Condition) -> bool:
    """What no field's value can say, no input can promise."""
    return isinstance(condition, Where) and guard.holds(view.model, values, condition)
