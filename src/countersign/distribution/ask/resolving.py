"""Names in a typed query that are to be looked for, and the slugs of the products and publishers they mean."""

from typing import Any, NamedTuple, cast

import msgspec

from countersign.distribution.ask import fuzzy
from countersign.distribution.ask.names import UNRESOLVED
from countersign.distribution.ask.query import Query
from countersign.kernel.database.port import Database


class Meant(NamedTuple):
    """A query with all its names found; else the name that was not, and what it may mean."""

    query: Query | None
    name: str = ""
    candidates: tuple[str, ...] = ()
    is_org: bool = False


def names_it(query: Query, name: str) -> bool:
    """Whether this name is among those that are to be looked for in the query."""
    return msgspec.json.encode(f"{UNRESOLVED}{name}") in msgspec.json.encode(query)


def unresolved(query: Query) -> Query:
    """The query with every name marked as one to be looked for."""
    return msgspec.convert(_unresolved(msgspec.to_builtins(query)), Query)


def _unresolved(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_unresolved(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    named = members.get("is") in ("slug", "org", "maker_of")
    return {
        name: _marked(each) if name in ("product", "products") or (named and name == "value") else _unresolved(each)
        for name, each in members.items()
    }


def _marked(value: Any) -> Any:
    return (
        f"{UNRESOLVED}{value}"[:200] if isinstance(value, str) else [_marked(each) for each in cast("list[Any]", value)]
    )


class _Unfound(Exception):
    """A name in a query is no product's or organisation's."""

    def __init__(self, name: str, meant: fuzzy.Meant, *, is_org: bool) -> None:
        super().__init__(name)
        self.name, self.meant, self.is_org = name, meant, is_org


async def resolved(database: Database, query: Query) -> Meant:
    """The query with each name that has to be looked for replaced by its slug."""
    try:
        whole = await _replaced(database, msgspec.to_builtins(query))
    except _Unfound as unfound:
        return Meant(None, unfound.name, tuple(unfound.meant.candidates), unfound.is_org)
    return Meant(msgspec.convert(whole, Query))


async def _replaced(database: Database, value: Any, *, is_org: bool = False) -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        by = members.get("is") == "org"
        return {name: await _replaced(database, each, is_org=by) for name, each in members.items()}
    if isinstance(value, list | tuple):
        return [await _replaced(database, each) for each in cast("list[Any]", value)]
    if not (isinstance(value, str) and value.startswith(UNRESOLVED)):
        return value
    name = value.removeprefix(UNRESOLVED)
    meant = await (fuzzy.org(database, name) if is_org else fuzzy.product(database, name))
    if meant.slug is None:
        raise _Unfound(name, meant, is_org=is_org)
    return meant.slug
