"""Examples that keep to their schemas: each value by the name of what it is for, or made from what its schema says."""

import re
from collections.abc import Mapping
from typing import Any, cast

from countersign.distribution.documents.schemas import Document

_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
_DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_JWT = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln"

NAMED: Mapping[str, object] = {
    "id": _ID,
    "slug": "star-harbour",
    "title": "Star Harbour",
    "description": "Trade, drift and repair at the edge of the map.",
    "name": "Northwind Games",
    "org": "northwind-games",
    "version": "1.4.0",
    "from": "1.3.0",
    "from_version": "1.3.0",
    "to_version": "1.4.0",
    "notes": "Fixes a crash at the start.",
    "tags": ["strategy", "space"],
    "tag": "strategy",
    "q": "harbour",
    "query": "Which games run on Linux?",
    "answer": "Star Harbour runs on Linux.",
    "platforms": ["windows", "linux"],
    "platform": "linux",
    "kind": "game",
    "channel": "stable",
    "status": "public",
    "homepage": "https://northwind-games.example/star-harbour",
    "license": "proprietary",
    "reason": "It loses saved games.",
    "email": "player@example.com",
    "login_hint": "player@example.com",
    "password": "a long sentence of your own",
    "filename": "star-harbour-1.4.0.zip",
    "alt": "The harbour at dawn",
    "size": 1048576,
    "width": 1280,
    "height": 720,
    "sha256": _DIGEST,
    "manifest_sha256": _DIGEST,
    "keyid": _DIGEST,
    "code": "7K3M9-QX2WD-F4TBN-8HZRC",
    "codes": ["7K3M9-QX2WD-F4TBN-8HZRC"],
    "products": ["star-harbour"],
    "count": 1,
    "limit": 20,
    "cursor": "eyJ2IjoxfQ.c2lnbmF0dXJl",
    "next_cursor": None,
    "type": "artifact.verify",
    "payload": {"artifact_id": _ID},
    "scope": "read:library",
    "scopes": ["read:library"],
    "role": "publisher",
    "access_token": _JWT,
    "token_type": "Bearer",
    "expires_in": 86400,
    "grant_type": "client_credentials",
    "client_id": "demo-publisher",
    "client_secret": "a-secret",
    "redirect_uri": "https://app.example/callback",
    "redirect_uris": ["https://app.example/callback"],
    "assertion": _JWT,
    "identity_assertion": _JWT,
    "return_to": "/",
    "progress": 1,
    "sort": "title",
    "format": "json",
    "detail": "no product has this id or slug",
    "Idempotency-Key": "5f0c1b52-3c8e-4c4a-9f1e-2d9a3c1b7e60",
    "If-None-Match": '"9f86d081884c7d659a2feaa0"',
    "If-Match": '"9f86d081884c7d659a2feaa0"',
    "If-Range": '"9f86d081884c7d659a2feaa0"',
    "Range": "bytes=0-1023",
    "Content-Range": "bytes 0-1023/4096",
    "Prefer": "wait=5",
}
_FORMATS: Mapping[str, str] = {
    "uuid": _ID,
    "uri": "https://store.example/api/v1/products",
    "uri-reference": "/api/v1/products",
    "date-time": "2026-03-01T12:00:00Z",
    "date": "2026-03-01",
}
_FORM_OF: Mapping[str, re.Pattern[str]] = {
    "uuid": re.compile(r"[0-9a-f]{8}-"),
    "uri": re.compile(r"https?://"),
    "uri-reference": re.compile(r"https?://|/"),
    "date-time": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T"),
    "date": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
}
_KINDS: Mapping[type, str] = {str: "string", list: "array", int: "integer", dict: "object", type(None): "null"}
_DEEPEST = 12


class Examples:
    """Makes examples of schemas, which may refer to these components."""

    def __init__(self, components: Mapping[str, Document]) -> None:
        self._components = components

    def of(self, schema: Document, name: str = "", depth: int = 0) -> Any:
        """A value that the schema allows, as what is called `name` would be. `allOf`, `not` and conditions are not
        looked at; the documents have none."""
        if "$ref" in schema:
            return self.of(self._components[str(schema["$ref"]).rpartition("/")[2]], name, depth + 1)
        if name in NAMED and _fits(NAMED[name], schema):
            return NAMED[name]
        if said := schema.get("examples") or schema.get("enum"):
            return said[0]
        if "default" in schema:
            return schema["default"]
        if "anyOf" in schema:
            parts = cast("list[Document]", schema["anyOf"])
            return self.of(next((part for part in parts if part.get("type") != "null"), parts[0]), name, depth + 1)
        return self._of_type(schema, name, depth)

    def _of_type(self, schema: Document, name: str, depth: int) -> Any:
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, name, depth)
        if kind == "string":
            return _text(schema)
        if name == "status" and kind == "integer":
            return 200
        if kind in ("integer", "number"):
            return schema.get("minimum", min(1, schema.get("maximum", 1)))
        return kind == "boolean"

    def _object(self, schema: Document, depth: int) -> Document:
        members: Mapping[str, Document] = schema.get("properties", {})
        required = schema.get("required", ())
        # What refers to itself ends here.
        chosen = {each: members[each] for each in members if depth < _DEEPEST or each in required}
        return {each: self.of(member, each, depth + 1) for each, member in chosen.items()}

    def _array(self, schema: Document, name: str, depth: int) -> list[Any]:
        items = schema.get("items")
        if not isinstance(items, dict) or depth >= _DEEPEST:
            return []
        held = cast("Document", items)
        return [self.of(held, name.removesuffix("s"), depth + 1) for _ in range(max(1, schema.get("minItems", 1)))]


def _fits(value: object, schema: Document) -> bool:
    """Whether a known value is one for this schema, as far as the names in use need telling apart."""
    if "anyOf" in schema:
        return any(_fits(value, part) for part in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    kind = _KINDS[type(value)]
    if schema.get("type") not in (kind, "number" if kind == "integer" else kind):
        return False
    if isinstance(value, str):
        return _is_text_for(value, schema)
    if isinstance(value, list):
        return all(_fits(each, schema.get("items", {})) for each in cast("list[object]", value))
    if isinstance(value, int):
        return schema.get("minimum", value) <= value <= schema.get("maximum", value)
    return True


def _is_text_for(value: str, schema: Document) -> bool:
    if schema.get("format") in _FORMATS and _FORM_OF[schema["format"]].match(value) is None:
        return False
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return False
    return re.search(schema.get("pattern", ""), value) is not None


def _text(schema: Document) -> str:
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    for candidate in ("text", "a", _DIGEST, "a@example.com", "https://store.example/", "1.0.0"):
        if _is_text_for(candidate, schema):
            return candidate
    return "x" * schema.get("minLength", 1)
