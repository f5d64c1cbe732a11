"""The store's own description of its API, from openapi.json."""

import json
from typing import Any

from countersign.store.apidocs import openapi
from tools.reference import EVERY_ROUTE

DESCRIPTION: dict[str, Any] = json.loads(
    openapi.encode(openapi.document(EVERY_ROUTE, "http://store.example", "countersign"))
)


def resolve_reference(part: dict[str, Any]) -> dict[str, Any]:
    """The part, or what its reference points to."""
    if "$ref" not in part:
        return part
    found: Any = DESCRIPTION
    for step in part["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    assert isinstance(found, dict)
    return found
