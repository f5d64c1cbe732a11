"""Checks the records that pages store (views, dashboards, favourites and comments), and decides who sees a comment."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from countersign.declare.fields.field import Stored
from countersign.declare.fields.kinds import is_record_id
from countersign.declare.rules.modules import is_name
from countersign.kernel.database.port import Dialect, Value
from countersign.records.access.view import READING, Caller, ModelView, Rows, View
from countersign.records.commands import queries, unmask_input
from countersign.records.commands.errors import BadInput, no_such_record, refuse_unknown_keys
from countersign.records.commands.queries import DelegatedParameters, Scope, any_of
from countersign.records.commands.run import Run

T = TypeVar("T")

MAX_COLUMNS = 100
MAX_TILES = 24
_Name = Annotated[str, Meta(min_length=1, max_length=100)]
_Title = Annotated[str, Meta(max_length=200)]
_Cells = Annotated[int, Meta(ge=0, le=1_000)]


class ViewColumn(msgspec.Struct, forbid_unknown_fields=True):
    """A column of a saved view, with its width in pixels."""

    field: _Name
    width: Annotated[int, Meta(ge=20, le=2_000)] | None = None
    frozen: bool = False


class Tile(msgspec.Struct, forbid_unknown_fields=True):
    """A tile of a dashboard: its kind, its position in a grid of twelve columns, and the data or text that it shows."""

    kind: Literal["kpi", "line", "area", "bars", "bar", "pivot", "list", "text"]
    x: Annotated[int, Meta(ge=0, le=11)] = 0
    y: _Cells = 0
    w: Annotated[int, Meta(ge=1, le=12)] = 3
    h: Annotated[int, Meta(ge=1, le=50)] = 2
    title: _Title = ""
    model: _Name | None = None
    fn: Literal["count", "sum", "avg", "median", "share"] = "count"
    field: _Name | None = None
    date: _Name | None = None
    by: _Name | None = None
    step: Literal["day", "week", "month", "quarter", "year"] | None = None
    compare: bool = True
    better: Literal["up", "down"] | None = None
    view: _Name | None = None
    filter: list[dict[str, Any]] = []
    text: Annotated[str, Meta(max_length=2_000)] = ""


_QUERY = msgspec.json.Decoder(dict[str, Any])
_COLUMNS = msgspec.json.Decoder(list[str | ViewColumn])
_TILES = msgspec.json.Decoder(list[Tile])


async def check_view(run: Run, values: Mapping[str, Stored]) -> None:
    """Require that a saved view has the name of a model, a query object and columns.

    Raises:
        BadInput: a value is malformed. The error names the field.
    """
    _require_name(values, "view.model")
    query = _decoded(_QUERY, values, "view.query", "{}")
    refuse_unknown_keys(query, ("filter", "order", "q", "group_by"), "view.query")
    queries.read({name: value for name, value in query.items() if name in ("filter", "order")}, "view.query")
    if len(_decoded(_COLUMNS, values, "view.columns", "[]")) > MAX_COLUMNS:
        raise BadInput(f"view.columns may have {MAX_COLUMNS} columns at most")


async def check_dashboard(run: Run, values: Mapping[str, Stored]) -> None:
    """Require that the tiles of a dashboard are valid.

    Raises:
        BadInput: the tiles are malformed or too many.
    """
    tiles = _decoded(_TILES, values, "dashboard.tiles", "[]")
    if len(tiles) > MAX_TILES:
        raise BadInput(f"dashboard.tiles may have {MAX_TILES} tiles at most")
    for tile in tiles:
        queries.read({"filter": tile.filter}, "dashboard.tiles")


async def check_favourite(run: Run, values: Mapping[str, Stored]) -> None:
    """Require that a favourite leads to a page of this service.

    Raises:
        BadInput: the path is not an absolute path of this service.
    """
    path = str(values.get("path") or "")
    if (
        not path.startswith("/")
        or path.startswith("//")
        or "\\" in path
        or any(character.isspace() for character in path)
    ):
        raise BadInput("favourite.path must be a path of this service, such as /models/lead")


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


def _require_name(values: Mapping[str, Stored], key: str) -> None:
    if not is_name(str(values.get(key.partition(".")[2]))):
        raise BadInput(f"{key} must be the name of a model")


def _decoded(decoder: msgspec.json.Decoder[T], values: Mapping[str, Stored], key: str, default: str) -> T:
    text = values.get(key.partition(".")[2])
    try:
        return decoder.decode(default if text is None else str(text))
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise BadInput(f"{key} is not valid JSON of this field: {error}") from error


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
