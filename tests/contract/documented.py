"""Parses the tables of the API document."""

import re
from collections.abc import Callable
from typing import NamedTuple

ENDPOINTS = """
| GET | /health | query `format` (string, default json, optional) | none | 200 health object; 429 problem details |
| GET | /info | query `format` (as above) | none | 200 info object |
| GET | /products | query `cursor` (string, opaque), `limit` (integer, default 20, max 100) | none | 200 ProductList |
| GET | /products/{id} | path `id` (string: product id or slug) | none | 200 Product; 404 problem details |
| GET | /products/{id}/releases | path `id` (product id or slug) | none | 200 array of Release |
| GET | /library | query `limit` (integer, default 50, min 1, max 100), `cursor` (string) | none | \
200 array of Product entitled to the caller; 401 problem details |
| POST | /redeem | header `Idempotency-Key` (uuid, optional) | `code` (string, required) | 200 redeem result |
| POST | /batch | header `Idempotency-Key` (uuid, optional) | `operations` (array, required) | 200 batch response |
| POST | /jobs | header `Idempotency-Key` (uuid, optional) | `type` (string, required), `payload` (object, required) | \
200 JobStatus (finished synchronously); 202 JobStatus (queued) |
| GET | /jobs/{job_id} | path `job_id` (string uuid) | none | 200 JobStatus |
| GET | /sandbox | query `format` | none | 200 sandbox metadata |
| GET | /sandbox/api/v1/health | query `format` | none | 200 sandbox health |
| GET | /sandbox/api/v1/telemetry | query `format` | none | 200 sandbox telemetry |
| GET | /api/keys | query `tier` (string, default community; documented values community, sandbox, agent) | none | \
200 provisioned key |
| POST | /ask | query `stream` (boolean, default false; true enables Server-Sent Events output) | \
`query` (string, required) | 200 natural-language answer |
| GET | /ask | query `q` (string, required) | none | 200 natural-language answer |
"""

TABLES = {
    "Product": """
| id | string, uuid | yes | |
| slug | string | yes | usable in place of id in paths |
| title | string | yes | |
| description | string | no | |
| kind | string | yes | one of: game, app, tool |
| platforms | array of string | yes | each one of: windows, macos, linux, android, ios, web |
""",
    "ProductList": """
| items | array of Product | yes | |
| next_cursor | string or null | yes | opaque; null when there is no further page |
""",
    "Release": """
| version | string | yes | |
| channel | string | yes | one of: stable, beta, nightly, alpha |
| published_at | string, date-time | yes | |
| notes | string | no | |
""",
    "operation": """
| method | string | yes | one of: GET, POST, PUT |
| path | string | yes | |
| body | object | no | |
""",
    "result": """
| status | integer | yes | status of the inner call |
| body | object | yes | body of the inner call |
""",
    "JobStatus": """
| job_id | string, uuid | yes | |
| status | string | yes | one of: queued, running, completed, failed |
| progress | number | no | |
""",
    "problem details": """
| type | string, uri | yes |
| title | string | yes |
| status | integer | yes |
| detail | string | yes |
| instance | string, uri | no |
| code | string | no |
| resolution | string | no |
""",
}
OTHERS = """
| health | status* string, version string |
| info | service* string, version* string, storage string |
| sandbox metadata | sandbox* boolean, status* string, environment* string, free_tier boolean, self_serve_keys boolean |
| sandbox health | status* string, environment* string |
| sandbox telemetry | status* string, active_agents* integer |
| provisioned key | status* string, api_key* string, self_serve* boolean, free_tier boolean |
| natural-language answer | answer* string |
| redeem result | success* boolean, product_id* string uuid |
| batch response | results* array of result |
"""
PARTS = {("ProductList", "items"): "Product", ("batch response", "results"): "result"}
"""The type of the items of a member."""

Form = tuple[frozenset[str], str | None, frozenset[str] | None]
"""The types, format and values of a member; the items of an array are described as a member `name[]`."""


class DocumentedMember(NamedTuple):
    """A member of an object in the document."""

    form: Form
    is_required: bool


