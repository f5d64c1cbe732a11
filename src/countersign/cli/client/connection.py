"""Connects commands to a server: its address, the token, safe retries, and exit codes for refusals."""

import base64
import os
import re
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar
from urllib.parse import quote, quote_plus, urljoin, urlsplit

import msgspec

from countersign.cli.client import api_models, credentials
from countersign.cli.client.transport import Request, Response, Unreachable, read, send
from countersign.cli.options import ProductName, selected_server_url
from countersign.cli.output import Exit, Failure, exit_code_of, hint, reason_with_faults, wait_text
from countersign.kernel import clock, ids
from countersign.kernel.errors import NotFound

AnswerT = TypeVar("AnswerT")

ATTEMPTS = 4
MAX_WAIT_S = 60
MAX_RESPONSE_BYTES = 256 << 20
PIECE_BYTES = 64 << 10
MAX_REDIRECTS = 5

STORE_ADDRESS = "name the store's address with --server or COUNTERSIGN_SERVER"
RECORDS_HINT = "Set COUNTERSIGN_TOKEN to a token of the records service, of a sign-in or of an agent."
READ_SCOPES = "read:products read:releases read:library"
"""The scopes that `countersign login` asks for. Every account has them."""
PUBLISH_SCOPES = f"{READ_SCOPES} write:products write:releases"
"""The scopes that `countersign login --publish` asks for."""

_NEEDED_SCOPE = re.compile(r'error="insufficient_scope", scope="([a-z:]+)"')
_NO_ROUTE = (404, 405)
_REQUEST_TARGET = re.compile(r"[!-~]+")
_NEXT = re.compile(r'<([^<>]+)>\s*;[^,<]*\brel="?next"?')
_RETRYABLE = {429, 502, 503, 504}
_REDIRECTED = {301, 302, 303, 307, 308}


