"""POST /batch: up to 50 operations in one request, independent or all of them in one transaction."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Annotated, Any, Literal, cast
from urllib.parse import quote

import msgspec
from msgspec import Meta

from countersign.kernel import clock, ids
from countersign.kernel.database.port import Dialect, Row, Transaction, Value
from countersign.kernel.database.versions import Versions
from countersign.kernel.errors import Refused, Unavailable, invalid_member
from countersign.kernel.http import idempotency
from countersign.kernel.http.idempotency import MAX_STORED_BYTES
from countersign.kernel.http.problems import problem
from countersign.kernel.http.request import NotBatchable, PreparedSubrequest, ScopedContext, Subrequest
from countersign.kernel.http.response import Response, encode
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.callers import StoreRequest
from countersign.store.context import PREFIX, VERSIONS, Store

MAX_OPERATIONS = 50


class Operation(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One call. Its path is relative to the versioned API, or begins with the address of the API. It can have the
    headers Idempotency-Key, If-Match, If-None-Match and Prefer."""

    method: Annotated[Literal["GET", "POST", "PUT"], Meta(description="The method of the call.")]
    path: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=8192,
            description="The path below the versioned API, with its query.",
            examples=["/products?platform=linux&limit=5"],
        ),
    ]
    body: Annotated[dict[str, Any], Meta(description="The body of the call.")] | None = None
    headers: (
        Annotated[
            dict[str, Annotated[str, Meta(max_length=1024)]],
            Meta(max_length=4, description="Idempotency-Key, If-Match, If-None-Match or Prefer of the call."),
        ]
        | None
    ) = None


class BatchRequest(msgspec.Struct, forbid_unknown_fields=True):
    """With the mode `parallel`, the operations are independent of each other. With the mode `atomic`, either all of
    them take effect or none."""

    operations: Annotated[
        list[Operation],
        Meta(min_length=1, max_length=MAX_OPERATIONS, description="The calls, in the order of the results."),
    ]
    mode: Annotated[
        Literal["parallel", "atomic"],
        Meta(description="`parallel`: each call by itself; `atomic`: in order, all of them or none."),
    ] = "parallel"


class BatchResult(msgspec.Struct, omit_defaults=True):
    """The response to one operation. A body that is not an object is sent as the member `items` of an object."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] | None = None


class BatchResponse(msgspec.Struct):
    """The results, in the order of the operations."""

    results: list[BatchResult]


OPERATION_HEADERS = frozenset({"idempotency-key", "if-match", "if-none-match", "prefer"})
MAX_RESPONSES_BYTES = 32 << 20
"""The maximum size of all responses together. Each operation has an equal share of this size."""

_AS_JSON = ("content-type", "application/json")
_FORBIDDEN_IN_PATH = re.compile(r"[\x00-\x20\x7f#\\]")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
_SAFE_IN_URL = "!$%&'()*+,-./:;=?@_~[]"


def requests_of(operations: Sequence[Operation], base_url: str, key: str | None) -> list[Subrequest]:
    """The requests of the operations, in the same order. If the batch has an Idempotency-Key, each write without its
    own key gets a key that is derived from the batch's key. So a repeated batch has no second effect.

    Raises:
        InvalidRequest: a path or a header of an operation cannot be sent; the pointer names its index.
    """
    max_bytes = MAX_RESPONSES_BYTES // len(operations)
    return [
        _operation_request(operation, index, base_url, key, max_bytes) for index, operation in enumerate(operations)
    ]


def _operation_request(operation: Operation, index: int, base_url: str, key: str | None, max_bytes: int) -> Subrequest:
    target = _operation_target(operation.path, f"/operations/{index}/path", base_url)
    headers = _headers(operation.headers or {}, f"/operations/{index}/headers")
    if key is not None and operation.method != "GET":
        headers.setdefault("idempotency-key", ids.derived_uuid(key, str(index)))
    if operation.body is None:
        return Subrequest(operation.method, target, tuple(headers.items()), b"", max_bytes, batched=True)
    request_headers = (_AS_JSON, *headers.items())
    return Subrequest(operation.method, target, request_headers, encode(operation.body), max_bytes, batched=True)


def _operation_target(path: str, pointer: str, base_url: str) -> str:
    """The complete path of an operation. Letters outside ASCII are percent-encoded, as a client would encode them (RFC
    3987 §3.1)."""
    relative = path
    for own_prefix in (base_url, PREFIX):
        if path.startswith(f"{own_prefix}/"):
            relative = path[len(own_prefix) :]
            break
    if not relative.startswith("/"):
        raise invalid_member(pointer, f"must begin with / or with {base_url}/")
    if _FORBIDDEN_IN_PATH.search(relative):
        raise invalid_member(pointer, "has a space, a control character, # or a backslash; percent-encode it")
    try:
        return PREFIX + (relative if relative.isascii() else quote(relative, safe=_SAFE_IN_URL))
    except UnicodeEncodeError as error:
        raise invalid_member(pointer, "has half of a surrogate pair") from error


def _headers(sent_headers: dict[str, str], pointer: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in sent_headers.items():
        lower = name.lower()
        if lower not in OPERATION_HEADERS:
            raise invalid_member(pointer, "may only have Idempotency-Key, If-Match, If-None-Match and Prefer")
        if lower in headers:
            raise invalid_member(pointer, f"names {lower} twice")
        if not _HEADER_VALUE.fullmatch(value):
            raise invalid_member(pointer, f"{lower} has a character that is not allowed in a header")
        headers[lower] = value
    return headers


class NestedTransaction:
    """A database whose reads and writes are all part of one outer transaction. One task uses it at a time.

    When the outer transaction commits, the transactions of this database become durable, and their after-commit
    callbacks run. After `until_s` (monotonic clock), every call raises Unavailable, because other writers wait for the
    end of the outer transaction.
    """

    def __init__(self, dialect: Dialect, transaction: Transaction, *, until_s: float = inf) -> None:
        self._dialect: Dialect = dialect
        self._transaction = transaction
        self._until_s = until_s
        self._is_spoilt = False
        # This event is never set, because the outer database has its own event.
        self.broken = asyncio.Event()

    @property
    def dialect(self) -> Dialect:
        """The dialect of the outer database."""
        return self._dialect

    def change_mark(self) -> bytes | None:
        """None: the transaction's own changes are not committed yet."""
        return None

    async def fetch(self, statement: str, *values: Value) -> list[Row]:
        """All rows, including the changes that the transaction has made so far."""
        return await self._usable_transaction().fetch(statement, *values)

    async def fetch_one(self, statement: str, *values: Value) -> Row | None:
        """The first row, or None."""
        return await self._usable_transaction().fetch_one(statement, *values)

    async def scan(self, statement: str, *values: Value) -> list[Row]:
        """All rows. The deadline is `until_s` instead of the read deadline."""
        return await self._usable_transaction().fetch(statement, *values)

    async def stream(self, statement: str, *values: Value) -> AsyncGenerator[list[Row]]:
        """The rows, all at once."""
        yield await self._usable_transaction().fetch(statement, *values)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        """A block whose writes become durable with the outer commit. An exception makes the outer transaction fail.

        The block has no savepoint of its own, because a savepoint costs two round trips. The caller rolls the whole
        outer transaction back instead."""
        try:
            yield self._usable_transaction()
        except BaseException:
            self._is_spoilt = True
            raise

    async def close(self) -> None:
        """Do nothing: the outer transaction ends by itself."""

    def _usable_transaction(self) -> Transaction:
        if self._is_spoilt:
            raise Unavailable("A part of this transaction has failed; all of it is rolled back.")
        if clock.monotonic_s() > self._until_s:
            raise Unavailable("This takes too long for one transaction; do less in it, or try again.")
        return self._transaction


