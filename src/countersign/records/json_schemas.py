"""JSON Schemas of the inputs and the results of commands, as a caller may use and see them."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from countersign.declare import Date, Declared, Field, Number, Ref
from countersign.records.access.view import ModelView
from countersign.records.commands import limits, series
from countersign.records.commands.command import moves
from countersign.records.commands.csv_format import DATE_ORDERS, DECIMAL_MARKS, SEPARATORS
from countersign.records.commands.export import FORMATS, FORMS

Schema: TypeAlias = dict[str, Any]

_ID: Schema = {"type": "string", "description": "id of the record"}
_PLAIN: list[Schema] = [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}]
_VALUES: Schema = {"type": "array", "items": {"anyOf": _PLAIN}, "minItems": 1, "maxItems": limits.MAX_VALUES}
_VALUE: Schema = {"anyOf": [*_PLAIN, _VALUES], "description": "of the field's kind; array for in, bool for is_null"}
_REVISION: Schema = {"type": "integer", "description": "refuse if the record has changed since this revision"}

_CASCADE: Schema = {
    "type": "boolean",
    "default": False,
    "description": "delete and empty what refers to the record as on_delete of each reference says (GET /api/meta); "
    "without it, the deletion is refused while another record refers to this one",
}

_NOTATION: Mapping[str, Schema] = {
    "separator": {"type": "string", "enum": list(SEPARATORS), "description": "the separator between the cells of CSV"},
    "decimal": {
        "type": "string",
        "enum": list(DECIMAL_MARKS),
        "default": ".",
        "description": "the decimal mark of amounts",
    },
    "date_order": {
        "type": "string",
        "enum": list(DATE_ORDERS),
        "default": "ymd",
        "description": "the order of day, month and year in dates; YYYY-MM-DD is always accepted",
    },
}

_FOUND = ["rows", "total"]
_EXTRAS: Schema = {
    "sums": {
        "type": "object",
        "description": "by field, over all matches; sum is null where it exceeds 2^53 - 1",
        "additionalProperties": {
            "type": "object",
            "properties": {"sum": {"type": ["integer", "null"]}, "count": {"type": "integer"}},
        },
    },
    "names": {"type": "object", "description": "by reference, the names of the records by id"},
}
_RELATED_LIMIT: Schema = {
    "type": "integer",
    "minimum": 0,
    "maximum": limits.MAX_RELATED,
    "default": limits.DEFAULT_RELATED,
    "description": "the number of records of each reference to return",
}
_RELATED: Schema = {
    "type": "object",
    "properties": {
        "model": {"type": "string"},
        "field": {"type": "string"},
        "count": {"type": "integer"},
        "items": {"type": "array", "items": {"type": "object"}},
        "names": {"type": "object"},
    },
}

IMPORT: Mapping[str, Schema] = {
    "csv": {"type": "string", "description": "the text of the file; its first row has names or labels of fields"},
    "dry_run": {"type": "boolean", "default": False, "description": "check every row and write nothing"},
    "columns": {
        "type": "array",
        "items": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "description": "for each column of the file its field (null: left out; <field>:amount: money in decimals), "
        "in place of what the first row says",
    },
    "restore": {
        "type": "boolean",
        "default": False,
        "description": "keep ids, states and read-only values as the file has them; for administrators",
    },
    **_NOTATION,
}

BUILTIN_INPUTS: Mapping[str, Schema] = {
    "plan.reject": {"id": _ID, "reason": {"type": "string"}},
    "plan.withdraw": {"id": _ID, "reason": {"type": "string"}},
    "plan.propose": {
        "steps": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {"command": {"type": "string"}, "input": {"type": "object"}},
                "required": ["command"],
                "additionalProperties": False,
            },
        },
        "why": {"type": "string"},
    },
    "plan.watch": {
        "since": {"type": "integer", "minimum": 0},
        "wait_s": {"type": "integer", "minimum": 0, "maximum": 25},
    },
    "session.revoke": {"id": {"type": "string", "description": "id of the session; by default your own"}},
    "agent_token.revoke": {"id": _ID},
    "agent_token.calls": {
        "id": _ID,
        "after": {"type": "integer", "minimum": 0},
        "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
    },
    "user.invite": {"id": _ID},
    "user.deactivate": {"id": _ID},
    "user.home": {},
    "user.recent": {"limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 20}},
    "user.find": {
        "q": {"type": "string", "minLength": 1, "maxLength": 100},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
    },
    "setting.data_map": {},
    "setting.decide": {
        "field": {"type": "string", "description": "model.field, as setting.data_map names it"},
        "decision": {"type": "string", "enum": ["personal", "clear", "hidden"]},
        "label": {"type": "string", "description": "of the placeholder tokens of a personal field, such as EMAIL"},
        "reason": {"type": "string", "minLength": 1, "maxLength": 500},
        "revision": {"type": "string", "description": "the revision of the field in setting.data_map"},
        "confirmed": {
            "type": "boolean",
            "default": False,
            "description": "agents may read the values, of which they see tokens or nothing now",
        },
    },
    "audit_entry.verify": {},
    "comment.people": {
        "model": {"type": "string", "description": "the model of the record"},
        "record": {"type": "string", "description": "the id of the record"},
        "q": {"type": "string", "maxLength": 100, "default": "", "description": "part of the name"},
    },
}
_REQUIRED: Mapping[str, list[str]] = {
    "plan.reject": ["id", "reason"],
    "plan.withdraw": ["id"],
    "plan.propose": ["steps"],
    "agent_token.revoke": ["id"],
    "agent_token.calls": ["id"],
    "user.deactivate": ["id"],
    "user.find": ["q"],
    "user.invite": ["id"],
    "setting.decide": ["field", "decision", "reason", "revision"],
    "comment.people": ["model", "record"],
}


def field_schema(view: ModelView, field: Field, *, is_input: bool) -> Schema:
    """Return the schema of a field's value. If the field is masked for this caller, the value is a placeholder token.
    If the field may be empty, the value may be null."""
    schema: Schema = dict(field.schema())
    if view.fields[field.name] == "masked":
        schema = {"type": "string", "description": _token_description(view, field, is_input=is_input)}
    if "type" in schema and (not field.required or (field.name in view.partly_visible and not is_input)):
        schema["type"] = [schema["type"], "null"]
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    schema.setdefault("title", field.label)
    if field.help and "description" not in schema:
        schema["description"] = field.help
    return schema


def _token_description(view: ModelView, field: Field, *, is_input: bool) -> str:
    return f"a placeholder token {field.personal}_<n>" + (", or new text in clear" if is_input else "")


def record_schema(view: ModelView) -> Schema:
    """Return the schema of a record as this caller reads it."""
    properties: Schema = {"id": {"type": "string"}, "revision": {"type": "integer"}}
    properties |= {
        name: field_schema(view, view.model.fields[name], is_input=False) for name in view.fields
    }
    return _object(properties, ["id", "revision", *view.fields])


def input_schema(view: ModelView, name: str) -> Schema:
    """Return the schema of a command's input. Members that the schema does not name are refused."""
    special = BUILTIN_INPUTS.get(f"{view.model.name}.{name}")
    if special is not None:
        return _object(dict(special), _REQUIRED.get(f"{view.model.name}.{name}", []))
    make_schema = _INPUTS.get(name)
    return make_schema(view) if make_schema is not None else _write_input(view, name)


