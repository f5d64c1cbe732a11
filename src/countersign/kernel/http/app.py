"""The HTTP application. For each request, it finds the route, authenticates the caller, checks the rate limit, decodes
the request, runs the handler and encodes the response. A refusal becomes an error response."""

from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

import msgspec

from countersign.kernel import telemetry
from countersign.kernel.database.port import Database
from countersign.kernel.errors import Refused, invalid_parameter
from countersign.kernel.http import decode, deprecation, html, idempotency, response, response_cache, routing
from countersign.kernel.http.exchange import Exchange, Scope
from countersign.kernel.http.instrumentation import RequestInstrumentation
from countersign.kernel.http.problems import (
    PROBLEM_JSON,
    InternalError,
    NotAcceptable,
    oauth_error,
    problem,
)
from countersign.kernel.http.rate_limit import RateLimiter
from countersign.kernel.http.request import (
    ClientGone,
    ContextT,
    Headers,
    PreparedSubrequest,
    Receive,
    Request,
    RequestCaller,
    ScopedContext,
    Send,
    Subrequest,
)
from countersign.kernel.http.response import JSON, Response
from countersign.kernel.http.response_cache import CachedResponse, ResponseCache
from countersign.kernel.http.routing import NOTHING, Nothing, Route, Router
from countersign.kernel.http.subrequest import as_subrequest, subrequest_exchange

ANONYMOUS = "anonymous"
_CREDENTIALS = (b"authorization", b"x-api-key")
_JSON = JSON.encode()
_NO_HEADERS = Headers([])
_VARY = "Authorization, X-API-Key, Cookie, Accept, Accept-Encoding"
ENCODED_BYTES, DOCUMENTS_BYTES = 16 << 20, 4 << 20
"""The maximum memory for compressed bodies of cached responses, and for compressed documents, in bytes. No setting
changes the limit for documents."""

AnyCall: TypeAlias = Request[ContextT, Any, Any, Any]


AuthenticatedCallerT = TypeVar("AuthenticatedCallerT", bound=RequestCaller)


class Authenticator(Protocol[AuthenticatedCallerT]):
    """The service's own authentication and authorization."""

    async def caller_of(self, headers: Headers, address: str, route: Route[Any]) -> AuthenticatedCallerT:
        """Return the caller that the request's credentials identify, or an anonymous caller if there are no
        credentials. A refusal names the scope that the route needs.

        Raises:
            Refused: the presented credential is invalid (401).
        """
        ...

    def admit(self, caller: AuthenticatedCallerT, scope: str | None) -> None:
        """Check that the caller may use a route that needs this scope. Without a scope, any credential is sufficient.

        Raises:
            Refused: the caller has no credential (401), or the credential lacks the scope (403).
        """
        ...


class ErrorRenderer(Protocol):
    """The service's own format of errors."""

    def __call__(self, refused: Refused, route: Route[Any] | None, target: str, accept: str | None = None) -> Response:
        """Return the response to a refused request for `target`. In a batch, or if no route matches, there is no
        `route`."""
        ...


def problem_renderer(root_url: str) -> ErrorRenderer:
    """Return a renderer that turns errors into problem details (RFC 9457) with types below this URL, into pages for
    browsers, and into the format of RFC 6749 §5.2 for OAuth."""

    def render(refused: Refused, route: Route[Any] | None, target: str, accept: str | None = None) -> Response:
        if route is None:
            return problem(refused, root_url, target)
        is_page = route.produces[0].startswith("text/html")
        if route.oauth:
            answer = oauth_error(refused)
        elif is_page and "text/html" in (accept or ""):
            answer = html.refusal_page(refused)
        else:
            answer = problem(refused, root_url, target)
        return _not_cacheable(answer) if route.secret or is_page else answer

    return render


@dataclass(frozen=True, slots=True)
class Policy:
    """The operator's settings for every request of a service.

    `render_error` converts refusals to responses. `service` is the service's name in metrics and traces, and `log_part`
    its name in log lines about failures. `pages_bytes` is the memory for cached responses, and `max_age_s` how long
    clients and proxies may cache public responses. `cache_control` is sent with every response without that header.
    """

    render_error: ErrorRenderer
    prefix: str
    service: str
    log_part: str = "http"
    trusted_proxies: Container[str] = ()
    log_requests: bool = False
    pages_bytes: int = 64 << 20
    max_age_s: int = 5
    cache_control: str = ""


class App(Generic[ContextT]):
    """An ASGI application of declared routes over one context."""

    def __init__(
        self,
        routes: Iterable[Route[ContextT]],
        context: ContextT,
        *,
        database: Database,
        authenticator: Authenticator[Any],
        limiter: RateLimiter | None,
        versions: Callable[[], Awaitable[tuple[int, ...]]],
        policy: Policy,
    ) -> None:
        """Without a `limiter`, requests are not counted."""
        self.routes = tuple(routes)
        self._router = Router((*self.routes, *routing.preflight_routes(self.routes)), policy.prefix)
        self._own = ScopedContext(context, database)
        self._authenticator = authenticator
        self._limiter = limiter
        self._versions = versions
        self._policy = policy
        self._pages = ResponseCache(policy.pages_bytes)
        self._encoded_pages = response_cache.EncodingCache(min(policy.pages_bytes, ENCODED_BYTES))
        self._encoded_documents = response_cache.EncodingCache(DOCUMENTS_BYTES)
        self._running = idempotency.RunningKeys()
        self._public = f"public, max-age={policy.max_age_s}"
        self._instrumentation = RequestInstrumentation(policy.service, log_requests=policy.log_requests)
        self._log = telemetry.logger(policy.log_part)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP request (ASGI 3). Other types of scope are ignored."""
        if scope["type"] != "http":
            return
        exchange = Exchange(scope, receive, send, self._policy.trusted_proxies)
        began_s = self._instrumentation.begin(exchange)
        try:
            await self._serve(exchange)
        finally:
            self._instrumentation.end(exchange, began_s)

    async def _serve(self, exchange: Exchange) -> None:
        route: Route[ContextT] | None = None
        try:
            route, path = await self._match(exchange)
            if not (route.cached and await self._serve_from_cache(exchange)):
                await exchange.answer(self._with_caching(await self._answer(route, path, exchange)))
        except ClientGone:
            exchange.status = ClientGone.status
        except Refused as refused:
            await self._refuse(refused, route, exchange)
        except Exception as error:  # the process edge: logged once, answered with 500
            self._log.error("request failed", route=exchange.route_path, exc_info=error)
            await self._refuse(InternalError("the service failed; the fault was logged"), route, exchange)

    async def _refuse(self, refused: Refused, route: Route[ContextT] | None, exchange: Exchange) -> None:
        if exchange.started:
            # The head is already sent. Abort the connection, because this is the only way to show the client that the
            # body is incomplete.
            raise ConnectionAbortedError(refused.code)
        answer = self._policy.render_error(refused, route, exchange.target, exchange.headers.get("accept"))
        await exchange.answer(self._with_caching(answer))

    def _with_caching(self, answer: Response) -> Response:
        if self._policy.cache_control and "Cache-Control" not in dict(answer.headers):
            answer.headers = (*answer.headers, ("Cache-Control", self._policy.cache_control))
        return answer

    async def _match(self, exchange: Exchange) -> tuple[Route[ContextT], dict[str, str]]:
        """Return the request's route and path parameters. A request that is refused here is also counted by the rate
        limit."""
        try:
            if not exchange.names_its_host:
                raise invalid_parameter("Host", "must be sent exactly once")
            route, path = self._router.match(exchange.method, exchange.raw_path.decode("latin-1"))
            exchange.route_path = route.path
            deprecation.require_running(route.deprecation)
            exchange.deprecations = route.announced
            if route.cross_origin:
                exchange.notices = routing.CORS_HEADERS
        except Refused:
            await self._count_address(exchange)
            raise
        return route, path

    async def _serve_from_cache(self, exchange: Exchange) -> bool:
        """Send the cached response to an anonymous request, if the cache has a response for the current versions of the
        data. Return whether a response was sent."""
        headers = exchange.headers
        if headers.has_any(_CREDENTIALS):
            return False
        await self._count_address(exchange)
        if (headers.get("accept") or "*/*") not in ("*/*", JSON):
            return False
        target = (exchange.raw_path, exchange.query_string)
        if not self._pages.is_repeat(target):
            return False
        # Read the versions before the data. The data may then be newer than its versions, but never older.
        exchange.versions = await self._versions()
        page = self._pages.get(target, exchange.versions)
        if page is None:
            return False
        await self._write_page(page, exchange)
        return True

    async def _write_page(self, page: CachedResponse, exchange: Exchange) -> None:
        headers = exchange.headers
        body, tag, coding_headers = page.body, page.etag, ()
        if headers.get("accept-encoding") is not None:
            answer = self._encoded_pages.answer(Response(200, page.body, etag=page.etag), headers)
            body, tag, coding_headers = (
                _buffered_body(answer.body),
                answer.etag or tag,
                response.encode_headers(answer.headers),
            )
        etag_header = (b"etag", tag.encode())
        if response.if_none_match_matches(headers.get("if-none-match"), tag):
            await exchange.write(304, b"", b"", (*page.headers, etag_header))
        else:
            await exchange.write(200, body, _JSON, (*page.headers, *coding_headers, etag_header))

    async def _answer(self, route: Route[ContextT], path: dict[str, str], exchange: Exchange) -> Response:
        body = await _raw_body(route, exchange) if route.is_raw else b""
        caller = await self._caller(route, exchange)
        exchange.principal = "" if caller.is_anonymous else caller.key
        if self._limiter is not None:
            await self._count(self._limiter, route, caller, exchange)
        if not route.is_raw:
            call, raw = await self._decode(caller, route, path, exchange)
            return await self._run(route, call, exchange, raw, self._own.database)
        if route.signed_in:
            self._authenticator.admit(caller, route.scope)
        return await route.handler(self._request(caller, path, NOTHING, body, exchange, self._own.context))

    async def answer_subrequest(self, outer: AnyCall[ContextT], inner: Subrequest) -> Response:
        """Handle a subrequest (see `Request.send_subrequest`)."""
        exchange = subrequest_exchange(outer, inner)
        try:
            route, call, raw = await self._decode_subrequest(outer, inner, exchange)
            return await self._run(route, call, exchange, raw, self._own.database)
        except Exception as error:  # as at the process edge: an error of one subrequest must not affect the others
            return self._subrequest_error(error, exchange)

    async def prepare_subrequest(
        self, outer: AnyCall[ContextT], inner: Subrequest
    ) -> PreparedSubrequest[ContextT]:
        """Prepare a subrequest (see `Request.prepare_subrequest`)."""
        exchange = subrequest_exchange(outer, inner)
        try:
            route, call, raw = await self._decode_subrequest(outer, inner, exchange)
            await self._prepare_before_batch(route, call, exchange, raw)
        except Exception as error:  # as in `answer_subrequest`
            return partial(_unchanged_response, self._subrequest_error(error, exchange))
        # `settle` waits until an effect is durable, but the outer transaction is not committed yet. Do not call it
        # here.
        return partial(self._send_prepared, replace(route, settle=None), call, exchange, raw)

    async def _send_prepared(
        self,
        route: Route[ContextT],
        call: AnyCall[ContextT],
        exchange: Exchange,
        raw: bytes,
        on: ScopedContext[ContextT],
    ) -> Response:
        call.context = on.context
        try:
            return await self._run(route, call, exchange, raw, on.database)
        except Exception as error:  # as in `answer_subrequest`
            return self._subrequest_error(error, exchange)

    async def _decode_subrequest(
        self, outer: AnyCall[ContextT], inner: Subrequest, exchange: Exchange
    ) -> tuple[Route[ContextT], AnyCall[ContextT], bytes]:
        matched_route, path = await self._match(exchange)
        route = as_subrequest(matched_route, inner)
        if self._limiter is not None:
            await self._count(self._limiter, route, outer.caller, exchange)
        return route, *await self._decode(outer.caller, route, path, exchange)

    def _subrequest_error(self, error: Exception, exchange: Exchange) -> Response:
        if isinstance(error, Refused):
            return self._policy.render_error(error, None, exchange.target)
        self._log.error("subrequest failed", route=exchange.route_path, exc_info=error)
        internal_error = InternalError("the service failed; the fault was logged")
        return self._policy.render_error(internal_error, None, exchange.target)

    async def _prepare_before_batch(
        self, route: Route[ContextT], call: AnyCall[ContextT], exchange: Exchange, raw: bytes
    ) -> None:
        if route.prepare_before_batch is None:
            return
        key = _key(route, call, exchange, raw)
        # A request whose response is already stored is not counted, because its response is only replayed.
        if key is None or await idempotency.find(self._own.database, key) is None:
            call.prepared = await route.prepare_before_batch(call)
            call.is_prepared = True

    async def _decode(
        self, caller: RequestCaller, route: Route[ContextT], path: dict[str, str], exchange: Exchange
    ) -> tuple[AnyCall[ContextT], bytes]:
        """Check that the caller may use the route, and decode the request. Return the decoded request and the bytes of
        its body."""
        if route.scope is not None or route.signed_in:
            self._authenticator.admit(caller, route.scope)
        query = _query(route, exchange)
        raw = b"" if route.streams or exchange.method in ("GET", "HEAD") else await exchange.body(route.body_limit)
        return self._request(caller, path, query, _body(route, raw, exchange), exchange, self._own.context), raw

    async def _run(
        self, route: Route[ContextT], call: AnyCall[ContextT], exchange: Exchange, raw: bytes, database: Database
    ) -> Response:
        """Run the route with the given database and return its response."""
        if exchange.method in ("GET", "HEAD"):
            await _prepare(route, call)
            return await self._read(route, call, exchange)
        answer = await self._write(route, call, exchange, raw, database)
        return _not_cacheable(answer) if route.secret else answer

    def _request(
        self,
        caller: RequestCaller,
        path: dict[str, str],
        query: msgspec.Struct,
        body: msgspec.Struct | bytes,
        exchange: Exchange,
        context: ContextT,
    ) -> AnyCall[ContextT]:
        return Request(
            context,
            caller,
            path,
            query,
            body,
            exchange.headers,
            exchange.address,
            exchange.target,
            exchange.receive,
            exchange.request_id,
            exchange.stopping,
            subrequests=self,
            root_path=exchange.root_path,
        )

    async def _caller(self, route: Route[ContextT], exchange: Exchange) -> RequestCaller:
        """Return the caller. A request with an invalid credential is counted by the client's address."""
        try:
            headers = _NO_HEADERS if route.own_credentials else exchange.headers
            return await self._authenticator.caller_of(headers, exchange.address, route)
        except Refused:
            await self._count_address(exchange)
            raise

    async def _count_address(self, exchange: Exchange) -> None:
        if self._limiter is not None:
            exchange.limits = await self._limiter.count(ANONYMOUS, exchange.address)

    @staticmethod
    async def _count(limiter: RateLimiter, route: Route[ContextT], caller: RequestCaller, exchange: Exchange) -> None:
        if route.counted and not exchange.limits:
            if route.quota is not None:
                exchange.limits = await limiter.count(route.quota, exchange.address)
            else:
                key = exchange.address if caller.is_anonymous else caller.key
                exchange.limits = await limiter.count(caller.quota, key)

    async def _read(self, route: Route[ContextT], call: AnyCall[ContextT], exchange: Exchange) -> Response:
        if route.cached:
            return await self._read_tagged(route, call, exchange)
        answer = await route.handler(call)
        if route.compressed and answer.status == 200:
            answer = self._conditional(self._encoded_documents.answer(answer, exchange.headers), exchange)
        return _not_cacheable(answer) if route.secret else answer

    async def _read_tagged(self, route: Route[ContextT], call: AnyCall[ContextT], exchange: Exchange) -> Response:
        """Handle a read whose response has an entity tag. Responses to repeated public reads are cached in memory."""
        answer = await route.handler(call)
        if answer.status != 200:
            return answer
        is_shared = call.caller.is_anonymous
        caching = self._public if is_shared else "private, no-cache"
        answer.headers = (*answer.headers, ("Cache-Control", caching), ("Vary", _VARY))
        if answer.etag is None and isinstance(answer.body, bytes):
            answer.etag = response.etag_of(answer.body)
        if is_shared and exchange.versions and exchange.deprecations == route.announced:
            self._cache_response(exchange, answer)
        return self._conditional(answer, exchange)

    @staticmethod
    def _conditional(answer: Response, exchange: Exchange) -> Response:
        """Return the response, or 304 if If-None-Match names its tag. Each content coding of a response has its own
        tag."""
        header = exchange.headers.get("if-none-match")
        if answer.etag is None or not response.if_none_match_matches(header, answer.etag):
            return answer
        headers = tuple(header for header in answer.headers if header[0] != "Content-Encoding")
        return Response(304, b"", JSON, headers, answer.etag)

    def _cache_response(self, exchange: Exchange, answer: Response) -> None:
        """Cache a response until the versions of its data change."""
        if answer.etag is None or not isinstance(answer.body, bytes) or answer.media_type != JSON:
            return
        headers = response.encode_headers(answer.headers)
        page = CachedResponse(exchange.versions, answer.body, answer.etag, headers)
        self._pages.put((exchange.raw_path, exchange.query_string), page)

    async def _write(
        self, route: Route[ContextT], call: AnyCall[ContextT], exchange: Exchange, raw: bytes, database: Database
    ) -> Response:
        key = _key(route, call, exchange, raw)
        if key is None:
            return await _effect(route, call, database)
        with self._running.acquire(key):
            stored_response = await idempotency.find(database, key)
            if stored_response is None:
                return await self._first_effect(route, call, key, database)
            return await _replay(route, call, stored_response)

    async def _first_effect(
        self, route: Route[ContextT], call: AnyCall[ContextT], key: idempotency.Key, database: Database
    ) -> Response:
        """Run the route's effect and record its response in one transaction. A refusal with a status below 500 rolls
        the effect back and is recorded after that, since a savepoint for it would delay every effect. Responses with
        status 429 or 5xx are not recorded, so that the request can be retried."""
        try:
            await _prepare(route, call)
        except Refused as refused:
            return await self._record_refusal(refused, route, call, key, database)
        refusal: Refused | None = None
        try:
            async with database.transaction() as transaction:
                await idempotency.lock(database, transaction, key)
                stored_response = await idempotency.find(transaction, key)
                if stored_response is not None:
                    return await _replay(route, call, stored_response)
                try:
                    answer = await route.handler(call.with_transaction(transaction))
                except Refused as refused:
                    refusal = refused
                    raise
                await idempotency.store(transaction, key, answer, secret=route.secret)
        except Refused as refused:
            # The refusal of an operation rolls back its atomic batch, and with it everything that it could record.
            if refused is not refusal or database is not self._own.database:
                raise
            return await self._record_refusal(refused, route, call, key, database)
        if route.settle is None or answer.status >= 400:
            return answer
        settled_answer = await route.settle(call, answer)
        if settled_answer is not answer:
            async with database.transaction() as transaction:
                await idempotency.replace(transaction, key, settled_answer, secret=route.secret)
        return settled_answer

    async def _record_refusal(
        self,
        refused: Refused,
        route: Route[ContextT],
        call: AnyCall[ContextT],
        key: idempotency.Key,
        database: Database,
    ) -> Response:
        answer = self._recordable(refused, call)
        async with database.transaction() as transaction:
            await idempotency.lock(database, transaction, key)
            await idempotency.store(transaction, key, answer, secret=route.secret)
        return answer

    def _recordable(self, refused: Refused, call: AnyCall[ContextT]) -> Response:
        if refused.status >= 500 or refused.status == 429:
            raise refused
        return self._policy.render_error(refused, None, call.target)


async def _unchanged_response(answer: Response, _on: ScopedContext[Any]) -> Response:
    return answer


def _key(
    route: Route[ContextT], call: AnyCall[ContextT], exchange: Exchange, raw: bytes
) -> idempotency.Key | None:
    if not route.writes:
        return None
    path = exchange.raw_path.decode("latin-1")
    # The key also covers the query parameters (org), so a retry must repeat them.
    content = b"%b\0%b" % (exchange.query_string, raw)
    return idempotency.key_of(exchange.headers, call.caller.key, exchange.method, path, content)


async def _prepare(route: Route[ContextT], call: AnyCall[ContextT]) -> None:
    if route.prepare is not None and not call.is_prepared:
        call.prepared = await route.prepare(call)


async def _effect(route: Route[ContextT], call: AnyCall[ContextT], database: Database) -> Response:
    """Run the route's effect for a request without an idempotency key."""
    await _prepare(route, call)
    if not route.writes:
        return await route.handler(call)
    async with database.transaction() as transaction:
        answer = await route.handler(call.with_transaction(transaction))
    return answer if route.settle is None else await route.settle(call, answer)


async def _raw_body(route: Route[Any], exchange: Exchange) -> bytes:
    if route.guard is not None:
        route.guard(exchange.headers)
    if exchange.method in ("GET", "HEAD"):
        return b""
    raw = await exchange.body(route.body_limit)
    media_type = exchange.headers.get("content-type")
    if raw or media_type is not None or not route.optional_body:
        decode.require_media_type(media_type, route.takes)
    return raw


