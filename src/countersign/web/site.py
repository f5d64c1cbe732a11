"""A service with its pages in front: ASGI around ASGI.

What asks for the API goes to the API, with the bearer of the session when one of our own pages sent it; built files
and pages are answered here; all else is the service's. Where the service has nothing, a browser gets a page that says
so.
"""

from collections.abc import Mapping

from countersign.kernel import telemetry
from countersign.kernel.http import html
from countersign.kernel.http.exchange import Exchange, Scope
from countersign.kernel.http.request import ASGIApp, BodyTooLarge, ClientGone, Headers, Message, Receive, Send
from countersign.kernel.http.response import Response, json
from countersign.web import asking, origin, problem_page, shell
from countersign.web.asking import AnswerTooLong, Reply
from countersign.web.assets import FOLDER, Assets
from countersign.web.entry import Addresses, Entry
from countersign.web.origin import Home
from countersign.web.sessions import mark
from countersign.web.shell import Rendered

API = "/api/"
FOR_PROGRAMS = (API, "/mcp", "/sandbox/", "/.well-known/")
"""Where the addresses begin that answer programs: their refusals stay as they are."""
SESSION = "/session"
SHOWN = "x-session-mark"
"""The header in which a page of ours says whose data it shows."""
CREDENTIALS = frozenset((b"authorization", b"x-api-key"))
NOT_BUILT = "make setup"


class _Visit:
    """A request for a page (entry.Visit)."""

    def __init__(self, site: "Site", scope: Scope, headers: Headers, values: Mapping[str, str]) -> None:
        self.home = site.home
        self.headers = headers
        self.values = values
        self.query: str = scope["query_string"].decode("latin-1")
        self._site = site
        self._scope = scope

    async def is_signed_in(self) -> bool:
        """Whether the visitor has a session."""
        return (await self._bearer())[1] is not None

    async def _bearer(self) -> tuple[str, str | None]:
        if not origin.is_own_or_typed(self.headers, self.home):
            return "", None
        return await self._site.bearer(self._scope, self.headers)

    async def get(self, target: str) -> Reply:
        """What the API answers this visitor; what is too long for a page is as good as refused."""
        value, bearer = await self._bearer()
        sent = (("Accept", "application/json"), *((("Authorization", f"Bearer {bearer}"),) if bearer else ()))
        try:
            reply = await asking.ask(self._site.service, self._scope, "GET", target, headers=sent)
        except AnswerTooLong as refused:
            return Reply(refused.status, (), b"")
        if reply.status == 401 and bearer:
            self._site.forget(value)
        return reply


