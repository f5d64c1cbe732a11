"""A service with its pages: ASGI middleware.

Requests to the API are passed on, with the bearer token of the session if a page of this site sent them; built files
and pages are served here; everything else is passed to the service. If the service answers 404, browsers get a page.
"""

from collections.abc import Mapping

from countersign.kernel import telemetry
from countersign.kernel.http import html
from countersign.kernel.http.exchange import Exchange, Scope
from countersign.kernel.http.request import ASGIApp, BodyTooLarge, ClientGone, Headers, Message, Receive, Send
from countersign.kernel.http.response import Response, json
from countersign.web import api_client, origin, page_shell, problem_page
from countersign.web.api_client import ApiResponse, ResponseTooLong
from countersign.web.assets import FOLDER, Assets
from countersign.web.origin import PublicAddress
from countersign.web.page_shell import RenderedPage
from countersign.web.sessions import session_mark
from countersign.web.site_config import PageRoutes, SiteConfig

API = "/api/"
MCP = "/mcp"
PROGRAM_PATHS = (API, MCP, "/sandbox/", "/.well-known/")
"""Prefixes of paths for programs, whose error responses stay unchanged."""
SESSION_PATH = "/session"
SESSION_MARK = "x-session-mark"
"""The header in which a page identifies the session whose data it shows."""
CREDENTIALS = frozenset((b"authorization", b"x-api-key"))
BUILD_COMMAND = "make setup"


class _PageRequest:
    """See site_config.PageRequest."""

    def __init__(self, site: "Site", scope: Scope, headers: Headers, values: Mapping[str, str]) -> None:
        self.address = site.address
        self.headers = headers
        self.values = values
        self.query: str = scope["query_string"].decode("latin-1")
        self._site = site
        self._scope = scope

    async def is_signed_in(self) -> bool:
        """Whether the visitor has a session."""
        return (await self._bearer())[1] is not None

    async def _bearer(self) -> tuple[str, str | None]:
        if not origin.is_same_origin_or_direct(self.headers, self.address):
            return "", None
        return await self._site.bearer(self._scope, self.headers)

    async def get(self, target: str) -> ApiResponse:
        """Return the response of the API to this visitor. If it is too long, return an empty response with the status
        of the error."""
        value, bearer = await self._bearer()
        reply = await self._get(target, (("Authorization", f"Bearer {bearer}"),) if bearer else ())
        if reply.status == 401 and bearer:
            self._site.forget(value)
        return reply

    async def get_public(self, target: str) -> ApiResponse:
        """Return the response of the API to a visitor who is not signed in. If it is too long, return an empty response
        with the status of the error."""
        return await self._get(target, ())

    async def _get(self, target: str, credentials: tuple[tuple[str, str], ...]) -> ApiResponse:
        request_headers = (("Accept", "application/json"), *credentials)
        try:
            return await api_client.call_api(self._site.service, self._scope, "GET", target, headers=request_headers)
        except ResponseTooLong as refused:
            return ApiResponse(refused.status, (), b"")