MAX_CONCURRENT = 8
MAX_ATOMIC_S = 5.0
"""The maximum duration of one transaction: on SQLite every other writer waits for it."""

BatchCall = StoreRequest[Nothing, BatchRequest]


class BatchRolledBack(Refused):
    """Another operation of an atomic batch failed; all operations were rolled back."""

    status = 424
    code = "batch_rolled_back"
    title = "Batch rolled back"
    resolution = "Look at the result that failed_index names, correct its operation, and send the whole batch again."


class _RollBack(Exception):
    """Raised to leave the block of the savepoint, so that the batch is rolled back."""


async def run_in_parallel(call: BatchCall, requests: Sequence[Subrequest]) -> list[Response]:
    """The answers to requests that do not depend on each other; at most eight run at a time."""
    answers = [Response()] * len(requests)
    pending_requests = iter(enumerate(requests))

    async def work() -> None:
        for index, request in pending_requests:
            answers[index] = await call.send_subrequest(request)
            await asyncio.sleep(0)  # a response from memory never yields, and other tasks must run in between

    async with asyncio.TaskGroup() as group:
        for _ in range(min(MAX_CONCURRENT, len(requests))):
            group.create_task(work())
    return answers


async def run_in_order(
    call: BatchCall, requests: Sequence[Subrequest], senders: Sequence[Callable[[], Awaitable[Response]]]
) -> tuple[list[Response], bool]:
    """The responses in order, and whether all succeeded. After a failure, the remaining operations do not run, and
    every response except the failed one is replaced by `batch_rolled_back`."""
    answers: list[Response] = []
    for send in senders:
        answer = await send()
        if answer.status >= 400:
            return _failed_batch_responses(call.context, requests, len(answers), answer), False
        answers.append(answer)
        await asyncio.sleep(0)
    return answers, True


async def run_atomically(
    call: BatchCall, requests: Sequence[Subrequest], prepared_requests: Sequence[PreparedSubrequest[Store]]
) -> list[Response]:
    """The responses in order, all in the call's transaction; a batch that fails is rolled back."""
    store, transaction = call.context, call.transaction
    nested_transaction = NestedTransaction(
        store.database.dialect, transaction, until_s=clock.monotonic_s() + MAX_ATOMIC_S
    )
    # Other writers wait for this transaction, so it must not wait for a remote model: questions are answered by rules
    # only.
    settings = replace(store.settings, ask_model_url="")
    context = replace(
        store, settings=settings, database=nested_transaction, versions=Versions(nested_transaction, VERSIONS).read
    )
    scoped_context = ScopedContext(context, nested_transaction)
    answers: list[Response] = []
    try:
        async with transaction.savepoint():
            answers, is_success = await run_in_order(
                call, requests, [partial(send, scoped_context) for send in prepared_requests]
            )
            if not is_success:
                raise _RollBack
    except _RollBack:
        return answers
    return answers


