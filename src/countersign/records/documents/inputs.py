"""JSON Schemas (2020-12) of commands' inputs, records and answers, made from one caller's view."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from countersign.declare import Declared, Field
from countersign.records.access.view import ModelView
from countersign.records.commands.command import moves
from countersign.records.commands.csv_format import DATE_ORDERS, DECIMAL_MARKS, SEPARATORS
from countersign.records.commands.export import FORMATS, FORMS
from countersign.records.commands.list_search import KINDS
from countersign.records.commands.queries import MAX_CONDITIONS, MAX_KEYS, MAX_ROWS, MAX_VALUES

Schema: TypeAlias = dict[str, Any]

_ID: Schema = {"type": "string", "description": "id of the record"}
_PLAIN: list[Schema] = [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}]
_VALUES: Schema = {"type": "array", "items": {"anyOf": _PLAIN}, "minItems": 1, "maxItems": MAX_VALUES}
_VALUE: Schema = {"anyOf": [*_PLAIN, _VALUES], "description": "of the field's kind; array for in, bool for is_null"}
_REVISION: Schema = {"type": "integer", "description": "refuse when the record has changed since this revision"}

_CASCADE: Schema = {
    "type": "boolean",
    "default": False,
    "description": "delete and empty what refers to the record as on_delete of each reference says (GET /api/meta); "
    "without it, the deletion is refused while another record refers to this one",
}

_NOTATION: Mapping[str, Schema] = {
    "separator": {"type": "string", "enum": list(SEPARATORS), "description": "between the cells of CSV"},
    "decimal": {"type": "string", "enum": list(DECIMAL_MARKS), "default": ".", "description": "the mark in amounts"},
    "date_order": {
        "type": "string",
        "enum": list(DATE_ORDERS),
        "default": "ymd",
        "description": "of day, month and year in dates; YYYY-MM-DD is read in any case",
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

OWN: Mapping[str, Schema] = {
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
    "session.revoke": {"id": {"type": "string", "description": "id of the session; left out: your own"}},
    "agent_token.revoke": {"id": _ID},
    "user.invite": {"id": _ID},
    "audit_entry.verify": {},
}
_REQUIRED: Mapping[str, list[str]] = {
    "plan.reject": ["id", "reason"],
    "plan.withdraw": ["id"],
    "plan.propose": ["steps"],
    "agent_token.revoke": ["id"],
    "user.invite": ["id"],
}


def field_schema(view: ModelView, field: Field, *, is_input: bool) -> Schema:
    """One field's value: a placeholder token where it is masked for this caller; null where it may be empty."""
    schema: Schema = dict(field.schema())
    if view.fields[field.name] == "masked":
        note = f"a placeholder token {field.personal}_<n>" + (", or new text in clear" if is_input else "")
        schema = {"type": "string", "description": note}
    if "type" in schema and (not field.required or (field.name in view.partly and not is_input)):
        schema["type"] = [schema["type"], "null"]
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    schema.setdefault("title", field.label)
    if field.help and "description" not in schema:
        schema["description"] = field.help
    return schema


def record_schema(view: ModelView) -> Schema:
    """A record as this caller reads it."""
    properties: Schema = {"id": {"type": "string"}, "revision": {"type": "integer"}}
    properties |= {
        name: field_schema(view, view.model.fields[name], is_input=False) for name in view.fields
    }
    return _object(properties, ["id", "revision", *view.fields])


def input_schema(view: ModelView, name: str) -> Schema:
    """The input of one command; what it does not name is refused."""
    special = OWN.get(f"{view.model.name}.{name}")
    if special is not None:
        return _object(dict(special), _REQUIRED.get(f"{view.model.name}.{name}", []))
    if name in ("get", "history"):
        return _object({"id": _ID}, ["id"])
    if name in ("list", "search"):
        return _object(query_properties(view), [])
    if name == "export":
        return _object({**query_properties(view), **_exporting(view)}, [])
    if name == "import":
        return _object(dict(IMPORT), ["csv"])
    if name == "count_by":
        by = {"type": "string", "enum": _grouped(view)}
        return _object({"field": by, "filter": query_properties(view)["filter"]}, ["field"])
    if name == "delete":
        return _object({"id": _ID, "revision": _REVISION, "cascade": _CASCADE}, ["id"])
    return _writing(view, name)


def _exporting(view: ModelView) -> Schema:
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


def _grouped(view: ModelView) -> list[str]:
    return [name for name in view.fields if view.sees_in_clear(name) and view.model.fields[name].kind in KINDS]


def _writing(view: ModelView, name: str) -> Schema:
    workflow = view.model.workflow
    written = [each for each in view.fields if each in view.writable]
    if name == "create":
        return _creating(view, written)
    if workflow is not None and name in workflow.moves:
        written = [each for each in workflow.moves[name].accepted_fields if each in view.fields]
    return _object({"id": _ID, "revision": _REVISION, **_fields(view, written)}, ["id"])


def _creating(view: ModelView, written: list[str]) -> Schema:
    """A governed field starts at its first option, so it is not asked for."""
    governed = None if view.model.workflow is None else view.model.workflow.field
    given = [each for each in written if each != governed]
    return _object(_fields(view, given), [each for each in given if _is_asked(view.model, each)])


def _is_asked(model: Declared, name: str) -> bool:
    field = model.fields[name]
    return field.required and field.default is None and model.filling_ref(name) is None


def _fields(view: ModelView, names: list[str]) -> Schema:
    return {name: field_schema(view, view.model.fields[name], is_input=True) for name in names}


def clear_fields(view: ModelView) -> list[str]:
    """The fields that may be filtered and ordered on, `id` first."""
    return ["id", *(name for name in view.fields if view.sees_in_clear(name) and view.model.fields[name].operators)]


def query_properties(view: ModelView) -> Schema:
    """The query object (API document, Query object and Limits)."""
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
    key = _object({"field": {"type": "string", "enum": names}, "dir": direction}, ["field"])
    return {
        "filter": {"type": "array", "maxItems": MAX_CONDITIONS, "items": condition, "description": "joined by AND"},
        "order": {"type": "array", "maxItems": MAX_KEYS, "items": key},
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_ROWS},
        "offset": {"type": "integer", "minimum": 0},
    }


def value_schema(view: ModelView, name: str) -> Schema:
    """What the command's `value` holds."""
    record = record_schema(view)
    if name == "list":
        return {"type": "array", "items": record}
    if name == "search":
        return _object({"rows": {"type": "array", "items": record}, "total": {"type": "integer"}}, ["rows", "total"])
    if name == "delete":
        return _object({"id": {"type": "string"}}, ["id"])
    if name in ("get", "create", "update") or name in moves(view.model):
        return record
    return {}


def _object(properties: Schema, required: list[str]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema
