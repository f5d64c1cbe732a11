"""Subrequests: requests inside another request, by the same caller, without a connection of their own."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from countersign.kernel.http.exchange import Exchange
from countersign.kernel.http.request import STATE_KEY, ContextT, Message, NotBatchable, Request, Subrequest
from countersign.kernel.http.response import JSON, Response
from countersign.kernel.http.routing import Route


def subrequest_exchange(outer: Request[Any, Any, Any, Any], inner: Subrequest) -> Exchange:
    """Return the exchange of the subrequest, with the client of the outer request."""
    path, _, query = inner.target.partition("?")
    scope = {
        "type": "http",
        "method": inner.method,
        "path": path,
        "raw_path": path.encode("latin-1", "replace"),
        "query_string": query.encode("latin-1", "replace"),
        "headers": [(b"host", b"inside"), *((name.encode(), value.encode("latin-1")) for name, value in inner.headers)],
        "client": (outer.address, 0),
        "root_path": outer.root_path,
        "state": {} if outer.stopping is None else {STATE_KEY: outer.stopping},
    }
    return Exchange(scope, _sent(inner.body), _unsent)


def _sent(body: bytes) -> Callable[[], Any]:
    async def receive() -> Message:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _unsent(_message: Message) -> None:
    raise AssertionError("the response to a subrequest is returned, never sent")


def as_subrequest(route: Route[ContextT], inner: Subrequest) -> Route[ContextT]:
    """Return the route as it is called by a subrequest.

    Raises:
        NotBatchable: the route streams a body, cannot return JSON, reads its own credentials, or is never part of a
            batch.
    """
    if inner.batched and route.alone:
        raise NotBatchable("a batch must not contain another batch")
    if route.streams or route.own_credentials or JSON not in route.produces:
        raise NotBatchable("endpoints that stream a body or sign in cannot be called in a batch")
    return _with_collected_response(route, inner.max_bytes)


def _with_collected_response(route: Route[ContextT], max_bytes: int) -> Route[ContextT]:
    """Return the route with a handler that reads a streamed response completely before the transaction commits. A
    request whose response is too long, or is not JSON, therefore has no effect."""
    derive = route.derive

    async def collected(call: Request[ContextT, Any, Any, Any]) -> Response:
        return await _collected(await route.handler(call), max_bytes)

    async def derived(call: Request[ContextT, Any, Any, Any], replayed: Response) -> Response:
        return replayed if derive is None else await _collected(await derive(call, replayed), max_bytes)

    return replace(route, handler=collected, derive=derived)


async def _collected(answer: Response, max_bytes: int) -> Response:
    """Return the response with its complete body.

    Raises:
        NotBatchable: the response has more than `max_bytes` bytes, or is not JSON.
    """
    if answer.body != b"" and answer.media_type != JSON:
        raise NotBatchable(f"the response would be {answer.media_type}: request JSON, or call it directly")
    pieces: list[bytes] = []
    if isinstance(answer.body, bytes):
        pieces.append(answer.body)
    else:
        size = 0
        async for piece in answer.body:
            size += len(piece)
            pieces.append(piece)
            if size > max_bytes:
                break
    answer.body = b"".join(pieces)
    if len(answer.body) > max_bytes:
        raise NotBatchable(f"the response has more than {max_bytes} bytes")
    return answer