def _failed_batch_responses(
    store: Store, requests: Sequence[Subrequest], failed_index: int, answer: Response
) -> list[Response]:
    detail = f"operation {failed_index} was answered {answer.status}; the batch was rolled back"
    error = BatchRolledBack(detail, members={"failed_index": failed_index})
    return [
        answer if index == failed_index else problem(error, store.problems_root, store.root_url + request.target)
        for index, request in enumerate(requests)
    ]


RESULT_HEADERS = frozenset(
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
"""The response headers that a result repeats, besides the entity tag."""

WRITING_CALLERS = frozenset({"person", "client"})
"""The kinds of callers that can use writing routes."""
ASK_PATH = f"{PREFIX}/ask"
"""The only POST endpoint that does not write."""


@dataclass(frozen=True, slots=True)
class BatchPreparation:
    """The result of the work before the transaction of the request: either the responses of all operations, or the
    operations prepared for the transaction."""

    answers: list[Response] | None = None
    operations: Sequence[PreparedSubrequest[Store]] = ()


async def run_or_prepare_batch(call: BatchCall) -> BatchPreparation:
    """Run a batch that needs no common transaction. For any other batch, only authorize and count its operations now:
    the counters may be remote, and inside the transaction every other writer would wait for them."""
    requests = _subrequests_of_call(call)
    if call.body.mode == "parallel":
        return BatchPreparation(await run_in_parallel(call, requests))
    # Reads need no write transaction. Anonymous callers, API keys and unclaimed agents cannot write.
    if call.caller.kind not in WRITING_CALLERS or all(map(_is_read, requests)):
        senders = [partial(call.send_subrequest, request) for request in requests]
        return BatchPreparation((await run_in_order(call, requests, senders))[0])
    return BatchPreparation(operations=[await call.prepare_subrequest(request) for request in requests])


async def run_batch(call: BatchCall) -> Response:
    """Run several operations: independent of each other, or all of them or none.

    `mode` is `parallel` or `atomic`. An atomic batch runs in order in one transaction; after the first response of 400
    or more it stops and is rolled back, and every other operation is answered 424 `batch_rolled_back`.
    """
    preparation = cast("BatchPreparation", call.prepared)
    answers = preparation.answers
    if answers is None:
        answers = await run_atomically(call, _subrequests_of_call(call), preparation.operations)
    body = b'{"results":[%b]}' % b",".join(map(_operation_result, answers))
    return Response(200, body, is_transient=_is_transient(call.body.mode, answers, body))


async def replay_batch(call: BatchCall, replayed: Response) -> Response:
    """Make a response again that was too long to store: the keys of the writes replay their responses, and the reads
    run again."""
    call.prepared = BatchPreparation(await run_in_parallel(call, _subrequests_of_call(call)))
    rebuilt = await run_batch(call)
    rebuilt.headers = replayed.headers
    return rebuilt


def _is_transient(mode: str, answers: Sequence[Response], body: bytes) -> bool:
    """Whether a repeated request must run again instead of getting the stored response. If a retry may succeed, the
    error must not be stored for a day. A long response is not stored, but rebuilt from its operations. A rolled-back
    batch cannot be rebuilt without running it, so a long response of one is transient."""
    if any(answer.status == 429 or answer.status >= 500 for answer in answers):
        return True
    return mode == "atomic" and len(body) > MAX_STORED_BYTES and any(answer.status >= 400 for answer in answers)


def _subrequests_of_call(call: BatchCall) -> list[Subrequest]:
    key = call.headers.get(idempotency.HEADER)
    bare_key = None if key is None else key.strip().strip('"').lower()
    return requests_of(call.body.operations, call.context.base_url, bare_key)


def _is_read(request: Subrequest) -> bool:
    return request.method == "GET" or request.target.partition("?")[0] == ASK_PATH


def _operation_result(answer: Response) -> bytes:
    """The answer as an element of `results`; its body is JSON already."""
    body = cast("bytes", answer.body) or b"{}"
    if not body.startswith(b"{"):
        body = b'{"items":%b}' % body
    headers = {name: value for name, value in answer.headers if name.lower() in RESULT_HEADERS}
    if answer.etag is not None:
        headers["ETag"] = answer.etag
    headers_json = b',"headers":%b' % encode(headers) if headers else b""
    return b'{"status":%d,"body":%b%b}' % (answer.status, body, headers_json)


ROUTES = (
    route(
        "POST",
        "/batch",
        run_batch,
        body=BatchRequest,
        prepare=run_or_prepare_batch,
        derive=replay_batch,
        answers={200: BatchResponse},
        refusals=(NotBatchable, BatchRolledBack),
        writes=True,
        secret=True,
        alone=True,
        documented=True,
    ),
)