class Site:
    """A service and its pages as one ASGI application."""

    def __init__(self, config: SiteConfig, service: ASGIApp, address: PublicAddress, assets: Assets) -> None:
        self.service = service
        self.address = address
        self._config = config
        self._assets = assets
        self._entry_assets = assets.entry_assets(config.name)
        self._log = telemetry.logger("web")
        self._resources = PageRoutes(tuple(config.resources))
        self._routes = PageRoutes(() if self._entry_assets is None else self._entry_assets.paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP request (ASGI 3)."""
        if scope["type"] != "http":
            await self.service(scope, receive, send)
            return
        try:
            await self._answer(scope["path"], scope, receive, send)
        except ConnectionAbortedError:
            raise  # The service aborts an incomplete response.
        except Exception as error:
            # The service handles its own errors, so this is an error of the pages. Log it, since nothing else does.
            self._log.error("page failed", exc_info=error)
            raise

    async def _answer(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        if path.startswith(API):
            await self._api(scope, receive, send)
        elif path == MCP and scope["method"] == "POST":
            await self.service(scope, receive, send)
        else:
            html.LANGUAGE.set(page_shell.language(Headers(scope["headers"])))
            if not await self._handle(path, scope, receive, send):
                await self._page_or_service(path, scope, receive, send)

    async def bearer(self, scope: Scope, headers: Headers) -> tuple[str, str | None]:
        """The session cookie of the request, and the bearer token of the session."""
        value = origin.cookie(headers, self._config.sessions.cookie_name)
        if value is None:
            return "", None
        return value, await self._config.sessions.bearer(self.service, scope, value)

    def forget(self, value: str) -> None:
        """Remove the token of the session with this cookie from the cache."""
        self._config.sessions.forget(value)

    async def _api(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a call of the API, with the bearer token if a page of this site sent the call without other
        credentials."""
        names = {name for name, _ in scope["headers"]}
        has_own = scope["method"] == "POST" and scope["path"].startswith(self._config.own_credentials_paths)
        if b"cookie" not in names or names & CREDENTIALS or has_own:
            await self.service(scope, receive, send)
            return
        headers = Headers(scope["headers"])
        value, bearer = "", None
        if origin.is_same_origin(headers, self.address):
            value, bearer = await self.bearer(scope, headers)
        # Compare the marks, since another person may have signed in in another window since the page was loaded.
        mark = session_mark(value)
        if bearer is None or (headers.get(SESSION_MARK) or mark) != mark:
            await self.service(scope, receive, send)
            return

        async def send_private(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _uncacheable(message["headers"])}
                if message["status"] == 401:
                    self.forget(value)
            await send(message)

        authorization = (b"authorization", f"Bearer {bearer}".encode())
        await self.service({**scope, "headers": [*scope["headers"], authorization]}, receive, send_private)

    async def _handle(self, path: str, scope: Scope, receive: Receive, send: Send) -> bool:
        """Handle requests to the site itself: built files, the session, the configured handlers. Returns whether the
        request was handled."""
        exchange = Exchange(scope, receive, send)
        handler = self._config.handlers.get((exchange.method, path))
        if handler is not None:
            try:
                await exchange.answer(await handler(self.service, exchange, scope))
            except BodyTooLarge as refused:
                await exchange.answer(json({"error": refused.detail}, refused.status, (("Cache-Control", "no-store"),)))
            except ClientGone:
                exchange.status = ClientGone.status
            return True
        if path.startswith(self._config.session_change_paths):
            value = origin.cookie(exchange.headers, self._config.sessions.cookie_name)
            if value is not None:
                self.forget(value)
            return False
        if exchange.method not in ("GET", "HEAD"):
            return False
        if path == SESSION_PATH:
            await exchange.answer(await self._session(exchange.headers, scope))
            return True
        file_response = await self._file(path, exchange.headers, scope)
        if file_response is not None:
            await exchange.answer(file_response)
        return file_response is not None

    async def _file(self, path: str, headers: Headers, scope: Scope) -> Response | None:
        """Return a built file, or something that belongs to a page. Return None if the address has neither."""
        if path.startswith(f"/{FOLDER}/"):
            return self._assets.response(path, headers)
        resource_match = self._resources.match(path)
        if resource_match is None:
            return None
        template, values = resource_match
        return await self._config.resources[template](_PageRequest(self, scope, headers, values))

    async def _session(self, headers: Headers, scope: Scope) -> Response:
        """Return whether the visitor is signed in, and the mark of the session. Only pages of this site may request
        this."""
        value, bearer = "", None
        if origin.is_same_origin(headers, self.address):
            value, bearer = await self.bearer(scope, headers)
        session = {"signed_in": bearer is not None, "mark": session_mark(value if bearer is not None else "")}
        return json(session, headers=(("Cache-Control", "no-store"),))

    async def _page_or_service(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope["headers"])
        accept = headers.get("accept") or "*/*"
        if "text/html" in accept and accepts_html(accept) and not path.startswith(PROGRAM_PATHS):
            send = problem_page.send_problem_pages(scope["method"], send)
        page_match = self._routes.match(path)
        if scope["method"] not in ("GET", "HEAD") or not accepts_html(accept):
            await self.service(scope, receive, send)
        elif page_match is not None:
            template, values = page_match
            answer = await self._page(template, _PageRequest(self, scope, headers, values))
            await Exchange(scope, receive, send).answer(answer)
        elif "text/html" not in accept or path.startswith(self._config.service_paths):
            await self.service(scope, receive, send)
        else:
            await self._service_or_missing_page(scope, receive, send)

    async def _page(self, template: str, request: _PageRequest) -> Response:
        renderer = self._config.renderers.get(template)
        rendered_page = None if renderer is None else await renderer(request)
        return self._shell(request.headers, rendered_page or RenderedPage(self._config.title))

    def _shell(self, headers: Headers, rendered_page: RenderedPage) -> Response:
        if self._entry_assets is None:
            text = f"The service and its API run. “{BUILD_COMMAND}” builds the pages, with Node or npm’s registry."
            return html.message_page("The pages are not built", text, 503)
        page = page_shell.page(self._entry_assets, rendered_page, headers)
        if self._config.link_header:
            page.headers = (*page.headers, ("Link", self._config.link_header))
        return page

    async def _service_or_missing_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response of the service, or a page with status 404 if the service responds with 404."""
        is_missing = False

        async def send_unless_missing(message: Message) -> None:
            nonlocal is_missing
            if message["type"] == "http.response.start":
                is_missing = message["status"] == 404
            if not is_missing:
                await send(message)

        await self.service(scope, receive, send_unless_missing)
        if is_missing:
            exchange = Exchange(scope, receive, send)
            await exchange.answer(self._shell(exchange.headers, RenderedPage(self._config.title, status=404)))


def accepts_html(accept: str) -> bool:
    """Whether this Accept header accepts HTML (RFC 9110 §12.5.1). Clients that name JSON but not HTML get JSON."""
    kinds: set[str] = set()
    for media_range in accept.lower().split(","):
        kind, *parameters = (text_part.strip() for text_part in media_range.split(";"))
        if not {"q=0", "q=0.0", "q=0.00", "q=0.000"} & set(parameters):
            kinds.add(kind)
    if "text/html" in kinds:
        return True
    return bool(kinds & {"*/*", "text/*"}) and "application/json" not in kinds


def _uncacheable(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers with `Cache-Control: no-store`, unless the service set one. Shared caches do not store responses to
    requests with Authorization (RFC 9111 §3.5), but they cannot see the Authorization header that this site adds."""
    if any(name == b"cache-control" for name, _ in headers):
        return headers
    return [*headers, (b"cache-control", b"no-store")]
