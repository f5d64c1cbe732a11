"""Schemathesis hooks that add to the store's description: a media type, and jobs that can be done.

Loaded by its command line in a process of its own (SCHEMATHESIS_HOOKS).
"""

import os
from typing import Any

import schemathesis

ARTIFACTS = tuple(os.environ["FUZZED_ARTIFACTS"].split())
JOB_TYPES = ("build.process", "archive.extract", "artifact.verify", "delta.make")


@schemathesis.serializer("application/secevent+jwt")
def as_it_is(_context: Any, value: Any) -> bytes:
    """Security events are sent as text without encoding."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@schemathesis.hook.apply_to(path="/", method="GET")
def map_headers(_context: Any, headers: Any) -> Any:
    """Request JSON from the root path, which otherwise answers with a page."""
    return {**(headers or {}), "Accept": "application/json"}


@schemathesis.hook
def filter_case(_context: Any, case: Any) -> bool:
    """Leave out requests to the root path for other media types than JSON."""
    return case.path != "/" or dict(case.headers or {}).get("Accept") == "application/json"


@schemathesis.hook.apply_to(path="/api/v1/jobs", method="POST")
def map_body(_context: Any, body: Any) -> Any:
    """Replace the type and payload of every other valid job body by those of a job on an existing artifact."""
    if not isinstance(body, dict):
        return body
    kind, payload = body.get("type"), body.get("payload")
    if not (isinstance(kind, str) and 0 < len(kind) <= 100 and isinstance(payload, dict)):
        return body
    total_length = len(kind) + len(payload)
    if total_length % 2:
        return body
    return {
        **body,
        "type": JOB_TYPES[total_length % 4],
        "payload": {"artifact_id": ARTIFACTS[total_length % len(ARTIFACTS)]},
    }