_INPUTS: Mapping[str, Callable[[ModelView], Schema]] = {
    "get": lambda _: _object({"id": _ID}, ["id"]),
    "history": lambda _: _object({"id": _ID}, ["id"]),
    "list": lambda view: _object(query_properties(view), []),
    "search": lambda view: _object({**query_properties(view), **_search_members(view)}, []),
    "related": lambda _: _object({"id": _ID, "limit": _RELATED_LIMIT}, ["id"]),
    "export": lambda view: _object({**query_properties(view), **_export_members(view)}, []),
    "import": lambda _: _object(dict(IMPORT), ["csv"]),
    "count_by": lambda view: _object(
        {"field": _groupable_field_schema(view), "filter": query_properties(view)["filter"]}, ["field"]
    ),
    "series": lambda view: _series_input(view),
    "delete": lambda _: _object({"id": _ID, "revision": _REVISION, "cascade": _CASCADE}, ["id"]),
}


def _groupable_field_schema(view: ModelView) -> Schema:
    return _one_of(_groupable_fields(view))


def _one_of(names: list[str]) -> Schema:
    """Return the schema of a string that is one of the names. An empty enum is left out, because some MCP clients
    refuse all tools if one schema contains it."""
    return {"type": "string", "enum": names} if names else {"type": "string"}


def _search_members(view: ModelView) -> Schema:
    """Return the members that only `search` has."""
    numbers = [field for field in clear_fields(view) if isinstance(view.model.fields.get(field), Number)]
    refs = [name for name in view.fields if isinstance(view.model.fields[name], Ref)]
    schema: Schema = {}
    if numbers:
        items = {"type": "string", "enum": numbers}
        description = "return their sums over all matches"
        schema["sums"] = {"type": "array", "maxItems": limits.MAX_SUMS, "items": items, "description": description}
    if refs:
        items = {"type": "string", "enum": refs}
        description = "return the names of the records to which they refer"
        schema["expand"] = {"type": "array", "maxItems": limits.MAX_REFS, "items": items, "description": description}
    return schema