@dataclass(slots=True)
class Reply:
    """A complete response. The names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return self.status < 300


class Server:
    """A server that commands send requests to, with the token that they use."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.base = root + "/api/v1"
        self.patience_s = 0.0
        """The minimum time to repeat a request to an unreachable server. At least ATTEMPTS attempts are always made."""
        self._token: str | None = None
        self._token_known = False

    @property
    def token(self) -> str | None:
        """The bearer token, or None.

        The first of these is used: COUNTERSIGN_TOKEN; a token requested for the OAuth client that
        COUNTERSIGN_CLIENT_ID and COUNTERSIGN_CLIENT_SECRET name; the token that `login` saved for this server.

        Raises:
            Failure: the client is refused, only one of its two variables is set, or the saved tokens cannot be read.
        """
        if not self._token_known:
            self._token = self._find_token()
            self._token_known = True
        return self._token

    def use_token(self, token: str) -> None:
        """Send requests with this token only."""
        self._token, self._token_known = token, True

    def use_no_token(self) -> None:
        """Send requests without a token."""
        self._token, self._token_known = None, True

    def _find_token(self) -> str | None:
        if token := os.environ.get(credentials.Variable.BEARER, "").strip():
            return token
        client = credentials.client_of_environment()
        return self._exchange(*client) if client else credentials.load_token(self.root)

    def _exchange(self, client_id: str, secret: str) -> str:
        """Request a token by the client-credentials grant (RFC 6749 §4.4)."""
        basic = base64.b64encode(f"{quote_plus(client_id)}:{quote_plus(secret)}".encode()).decode()
        headers = {"Authorization": f"Basic {basic}", "Content-Type": "application/x-www-form-urlencoded"}
        request = Request("POST", f"{self.base}/auth/token", headers, b"grant_type=client_credentials")
        failure = "cannot sign in as the OAuth client"
        return decode(self.settle(request, failure), api_models.Token, failure).access_token

    def headers(self, url: str) -> dict[str, str]:
        """Return the headers of a request to this URL. They contain the token only if the URL belongs to this
        server."""
        if _origin(url) != _origin(self.root) or self.token is None:
            return {}
        return {"Authorization": f"Bearer {self.token}"}

    def reachable_url(self, url: str) -> str:
        """Replace the root of an API URL by the root that this machine uses for the server.

        A server behind a tunnel or another port writes its own root URL into its responses.

        Raises:
            Failure: the URL is malformed, or is not an HTTP URL.
        """
        origin, separator, path = url.partition("/api/v1/")
        reached_url = f"{self.base}/{path}" if separator and "?" not in origin else url
        if not _is_http_url(reached_url):
            reason = "its answer names an address that is not http or https"
            raise Failure(f"cannot continue with {self.root}", why=reason, remedy="Report this to its operator.")
        return reached_url

    def next_page(self, reply: Reply) -> str | None:
        """Return the URL of the next page (Link header with rel=next, RFC 8288), or None on the last page."""
        match = _NEXT.search(reply.headers.get("link", ""))
        return self.reachable_url(match[1]) if match else None

    def get(self, path: str, kind: type[AnswerT], failure: str, headers: Mapping[str, str] | None = None) -> AnswerT:
        """Send a GET and return the decoded response. `failure` is the beginning of a failure's message.

        Raises:
            Failure: the server refuses the request or cannot be reached.
        """
        request = self._request("GET", path)
        full_request = replace(request, headers={**request.headers, **(headers or {})})
        return decode(self.settle(full_request, failure), kind, failure)

    def post(self, path: str, body: object, failure: str, *, accept: str = "application/json") -> Reply:
        """Send a POST with an Idempotency-Key, so that the server runs a repeated request only once.

        Raises:
            Failure: the server refuses the request or cannot be reached.
        """
        request = self._request("POST", path)
        extra_headers = {"Content-Type": "application/json", "Accept": accept, "Idempotency-Key": ids.new_uuid()}
        encoded_body = b"" if body is None else msgspec.json.encode(body)
        return self.settle(replace(request, headers={**request.headers, **extra_headers}, body=encoded_body), failure)

    def _request(self, method: str, path: str) -> Request:
        url = path if "://" in path else self.base + path
        return Request(method, url, self.headers(url))

    def settle(self, request: Request, failure: str) -> Reply:
        """Send a request that may be repeated, and repeat it while the server is unreachable or busy.

        Raises:
            Failure: the server refuses the request, or is still unreachable after ATTEMPTS attempts.
        """
        began_s = clock.monotonic_s()
        for attempt in count(1):
            is_last = attempt >= ATTEMPTS and clock.monotonic_s() - began_s >= self.patience_s
            try:
                reply = read_reply(send(request))
            except Unreachable as error:
                if is_last:
                    raise self.unreachable(failure, str(error)) from error
                wait(pause_s(attempt))
                continue
            if reply.is_success:
                return reply
            if is_last or not _is_retryable(reply) or _retry_after_s(reply.headers) > MAX_WAIT_S:
                raise self.refusal(reply, failure)
            wait(retry_pause_s(reply.headers, attempt))
        raise AssertionError("counting never ends")

    def ask(self, request: Request, failure: str) -> Reply:
        """Send a request and return the response, even if it is an error. Repeat it while the server is unreachable.

        Raises:
            Failure: the server is still unreachable after ATTEMPTS attempts.
        """
        for attempt in count(1):
            try:
                return read_reply(send(request))
            except Unreachable as error:
                if attempt == ATTEMPTS:
                    raise self.unreachable(failure, str(error)) from error
                wait(pause_s(attempt))
        raise AssertionError("counting never ends")

    def unreachable(self, failure: str, reason: str) -> Failure:
        """Return the failure of a request that no server answered."""
        remedy = "Check that the server runs and that --server (or COUNTERSIGN_SERVER) names it."
        return Failure(failure, why=f"{self.root}: {reason}", remedy=remedy, exit_code=Exit.UNREACHABLE)

    def refusal(self, reply: Reply, failure: str) -> Failure:
        """Convert a refusal by the server into the failure of a command."""
        try:
            problem = msgspec.json.decode(reply.body, type=api_models.Problem)
        except (msgspec.DecodeError, UnicodeDecodeError):
            problem = api_models.Problem()
        if problem.error and not problem.code and not problem.error_description:
            return _records_failure(self.root, reply, problem.error, failure)
        code = problem.code or problem.error
        exit_code = exit_code_of(reply.status, code)
        reason = _problem_reason(problem)
        message = f"{reason} ({reply.status} {code})" if code else f"{reason} ({reply.status})"
        if not reason:
            message = f"{self.root} answered {reply.status}{f' {code}' if code else ''} without a reason"
        remedy = _remedy(reply, self.root, problem) or problem.resolution
        return Failure(failure, why=message, remedy=remedy, exit_code=exit_code, problem=code)

    def stream(self, url: str, headers: Mapping[str, str], failure: str) -> Response:
        """Send a GET once, follow redirects, and return the response before its body is read.

        The caller reads the body, and handles status 416 (RFC 9110 §15.5.17).

        Raises:
            Unreachable: the server cannot be reached, or is busy. In the latter case this method has already waited
                as long as the server asked for.
            Failure: the server refuses the request.
        """
        for redirects in count():
            known_headers = {name: value for name, value in headers.items() if name != "If-Range" or self._is_ours(url)}
            response = send(Request("GET", url, {**self.headers(url), **known_headers}))
            location = response.getheader("Location")
            if response.status not in _REDIRECTED or location is None or redirects == MAX_REDIRECTS:
                return self._readable(response, failure)
            response.close()
            url = _redirect_target(url, location, failure)
        raise AssertionError("counting never ends")

    def _readable(self, response: Response, failure: str) -> Response:
        if response.status in (200, 206, 416):
            return response
        if response.status in _RETRYABLE:
            response.close()
            wait(retry_pause_s({"retry-after": response.getheader("Retry-After") or ""}, 1))
            raise Unreachable(f"the server answered {response.status}")
        raise self.refusal(read_reply(response), failure)

    def _is_ours(self, url: str) -> bool:
        """Return whether the URL belongs to this server. If-Range is sent only to this server, because other stores
        have other entity tags."""
        return _origin(url) == _origin(self.root)


