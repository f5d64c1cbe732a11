"""`countersign api`: call any documented operation of either service's API, with the token of the command line."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, NamedTuple
from urllib.parse import urlencode

import click
import msgspec

from countersign.cli import output
from countersign.cli.client import connection
from countersign.cli.client.connection import Reply, Server
from countersign.cli.client.transport import Request, Unreachable, send
from countersign.cli.options import server_option
from countersign.cli.output import Exit, Failure
from countersign.kernel import ids

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
WITHOUT_BODY = ("GET", "HEAD", "DELETE")


class ApiCall(NamedTuple):
    """The requested call. Without a body, the fields are sent in the query."""

    method: str
    path: str
    query: Sequence[tuple[str, str]]
    body: bytes | None
    headers: dict[str, str]


class Page(msgspec.Struct):
    """A page of a list that is continued with a cursor."""

    items: list[object]
    next_cursor: str | None = None


class PlanReference(msgspec.Struct):
    """A plan that waits for the approval of a person."""

    plan_id: str = ""


@click.command()
@click.argument("method", type=click.Choice(METHODS, case_sensitive=False))
@click.argument("path")
@click.option("-f", "--field", "fields", multiple=True, metavar="NAME=TEXT", help="A member of the body or query.")
@click.option("-j", "--json-field", "values", multiple=True, metavar="NAME=JSON", help="A member with a JSON value.")
@click.option("-q", "--query", "queries", multiple=True, metavar="NAME=TEXT", help="A parameter of the query.")
@click.option("--input", "file", type=click.File("rb"), help="The whole body from a file; - is stdin.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME:VALUE", help="A header of the request.")
@click.option("--pages", is_flag=True, help="Fetch all pages of a list; print one line of JSON per item.")
@server_option
@output.json_option
def api(
    *,
    method: str,
    path: str,
    fields: tuple[str, ...],
    values: tuple[str, ...],
    queries: tuple[str, ...],
    file: IO[bytes] | None,
    headers: tuple[str, ...],
    pages: bool,
) -> None:
    """Call METHOD PATH of a server's API and print the response.

    PATH is a path of the store's API (`products`). If it begins with a slash, it is a path of the server
    (`/api/meta`). The exit code depends on the kind of refusal. It is 10 if the call waits for a person's approval.

        countersign api GET products -f q=chess --pages

        countersign api POST /api/lead/list -j limit=5 --server http://127.0.0.1:8080
    """
    method = method.upper()
    _require_valid_options(method, path, has_fields=bool(fields or values), has_file=file is not None, pages=pages)
    header_values = dict(_pair(header, ":", "-H takes NAME:VALUE") for header in headers)
    body = None if method in WITHOUT_BODY else b"{}" if file is None else file.read()
    call = _with_body_fields(ApiCall(method, path, _parameters(queries), body, header_values), fields, values)
    server = connection.selected_server()
    if pages:
        for item in _page_items(server, call):
            click.echo(json.dumps(item, ensure_ascii=True))
        return
    reply = _send(server, call, _url(server, call))
    _show(reply)
    plan = _plan_id(reply)
    if plan:
        if not output.is_terminal() and not reply.body.endswith(b"\n"):
            # If stdout and stderr go to the same file, the text that follows must start on a new line.
            sys.stdout.flush()
            click.echo(err=True)
        output.note(f"Nothing has changed yet: a person must approve it, at {server.root}/approvals (plan {plan}).")
        sys.exit(Exit.APPROVAL)


def _require_valid_options(method: str, path: str, *, has_fields: bool, has_file: bool, pages: bool) -> None:
    """Check that PATH is only a path, and that the options can be combined.

    Raises:
        UsageError: PATH has a scheme, query or fragment, or the options cannot be combined.
    """
    if any(sign in path for sign in ("://", "?", "#")):
        raise click.UsageError("PATH must be only a path; --server sets the server, and -q NAME=TEXT a query parameter")
    if has_file and has_fields:
        raise click.UsageError("use the body's fields or --input, not both")
    if has_file and method in WITHOUT_BODY:
        raise click.UsageError(f"{method} has no body")
    if pages and method != "GET":
        raise click.UsageError("--pages needs GET")


def _with_body_fields(call: ApiCall, fields: Sequence[str], values: Sequence[str]) -> ApiCall:
    texts = [_pair(field, "=", "-f takes NAME=TEXT") for field in fields]
    json_pairs = [_pair(value, "=", "-j takes NAME=JSON") for value in values]
    if call.body is None:
        return call._replace(query=(*call.query, *texts, *json_pairs))
    if not texts and not json_pairs:
        return call
    members = {**dict(texts), **{name: _json_value(name, text) for name, text in json_pairs}}
    return call._replace(body=json.dumps(members).encode())


def _parameters(queries: Sequence[str]) -> list[tuple[str, str]]:
    return [_pair(query, "=", "-q takes NAME=TEXT") for query in queries]


def _pair(text: str, sign: str, remedy: str) -> tuple[str, str]:
    name, separator, value = text.partition(sign)
    if not separator or not name.strip():
        raise click.UsageError(remedy)
    return name.strip(), value.strip() if sign == ":" else value


def _json_value(name: str, text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"the value of {name} is not JSON: pass a text with -f") from error
    return value


def _url(server: Server, call: ApiCall) -> str:
    path = f"{server.root}{call.path}" if call.path.startswith("/") else f"{server.base}/{call.path}"
    return f"{path}?{urlencode(call.query)}" if call.query else path


def _send(server: Server, call: ApiCall, url: str) -> Reply:
    """Send the call to this URL and return the response.

    While the server is unreachable or busy, the request is repeated, but only if the server runs a repeated request
    once.

    Raises:
        Failure: the server refuses the request or cannot be reached.
    """
    failure = f"{call.method} {call.path} failed"
    base_headers = {**server.headers(url), "Accept": "application/json"}
    if call.body is not None:
        base_headers |= {"Content-Type": "application/json", "Idempotency-Key": ids.new_uuid()}
    # Compare header names in lower case, because they are case-insensitive. A given header replaces the default one.
    given_names = {name.lower() for name in call.headers}
    headers = {name: value for name, value in base_headers.items() if name.lower() not in given_names} | call.headers
    request = Request(call.method, url, headers, call.body or b"")
    # Send a call of the records API only once, because earlier versions of the service ignore the idempotency key.
    if call.method in ("GET", "HEAD") or url.startswith(f"{server.base}/"):
        return server.settle(request, failure)
    try:
        reply = connection.read_reply(send(request))
    except Unreachable as error:
        raise server.unreachable(failure, str(error)) from error
    if not reply.is_success:
        raise server.refusal(reply, failure)
    return reply


def _page_items(server: Server, call: ApiCall) -> Iterator[object]:
    """Yield the items of all pages.

    A page is either a list, with the next page in the Link header, or an object with `items` and `next_cursor`.

    Raises:
        Failure: the server refuses the request or cannot be reached, or the response is not a list.
    """
    url: str | None = _url(server, call)
    while url is not None:
        reply = _send(server, call, url)
        try:
            page = msgspec.json.decode(reply.body, type=list[object] | Page)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            remedy = "Leave --pages out."
            raise Failure(f"{call.path} has no pages", why="the answer is not a list", remedy=remedy) from error
        if isinstance(page, list):
            yield from page
            url = server.next_page(reply)
        else:
            yield from page.items
            query = [pair for pair in call.query if pair[0] != "cursor"]
            next_request = call._replace(query=(*query, ("cursor", page.next_cursor or "")))
            url = _url(server, next_request) if page.next_cursor else None


def _plan_id(reply: Reply) -> str:
    """Return the id of the plan that waits for approval, or an empty string if the response names no plan."""
    try:
        return msgspec.json.decode(reply.body, type=PlanReference).plan_id if reply.status == 202 else ""
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _show(reply: Reply) -> None:
    """Print the body of the response unchanged. On a terminal, indent JSON and remove control characters."""
    if not output.is_terminal():
        sys.stdout.buffer.write(reply.body)
        return
    body_text = reply.body.decode("utf-8", "replace")
    with suppress(ValueError):
        body_text = json.dumps(json.loads(body_text), indent=2, ensure_ascii=False)
    click.echo(output.clean(body_text))