def _series_input(view: ModelView) -> Schema:
    """Return the input of `series`."""
    clear = [field for field in view.fields if view.sees_in_clear(field)]
    fields = view.model.fields
    day: Schema = {"type": "string", "format": "date"}
    return _object(
        {
            "fn": {"type": "string", "enum": list(series.FUNCTIONS), "default": "count"},
            "field": _one_of([name for name in clear if isinstance(fields[name], Number)]),
            "date": _one_of([name for name in clear if isinstance(fields[name], Date)]),
            "step": {"type": "string", "enum": list(series.STEPS), "default": "month"},
            "from": day,
            "to": day,
            "by": _one_of(_groupable_fields(view)),
            "filter": query_properties(view)["filter"],
        },
        ["date", "from", "to"],
    )


def _export_members(view: ModelView) -> Schema:
    names = {"type": "string", "enum": ["id", "revision", *view.fields]}
    return {
        "content_type": {"type": "string", "enum": list(FORMATS), "default": FORMATS[0]},
        "form": {
            "type": "string",
            "enum": list(FORMS),
            "default": "raw",
            "description": "raw: names of fields, ids, minor units; shown: labels, names of records, decimals",
        },
        "fields": {"type": "array", "items": names, "minItems": 1, "description": "the columns, in their order"},
        **_NOTATION,
    }


def _groupable_fields(view: ModelView) -> list[str]:
    return [name for name in view.fields if view.sees_in_clear(name) and view.model.fields[name].is_countable]


def _write_input(view: ModelView, name: str) -> Schema:
    workflow = view.model.workflow
    written_fields = [field for field in view.fields if field in view.writable]
    if name == "create":
        return _create_input(view, written_fields)
    if workflow is not None and name in workflow.moves:
        written_fields = [field for field in workflow.moves[name].accepted_fields if field in view.fields]
    return _object({"id": _ID, "revision": _REVISION, **_field_schemas(view, written_fields)}, ["id"])


def _create_input(view: ModelView, written_fields: list[str]) -> Schema:
    """Return the schema of the input of `create`. It does not contain the state field, because that field starts at its
    first option."""
    state_field = None if view.model.workflow is None else view.model.workflow.field
    input_fields = [written_field for written_field in written_fields if written_field != state_field]
    return _object(
        _field_schemas(view, input_fields), [field for field in input_fields if _is_required_input(view.model, field)]
    )


def _is_required_input(model: Declared, name: str) -> bool:
    field = model.fields[name]
    return field.required and field.default is None and model.filling_ref(name) is None


def _field_schemas(view: ModelView, names: list[str]) -> Schema:
    return {name: field_schema(view, view.model.fields[name], is_input=True) for name in names}


def clear_fields(view: ModelView) -> list[str]:
    """Return the fields by which the caller may filter and order, starting with `id`."""
    return ["id", *(name for name in view.fields if view.sees_in_clear(name) and view.model.fields[name].operators)]


def query_properties(view: ModelView) -> Schema:
    """Return the properties of the query object (API document, Query object and Limits)."""
    names = clear_fields(view)
    operators = sorted({"eq", "ne", "in", "is_null", "contains", "gt", "gte", "lt", "lte"})
    condition = _object(
        {
            "field": {"type": "string", "enum": names},
            "op": {"type": "string", "enum": operators},
            "value": _VALUE,
        },
        ["field", "op", "value"],
    )
    direction = {"type": "string", "enum": ["asc", "desc"]}
    sortable = [name for name in names if name == "id" or view.model.fields[name].sortable]
    key = _object({"field": {"type": "string", "enum": sortable}, "dir": direction}, ["field"])
    return {
        "filter": {
            "type": "array",
            "maxItems": limits.MAX_CONDITIONS,
            "items": condition,
            "description": "joined by AND",
        },
        "order": {"type": "array", "maxItems": limits.MAX_KEYS, "items": key},
        "limit": {"type": "integer", "minimum": 1, "maximum": limits.MAX_ROWS},
        "offset": {"type": "integer", "minimum": 0},
    }


def value_schema(view: ModelView, name: str) -> Schema:
    """Return the schema of the member `value` in the response to a command."""
    record = record_schema(view)
    if name == "list":
        return {"type": "array", "items": record}
    if name == "search":
        return _object({"rows": {"type": "array", "items": record}, "total": {"type": "integer"}, **_EXTRAS}, _FOUND)
    if name == "related":
        return {"type": "array", "items": _RELATED}
    if name == "delete":
        return _object({"id": {"type": "string"}}, ["id"])
    if name in ("get", "create", "update") or name in moves(view.model):
        return record
    return {}


def _object(properties: Schema, required_names: list[str]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required_names} if required_names else schema