def _query(route: Route[Any], exchange: Exchange) -> msgspec.Struct:
    _require_acceptable(route, exchange.headers.get("accept"))
    values = decode.parameters(exchange.query_string)
    query = decode.query(values, route.query) if values or route.query is not Nothing else NOTHING
    exchange.deprecations += deprecation.parameter_deprecations(route.query, values)
    return query


def _body(route: Route[Any], raw: bytes, exchange: Exchange) -> msgspec.Struct:
    if route.streams:
        return NOTHING
    shape = cast("type[msgspec.Struct]", route.body or Nothing)
    body = decode.body(raw, exchange.headers.get("content-type"), shape, is_form=route.form)
    exchange.deprecations += deprecation.member_deprecations(body)
    return body


async def _replay(route: Route[ContextT], call: AnyCall[ContextT], stored: idempotency.StoredResponse) -> Response:
    if not stored.is_derived or route.derive is None:
        return stored.answer
    return await route.derive(call, stored.answer)


def _require_acceptable(route: Route[ContextT], accept: str | None) -> None:
    """Raise NotAcceptable if Accept excludes all media types of the route (RFC 9110 §12.5.1)."""
    if accept is None or "*/*" in accept:
        return
    offered_types = {kind.split(";")[0] for kind in (*route.produces, PROBLEM_JSON)}
    offered_types |= {kind.split("/")[0] + "/*" for kind in offered_types}
    for entry in accept.lower().split(","):
        accepted_type, *parameters = (part.strip() for part in entry.split(";"))
        if accepted_type in offered_types and not {"q=0", "q=0.0"} & set(parameters):
            return
    kinds = dict.fromkeys(kind.split(";")[0] for kind in route.produces)
    raise NotAcceptable(
        f"this endpoint returns {', '.join(kinds)}", resolution=f"Accept {' or '.join(kinds)}, or omit Accept."
    )


def _buffered_body(body: bytes | AsyncIterator[bytes]) -> bytes:
    return body if isinstance(body, bytes) else b""


def _not_cacheable(answer: Response) -> Response:
    other_headers = tuple(pair for pair in answer.headers if pair[0].lower() not in ("cache-control", "pragma"))
    answer.headers = (*other_headers, ("Cache-Control", "no-store"), ("Pragma", "no-cache"))
    return answer