def selected_server() -> Server:
    """Return the server that the command line or the environment names."""
    return Server(selected_server_url())


def require_owned_by(server: Server, product: ProductName, failure: str) -> api_models.CatalogProduct:
    """Return the product, and check that it belongs to the named organisation.

    Raises:
        Failure: the product does not exist, or belongs to another organisation.
    """
    try:
        catalog_product = server.get(f"/products/{segment(product.slug)}", api_models.CatalogProduct, failure)
    except Failure as failed:
        if failed.problem == NotFound.code:
            failed.remedy = "List the products with `countersign api GET products`, and use a slug of that list."
        raise
    if catalog_product.org == product.org:
        return catalog_product
    reason = f"{catalog_product.slug} belongs to {catalog_product.org}, not to {product.org}"
    remedy = f"If you mean that product, name {catalog_product.org}/{catalog_product.slug}"
    raise Failure(failure, why=reason, remedy=remedy, exit_code=Exit.NOT_FOUND)


@contextmanager
def release_hints(product: str) -> Generator[None]:
    """Name the command that lists the product's releases, if the block fails because a release does not exist."""
    try:
        yield
    except Failure as failure:
        if failure.problem == NotFound.code:
            list_command = f"`countersign api GET products/{segment(product)}/releases`"
            failure.remedy = f"Use a version from this list: {list_command} (for drafts, the path ends in /drafts)."
        raise


def read_reply(response: Response) -> Reply:
    """Read the whole response into memory.

    Raises:
        Unreachable: the connection ended before the response was complete.
    """
    with response:
        body = bytearray()
        while piece := read(response, min(PIECE_BYTES, MAX_RESPONSE_BYTES - len(body))):
            body += piece
        if response.length:
            raise Unreachable("the answer was cut off")
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, bytes(body))


