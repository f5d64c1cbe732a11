"""Checks the views, dashboards and favourites that people save in the work app."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from countersign.declare.fields.field import Stored
from countersign.declare.rules.modules import is_name
from countersign.records.commands import filters
from countersign.records.commands.errors import BadInput, refuse_unknown_keys
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
    filters.read({name: value for name, value in query.items() if name in ("filter", "order")}, "view.query")
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
        filters.read({"filter": tile.filter}, "dashboard.tiles")


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


def _require_name(values: Mapping[str, Stored], key: str) -> None:
    if not is_name(str(values.get(key.partition(".")[2]))):
        raise BadInput(f"{key} must be the name of a model")


def _decoded(decoder: msgspec.json.Decoder[T], values: Mapping[str, Stored], key: str, default: str) -> T:
    text = values.get(key.partition(".")[2])
    try:
        return decoder.decode(default if text is None else str(text))
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise BadInput(f"{key} is not valid JSON of this field: {error}") from error