class Site:
    """The whole of a service as ASGI: the API, and the pages."""

    def __init__(self, entry: Entry, service: ASGIApp, home: Home, assets: Assets) -> None:
        self.service = service
        self.home = home
        self._entry = entry
        self._assets = assets
        self._parts = assets.parts(entry.name)
        self._log = telemetry.logger("web")
        self._addresses = Addresses(() if self._parts is None else self._parts.paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (ASGI 3)."""
        if scope["type"] != "http":
            await self.service(scope, receive, send)
            return
        try:
            await self._answer(scope["path"], scope, receive, send)
        except ConnectionAbortedError:
            raise  # The service's way to say that a body is not whole.
        except Exception as error:
            # The service answers its own faults; what is left is a fault of the pages, which nothing else logs.
            self._log.error("page failed", exc_info=error)
            raise

    async def _answer(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        if path.startswith(API):
            await self._api(scope, receive, send)
        else:
            html.LANGUAGE.set(shell.language(Headers(scope["headers"])))
            if not await self._own(path, scope, receive, send):
                await self._rest(path, scope, receive, send)

    async def bearer(self, scope: Scope, headers: Headers) -> tuple[str, str | None]:
        """The session's cookie that came along, and the bearer of that session."""
        value = origin.cookie(headers, self._entry.sessions.cookie_name)
        if value is None:
            return "", None
        return value, await self._entry.sessions.bearer(self.service, scope, value)

    def forget(self, value: str) -> None:
        """Ask anew for the bearer of the session with this cookie."""
        self._entry.sessions.forget(value)

    async def _api(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a call of the API, with the bearer when it is our own page's and brings no credentials itself."""
        names = {name for name, _ in scope["headers"]}
        is_bare = scope["method"] == "POST" and scope["path"].startswith(self._entry.bare)
        if b"cookie" not in names or names & CREDENTIALS or is_bare:
            await self.service(scope, receive, send)
            return
        headers = Headers(scope["headers"])
        value, bearer = "", None
        if origin.is_own_page(headers, self.home):
            value, bearer = await self.bearer(scope, headers)
        # Who signed in meanwhile in another window is somebody else than the page says it shows.
        if bearer is None or (headers.get(SHOWN) or mark(value)) != mark(value):
            await self.service(scope, receive, send)
            return

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _kept_by_nobody(message["headers"])}
                if message["status"] == 401:
                    self.forget(value)
            await send(message)

        authorization = (b"authorization", f"Bearer {bearer}".encode())
        await self.service({**scope, "headers": [*scope["headers"], authorization]}, receive, watched)

    async def _own(self, path: str, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer what is the pages' own: built files, and requests of theirs that are no API. Whether it was that."""
        exchange = Exchange(scope, receive, send)
        handler = self._entry.own.get((exchange.method, path))
        if handler is not None:
            try:
                await exchange.answer(await handler(self.service, exchange, scope))
            except BodyTooLarge as refused:
                await exchange.answer(Response(refused.status))
            except ClientGone:
                exchange.status = ClientGone.status
            return True
        if path.startswith(self._entry.forgets):
            value = origin.cookie(exchange.headers, self._entry.sessions.cookie_name)
            if value is not None:
                self.forget(value)
            return False
        if exchange.method not in ("GET", "HEAD"):
            return False
        if path == SESSION:
            await exchange.answer(await self._session(exchange.headers, scope))
            return True
        found = self._assets.answer(path, exchange.headers) if path.startswith(f"/{FOLDER}/") else None
        if found is not None:
            await exchange.answer(found)
        return found is not None

    async def _session(self, headers: Headers, scope: Scope) -> Response:
        """Tell a page of ours whether somebody is signed in, and the mark of that session, and nothing else."""
        value, bearer = "", None
        if origin.is_own_page(headers, self.home):
            value, bearer = await self.bearer(scope, headers)
        told = {"signed_in": bearer is not None, "mark": mark(value if bearer is not None else "")}
        return json(told, headers=(("Cache-Control", "no-store"),))

    async def _rest(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope["headers"])
        accept = headers.get("accept") or "*/*"
        if "text/html" in accept and accepts_html(accept) and not path.startswith(FOR_PROGRAMS):
            send = problem_page.of_refusals(scope["method"], send)
        found = self._addresses.at(path)
        if scope["method"] not in ("GET", "HEAD") or not accepts_html(accept):
            await self.service(scope, receive, send)
        elif found is not None:
            template, values = found
            answer = await self._page(template, _Visit(self, scope, headers, values))
            await Exchange(scope, receive, send).answer(answer)
        elif "text/html" not in accept or path.startswith(self._entry.apart):
            await self.service(scope, receive, send)
        else:
            await self._found_or_page(scope, receive, send)

    async def _page(self, template: str, visit: _Visit) -> Response:
        renderer = self._entry.rendered.get(template)
        rendered = None if renderer is None else await renderer(visit)
        return self._shell(visit.headers, rendered or Rendered(self._entry.title))

    def _shell(self, headers: Headers, rendered: Rendered) -> Response:
        if self._parts is None:
            text = f"The service runs, its API too. Its pages are made by “{NOT_BUILT}”, with Node or npm’s registry."
            return html.message_page("The pages are not built", text, 503)
        page = shell.page(self._parts, rendered, headers)
        if self._entry.link:
            page.headers = (*page.headers, ("Link", self._entry.link))
        return page

    async def _found_or_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What the service has there; where that is nothing, the page that says so."""
        is_missing = False

        async def unless_missing(message: Message) -> None:
            nonlocal is_missing
            if message["type"] == "http.response.start":
                is_missing = message["status"] == 404
            if not is_missing:
                await send(message)

        await self.service(scope, receive, unless_missing)
        if is_missing:
            exchange = Exchange(scope, receive, send)
            await exchange.answer(self._shell(exchange.headers, Rendered(self._entry.title, status=404)))


def accepts_html(accept: str) -> bool:
    """Whether HTML is an answer to this Accept header (RFC 9110 §12.5.1). Clients that name JSON read JSON, whatever
    else they take."""
    kinds: set[str] = set()
    for each in accept.lower().split(","):
        kind, *parameters = (part.strip() for part in each.split(";"))
        if not {"q=0", "q=0.0", "q=0.00", "q=0.000"} & set(parameters):
            kinds.add(kind)
    if "text/html" in kinds:
        return True
    return bool(kinds & {"*/*", "text/*"}) and "application/json" not in kinds


def _kept_by_nobody(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of an answer to a person, for no cache where the service says nothing of that. A shared one keeps
    nothing of a request with Authorization by itself (RFC 9111 §3.5), but that was put on behind it."""
    if any(name == b"cache-control" for name, _ in headers):
        return headers
    return [*headers, (b"cache-control", b"no-store")]