class DocumentedParameter(NamedTuple):
    """A parameter in the document. A field is None if the document omits it."""

    place: str
    type: str
    format: str | None
    default: object
    least: int | None
    most: int | None
    is_required: bool


class EndpointRow(NamedTuple):
    """A row of the endpoint table."""

    method: str
    path: str
    parameters: dict[str, DocumentedParameter]
    body: dict[str, DocumentedMember]
    answers: dict[int, tuple[str, bool]]


def _cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()]


def _form(form_text: str, notes: str = "") -> Form:
    kind, _, form = form_text.replace(", ", " ").partition(" ")
    values = re.search(r"(?<!each )one of: (.*)", notes)
    allowed_values = frozenset(values[1].split(", ")) if values else None
    if form == "or null":
        return frozenset({kind, "null"}), None, allowed_values
    return frozenset({kind}), form if form in ("uuid", "uri", "date-time") else None, allowed_values


def objects() -> dict[str, dict[str, DocumentedMember]]:
    """Return every object with its members. The items of an array of texts are the member `name[]`."""
    members_by_object: dict[str, dict[str, DocumentedMember]] = {}
    for name, table in TABLES.items():
        members_by_object[name] = {}
        for field, form_text, required, *notes in _cells(table):
            note_text = "".join(notes)
            members_by_object[name][field] = DocumentedMember(_form(form_text, note_text), required == "yes")
            if form_text == "array of string":
                members_by_object[name][f"{field}[]"] = DocumentedMember(
                    _form("string", note_text.removeprefix("each ")), is_required=True
                )
    for name, form_text in _cells(OTHERS):
        members = [member.partition(" ") for member in form_text.split(", ")]
        members_by_object[name] = {
            field.strip("*"): DocumentedMember(_form(form), field.endswith("*")) for field, _, form in members
        }
    return members_by_object


def rows() -> list[EndpointRow]:
    """Return the rows of the endpoint table."""
    return [
        EndpointRow(method, path, _parameters(parameters), _body(body), _answers(answers))
        for method, path, parameters, body, answers in _cells(ENDPOINTS)
    ]


def _parameters(cell: str) -> dict[str, DocumentedParameter]:
    parameters: dict[str, DocumentedParameter] = {}
    parameter_place = ""
    for named_place, name, form_text in re.findall(r"(query|path|header)? ?`([\w-]+)`(?: \(([^)]*)\))?", cell):
        parameter_place = named_place or parameter_place
        parameters[name] = _parameter(parameter_place, name, form_text)
    return parameters


def _parameter(parameter_place: str, name: str, words: str) -> DocumentedParameter:
    if name == "format":
        words = "string, default json, optional"
    kind = next((name for name in ("integer", "boolean") if words.startswith(name)), "string")
    bounds = {bound: int(value) for bound, value in re.findall(r"(min|max) (\d+)", words)}
    form = "uuid" if "uuid" in words else None
    is_required = parameter_place == "path" or "required" in words
    return DocumentedParameter(
        parameter_place, kind, form, _default(kind, words), bounds.get("min"), bounds.get("max"), is_required
    )


def _default(kind: str, form_text: str) -> object:
    converters: dict[str, Callable[[str], object]] = {"string": str, "integer": int, "boolean": "true".__eq__}
    default = re.search(r"default (\w+)", form_text)
    return converters[kind](default[1]) if default else None


def _body(cell: str) -> dict[str, DocumentedMember]:
    return {
        name: DocumentedMember(_form(words.partition(",")[0]), "required" in words)
        for name, words in re.findall(r"`(\w+)` \(([^)]*)\)", cell)
    }


def _answers(cell: str) -> dict[int, tuple[str, bool]]:
    """Return the object of each status, and whether the answer is an array of them."""
    answers: dict[int, tuple[str, bool]] = {}
    for status, answer_text in re.findall(r"(\d{3}) ([^;]*)", cell):
        name = re.sub(r" object$| \(.*| entitled.*", "", answer_text.strip().removeprefix("array of "))
        answers[int(status)] = (name, answer_text.startswith("array of"))
    return answers
