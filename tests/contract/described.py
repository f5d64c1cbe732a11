"""The store's own description of its API, from openapi.json."""

import json
from typing import Any

from countersign.store.apidocs import openapi
from tools.reference import EVERY_ROUTE

DESCRIPTION: dict[str, Any] = json.loads(
    openapi.encode(openapi.document(EVERY_ROUTE, "http://store.example", "countersign"))
)


def resolve_reference(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the part, or what its reference points to."""
    if "$ref" not in schema:
        return schema
    schema_part: Any = DESCRIPTION
    for step in schema["$ref"].removeprefix("#/").split("/"):
        schema_part = schema_part[step]
    assert isinstance(schema_part, dict)
    return schema_part