def decode(reply: Reply, kind: type[AnswerT], failure: str) -> AnswerT:
    """Decode the body of the response as the struct.

    Raises:
        Failure: the body does not match the struct.
    """
    try:
        return msgspec.json.decode(reply.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        remedy = "Check that --server or COUNTERSIGN_SERVER is the address of a Countersign store of this version."
        raise Failure(failure, why=f"the server's answer is not understood: {error}", remedy=remedy) from error


def segment(text: str) -> str:
    """Encode the text as one segment of a URL path. Dots are encoded in `.` and `..`, which would change the path."""
    return quote(text, safe="").replace(".", "%2E") if text in (".", "..") else quote(text, safe="")


def wait(seconds: float) -> None:
    """Wait. Ctrl-C ends the wait."""
    threading.Event().wait(seconds)


def pause_s(attempt: int) -> float:
    """Return the pause after this failed attempt: 0.25 s, doubled each time, at most 10 s, and randomly longer or
    shorter."""
    return min(10.0, 0.25 * 2 ** (attempt - 1)) * (0.75 + ids.random_bytes(1)[0] / 512)


def retry_pause_s(headers: Mapping[str, str], attempt: int) -> float:
    """Return the pause that the server asks for in Retry-After, at most MAX_WAIT_S. Without Retry-After, see
    `pause_s`."""
    requested_s = _retry_after_s(headers)
    return min(float(requested_s), MAX_WAIT_S) if requested_s else pause_s(attempt)


def _problem_reason(problem: api_models.Problem) -> str:
    faults = [(error.parameter or error.pointer, error.detail) for error in problem.errors]
    return reason_with_faults(problem.detail or problem.error_description, faults)


def _records_failure(root: str, reply: Reply, reason: str, failure: str) -> Failure:
    """Return the failure for a refusal by a records service, which gives a reason but no code (records API,
    Answers)."""
    is_missing = reply.status == 404 or reason == "no such record"
    exit_code = Exit.NOT_FOUND if is_missing else exit_code_of(reply.status, "")
    message = f"{reason} ({reply.status})"
    if reply.status in _NO_ROUTE:
        message = f"{root} is a records service, and answered {reply.status} {reason}"
    return Failure(failure, why=message, remedy=_records_remedy(reply, is_missing=is_missing), exit_code=exit_code)


def _records_remedy(reply: Reply, *, is_missing: bool) -> str:
    if reply.status == 401:
        store = f"`countersign login` works only with a store: for a store, {STORE_ADDRESS}."
        return f"{RECORDS_HINT} {store}"
    if reply.status in _NO_ROUTE:
        call = "`countersign api GET /api/meta` lists what you may call there."
        return f"For a command of the store, {STORE_ADDRESS}. To call records: {RECORDS_HINT} {call}"
    if is_missing:
        return "Use an id from the answer of the model's `list` command."
    if requested_s := _retry_after_s(reply.headers):
        return f"Try again in {wait_text(requested_s)}."
    return "Correct the request; `countersign api GET /api/meta` lists the parameters of each command."


def _remedy(reply: Reply, root: str, problem: api_models.Problem) -> str:
    """Return the remedy at a command line, or an empty string if the server's resolution is good enough."""
    code = problem.code or problem.error
    if reply.status == 401 and not code.startswith("invalid_client"):
        return _sign_in_hint(root)
    if reply.status == 403 and (scope_match := _NEEDED_SCOPE.search(reply.headers.get("www-authenticate", ""))):
        return _scope_hint(root, scope_match[1])
    if reply.status == 404 and not code:
        return "Check that --server or COUNTERSIGN_SERVER is the address of a Countersign store."
    return _hint_of_code(code, problem, reply)


def _hint_of_code(code: str, problem: api_models.Problem, reply: Reply) -> str:
    if code == "invalid_request" and not problem.errors:
        return ""
    wait_s = _retry_after_s(reply.headers)
    if reply.status == 429 and wait_s:
        return f"Try again in {wait_text(wait_s)}."
    return hint(code, wait_s)


def _sign_in_hint(root: str) -> str:
    if os.environ.get(credentials.Variable.BEARER, "").strip():
        return "COUNTERSIGN_TOKEN is set and takes precedence: unset it, or set another token."
    if credentials.load_token(root) is not None:
        anew = "Sign in again with `countersign login`, or remove the saved login with `countersign logout`"
        return f"{anew}: public data needs no login."
    return "Sign in with `countersign login`, or set COUNTERSIGN_TOKEN."


def _scope_hint(root: str, scope: str) -> str:
    """Return how to get a token with a scope that the current token lacks."""
    lacks = f"`countersign login` gives no token with the scope {scope}; "
    if scope in PUBLISH_SCOPES.split():
        lacks = "" if scope in READ_SCOPES.split() else "Sign in with `countersign login --publish` as a publisher; or "
    client = "act as an OAuth client that has it (COUNTERSIGN_CLIENT_ID and COUNTERSIGN_CLIENT_SECRET)"
    issue_command = f"`countersign token issue EMAIL --scope {scope}`"
    token = f"set COUNTERSIGN_TOKEN to the token that {issue_command} prints on the store's machine"
    return f"{lacks}{client}, or {token}. The pages of {root} need no scope."


def _retry_after_s(headers: Mapping[str, str]) -> int:
    """Return the number of seconds in the Retry-After header, or 0 if there is no valid one."""
    retry_after = headers.get("retry-after", "")
    # Convert only nine digits, because Python refuses to convert a very long string. No wait needs more digits.
    return int(retry_after[:9]) if retry_after.isascii() and retry_after.isdigit() else 0


def _is_retryable(reply: Reply) -> bool:
    return reply.status in _RETRYABLE or (reply.status == 409 and b"idempotency_in_progress" in reply.body)


def _redirect_target(url: str, location: str, failure: str) -> str:
    """Return the URL that a redirect leads to.

    Raises:
        Failure: the URL is malformed, or is not an HTTP URL.
    """
    reason = "the server redirects to an address that is not http or https"
    try:
        target = urljoin(url, location)
    except ValueError as error:
        raise Failure(failure, why=reason) from error
    if not _is_http_url(target):
        raise Failure(failure, why=reason)
    return target


def _is_http_url(url: str) -> bool:
    """Return whether a request can be sent to the URL.

    The URL must be an HTTP URL with a valid host name, and its path must be valid in a request line."""
    try:
        url_parts = urlsplit(url)
        host = (url_parts.hostname or "").encode("idna")
        is_http = url_parts.scheme in ("http", "https") and bool(host) and url_parts.port != 0
    except ValueError:
        return False
    return is_http and _REQUEST_TARGET.fullmatch(f"{url_parts.path}?{url_parts.query}") is not None


def _origin(url: str) -> tuple[str, str | None, int | None]:
    url_parts = urlsplit(url)
    return url_parts.scheme, url_parts.hostname, url_parts.port or (443 if url_parts.scheme == "https" else 80)
