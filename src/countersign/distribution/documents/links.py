"""Links between operations: where what one answers with is asked for by another (OpenAPI, Link Object)."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from countersign.distribution.context import PREFIX
from countersign.distribution.documents.schemas import Document

Key: TypeAlias = tuple[str, str]


class Link(NamedTuple):
    """From an answer with this status: the operation that goes on, and what its parameters take from the answer
    (runtime expressions)."""

    source: Key
    status: int
    target: Key
    parameters: Mapping[str, str]


_PRODUCT = {"id": "$response.body#/id"}
_LISTED = {"id": "$response.body#/items/0/id"}
_JOB = {"job_id": "$response.body#/job_id"}
_RELEASE = {"id": "$request.path.id", "version": "$response.body#/version"}
_SAME_RELEASE = {"id": "$request.path.id", "version": "$request.path.version"}
_NEW_PRODUCT, _NEW_RELEASE = ("POST", "/products"), ("POST", "/products/{id}/releases")
_OF_RELEASE = "/products/{id}/releases/{version}"
_ARTIFACTS = ("POST", _OF_RELEASE + "/artifacts")

LINKS = (
    *(
        Link(_NEW_PRODUCT, 201, target, _PRODUCT)
        for target in (
            ("GET", "/products/{id}"),
            ("PUT", "/products/{id}"),
            ("DELETE", "/products/{id}"),
            ("GET", "/products/{id}/releases"),
            ("POST", "/products/{id}/media"),
            _NEW_RELEASE,
        )
    ),
    Link(("GET", "/products"), 200, ("GET", "/products/{id}"), _LISTED),
    Link(("GET", "/products"), 200, ("GET", "/products/{id}/releases"), _LISTED),
    Link(("GET", "/products"), 200, ("GET", "/products"), {"cursor": "$response.body#/next_cursor"}),
    Link(("GET", "/catalog"), 200, ("GET", "/catalog"), {"cursor": "$response.body#/next_cursor"}),
    *(
        Link(_NEW_RELEASE, 201, target, _RELEASE)
        for target in (
            ("PUT", _OF_RELEASE),
            ("DELETE", _OF_RELEASE),
            ("POST", _OF_RELEASE + "/publish"),
            ("POST", _OF_RELEASE + "/promote"),
            _ARTIFACTS,
        )
    ),
    Link(("POST", _OF_RELEASE + "/publish"), 200, ("POST", _OF_RELEASE + "/yank"), _SAME_RELEASE),
    Link(("POST", _OF_RELEASE + "/publish"), 200, ("POST", _OF_RELEASE + "/promote"), _SAME_RELEASE),
    Link(_ARTIFACTS, 201, ("GET", "/artifacts/{artifact_id}"), {"artifact_id": "$response.body#/artifact_id"}),
    *(
        Link(("POST", "/jobs"), status, target, _JOB)
        for status in (200, 202)
        for target in (("GET", "/jobs/{job_id}"), ("DELETE", "/jobs/{job_id}"), ("GET", "/jobs/{job_id}/events"))
    ),
    Link(("POST", "/codes"), 201, ("POST", "/codes/{batch_id}/revoke"), {"batch_id": "$response.body#/batch_id"}),
)


def of_answer(source: Key, status: int, ids: Mapping[Key, str]) -> Document:
    """The links from an answer, by the operation each leads to; `ids` are the operations there are, by method and
    whole path."""
    found: Document = {}
    for each in LINKS:
        to = ids.get(_whole(each.target))
        if (_whole(each.source), each.status) == (source, status) and to is not None:
            found[to] = {"operationId": to, "parameters": {**each.parameters}}
    return found


def _whole(key: Key) -> Key:
    return key[0], PREFIX + key[1]
