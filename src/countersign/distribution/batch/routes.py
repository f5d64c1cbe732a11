"""POST /batch: up to 50 operations in one request (API document; decisions 7)."""

from collections.abc import Sequence
from typing import cast

from countersign.distribution.batch import rules, run
from countersign.distribution.batch.run import BatchCall, BatchRolledBack
from countersign.distribution.batch.schemas import BatchRequest, BatchResponse
from countersign.distribution.context import PREFIX
from countersign.kernel.http.idempotency import HEADER, MAX_STORED_BYTES
from countersign.kernel.http.request import NotBatchable, Subrequest
from countersign.kernel.http.response import Response, encode
from countersign.kernel.http.routing import route

SHOWN = frozenset(
    {
        "location",
        "link",
        "retry-after",
        "ratelimit-limit",
        "ratelimit-remaining",
        "ratelimit-reset",
        "preference-applied",
        "idempotency-replayed",
        "www-authenticate",
        "batch-id",
    }
)
"""What of an answer's headers its result repeats, with the entity tag."""

WRITERS = frozenset({"person", "client"})
"""Kinds of callers that any writing route lets in."""
ASK = f"{PREFIX}/ask"
"""The one address that is read by POST."""


async def prepare_batch(call: BatchCall) -> list[Response] | None:
    """Run what needs no transaction of the batch's own, before that is begun."""
    requests = _requests(call)
    if call.body.mode == "parallel":
        return await run.parallel(call, requests)
    # Nobody holds the writer by reading; and whoever is nobody, with a key or as an agent or without, writes nothing.
    if call.caller.kind not in WRITERS or all(map(_is_reading, requests)):
        return (await run.in_order(call, requests))[0]
    return None


async def run_batch(call: BatchCall) -> Response:
    """Run several operations: independent of each other, or all of them or none.

    `mode` is `parallel` or `atomic`. An atomic batch runs in order in one transaction; from its first answer of 400 or
    more on nothing is run or kept, and every other operation is answered 424 `batch_rolled_back`.
    """
    if call.prepared is None:
        answers = await run.atomic(call, _requests(call))
    else:
        answers = cast("list[Response]", call.prepared)
    told = b'{"results":[%b]}' % b",".join(map(_result, answers))
    return Response(200, told, is_transient=_is_transient(call.body.mode, answers, told))


async def tell_again(call: BatchCall, replayed: Response) -> Response:
    """An answer that was too long to store: writes are told again by their own keys, reads are made anew."""
    call.prepared = await run.parallel(call, _requests(call))
    told = await run_batch(call)
    told.headers = replayed.headers
    return told


def _is_transient(mode: str, answers: Sequence[Response], told: bytes) -> bool:
    """Whether a repeat is to run anew: what may succeed when it is simply tried again must not be the answer to its key
    for a day. Nor may what was taken back be told again, which would run its operations."""
    if any(each.status == 429 or each.status >= 500 for each in answers):
        return True
    return mode == "atomic" and len(told) > MAX_STORED_BYTES and any(each.status >= 400 for each in answers)


def _requests(call: BatchCall) -> list[Subrequest]:
    key = call.headers.get(HEADER)
    bare = None if key is None else key.strip().strip('"').lower()
    return rules.requests_of(call.body.operations, call.context.base_url, bare)


def _is_reading(request: Subrequest) -> bool:
    return request.method == "GET" or request.target.partition("?")[0] == ASK


def _result(answer: Response) -> bytes:
    """The answer as an element of `results`; its body is JSON already."""
    body = cast("bytes", answer.body) or b"{}"
    if not body.startswith(b"{"):
        body = b'{"items":%b}' % body
    headers = {name: value for name, value in answer.headers if name.lower() in SHOWN}
    if answer.etag is not None:
        headers["ETag"] = answer.etag
    told = b',"headers":%b' % encode(headers) if headers else b""
    return b'{"status":%d,"body":%b%b}' % (answer.status, body, told)


ROUTES = (
    route(
        "POST",
        "/batch",
        run_batch,
        body=BatchRequest,
        prepare=prepare_batch,
        derive=tell_again,
        answers={200: BatchResponse},
        refusals=(NotBatchable, BatchRolledBack),
        writes=True,
        secret=True,
        alone=True,
        documented=True,
    ),
)
