"""ROOT/openapi/{section}: one section of the API description by itself, small enough to be read whole by an agent.

Of refusals it names status and codes; what every address has in common (headers, examples of refusals) is in the
whole description.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeAlias

from countersign.distribution.auth.callers import StoreRequest
from countersign.distribution.auth.sessions import cookie_name
from countersign.distribution.context import Store
from countersign.distribution.documents import serving
from countersign.distribution.documents.schemas import Document
from countersign.kernel.errors import NotFound
from countersign.kernel.http.response import Response, encode
from countersign.kernel.http.routing import Nothing, Route, route

FOLDER = "/openapi"
Whole: TypeAlias = Callable[[str, str], Document]
"""Makes the whole description, given the root address and the name of the session's cookie."""

_REFERENCE = re.compile(r'"#/components/([a-zA-Z]+)/([^"]+)"')


class SectionNotFound(NotFound):
    """The description has no section of this name."""

    resolution = "Use a section that a tag of /openapi.json names under externalDocs."


def address(root_url: str, section: str) -> str:
    """Where a section is served."""
    return f"{root_url}{FOLDER}/{section}"


def routes(whole: Whole) -> tuple[Route[Store], ...]:
    """The route of the sections of a description."""

    @lru_cache(maxsize=4)
    def encoded(root_url: str, cookie: str) -> dict[str, bytes]:
        found = whole(root_url, cookie)
        return {tag["name"]: encode(of(found, tag["name"])) for tag in found["tags"]}

    async def show_section(call: StoreRequest[Nothing, Nothing]) -> Response:
        """Describe one section of the API."""
        sections = encoded(call.context.root_url, cookie_name(call.context))
        found = sections.get(call.path["section"])
        if found is None:
            raise SectionNotFound(
                "the description has no such section", resolution=f"Use one of: {', '.join(sections)}."
            )
        return serving.answer(found)

    return (
        route(
            "GET",
            f"{FOLDER}/{{section}}",
            show_section,
            answers={200: dict},
            refusals=(SectionNotFound,),
            **serving.OPTIONS,
        ),
    )


def of(whole: Document, section: str) -> Document:
    """The description of one section: its operations, and the components that these refer to."""
    paths = {path: _operations(whole, item, section) for path, item in whole["paths"].items()}
    webhooks = {name: item for name, item in whole["webhooks"].items() if section in item["post"]["tags"]}
    made: Document = {**whole, "components": {}, "webhooks": webhooks}
    made["tags"] = [tag for tag in whole["tags"] if tag["name"] == section]
    made["paths"] = {path: item for path, item in paths.items() if item}
    if not webhooks:
        del made["webhooks"]
    made["components"] = {**_components(whole, made), "securitySchemes": whole["components"]["securitySchemes"]}
    return made


def _operations(whole: Document, item: Document, section: str) -> Document:
    return {method: _slim(whole, each) for method, each in item.items() if section in each["tags"]}


def _slim(whole: Document, operation: Document) -> Document:
    responses = {status: _answer(whole, status, each) for status, each in operation["responses"].items()}
    return {**operation, "responses": {status: each for status, each in responses.items() if each}}


def _answer(whole: Document, status: str, answer: Document) -> Document:
    """An answer without headers; of a refusal, the codes. What the server refuses before any route has none."""
    if "$ref" in answer:
        answer = whole["components"]["responses"][str(answer["$ref"]).rpartition("/")[2]]
    if int(status) < 400:
        return {name: value for name, value in answer.items() if name not in ("headers", "links")}
    if "x-codes" not in answer:
        return {}
    return {"description": answer["description"], "x-codes": answer["x-codes"]}


def _components(whole: Document, made: Document) -> Document:
    """The components that the document refers to, and those that these refer to."""
    found: dict[str, dict[str, Any]] = {}
    waiting = _references(made)
    while waiting:
        kind, name = waiting.pop()
        if name not in found.setdefault(kind, {}):
            found[kind][name] = whole["components"][kind][name]
            waiting |= _references(found[kind][name])
    return {kind: dict(sorted(named.items())) for kind, named in sorted(found.items())}


def _references(part: object) -> set[tuple[str, str]]:
    pairs: Iterable[tuple[str, str]] = _REFERENCE.findall(encode(part).decode())
    return set(pairs)
