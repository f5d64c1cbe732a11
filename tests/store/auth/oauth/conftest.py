"""An OAuth client with a redirect address, and a person who signs in and decides."""

import base64
import hashlib
import re
from collections.abc import Mapping
from html import unescape
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from countersign.kernel.security import passwords
from countersign.store.auth import people, queries
from countersign.store.auth.oauth import clients
from tests.store.conftest import ROOT_URL
from tests.store.world import World

BACK = "https://app.example/back"
PASSWORD = "a long enough password"
ORIGIN = {"Origin": ROOT_URL}
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
STATE = "a state & more"


class KnownClient(NamedTuple):
    """An OAuth client with its secret."""

    id: str
    secret: str


async def new_client(
    world: World,
    *returns_to: str,
    scope: str = "read:products read:library",
    is_implicit: bool = False,
    name: str = "App",
) -> KnownClient:
    """Create a client of north that people may let act for them."""
    org = await queries.organisation_with_slug(world.store.database, "north")
    assert org is not None
    async with world.store.database.transaction() as transaction:
        created_client, secret = await clients.create_client(
            transaction, org.id, name, scope.split(), redirect_uris=returns_to or (BACK,), is_implicit=is_implicit
        )
    return KnownClient(created_client.id, secret)


async def new_person(world: World, email: str) -> str:
    """Create a person with a password, and return the id."""
    password_hash = await passwords.hash_password(PASSWORD)
    async with world.store.database.transaction() as transaction:
        return (await people.add_person(transaction, email, password_hash)).id


class Browser:
    """The browser of a person: it keeps the session and sends the forms of pages."""

    def __init__(self, world: World) -> None:
        self.http = world.http
        self.cookie: dict[str, str] = {}

    async def sign_in(self, email: str) -> None:
        """Sign in with the page."""
        form = {"email": email, "password": PASSWORD}
        answer = await self.http.post("/auth/signin", data=form, headers=ORIGIN)
        assert answer.status_code == 303, answer.text
        self.http.cookies.clear()
        self.cookie = {"Cookie": answer.headers["set-cookie"].split(";")[0]}

    async def get(self, path: str, query: Mapping[str, str] | None = None, **headers: str) -> httpx.Response:
        """Open a page. The names of `headers` have underscores instead of dashes."""
        request_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.get(path, params=query, headers={**self.cookie, **request_headers})

    async def post(self, path: str, form: Mapping[str, str]) -> httpx.Response:
        """Send a form from one of the store's pages."""
        return await self.http.post(path, data=dict(form), headers={**self.cookie, **ORIGIN})

    async def decide(self, page: httpx.Response, decision: str) -> httpx.Response:
        """Press a button of the consent page."""
        assert page.status_code == 200, page.text
        return await self.post("/auth/authorize", {**hidden_fields(page), "decision": decision})


def hidden_fields(page: httpx.Response) -> dict[str, str]:
    """Return the hidden fields in the form of a page."""
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text)
    return {name: unescape(value) for name, value in fields}


def authorization_parameters(client: KnownClient, **changes: str) -> dict[str, str]:
    """Return the parameters of an authorization request. An empty change omits a parameter."""
    parameters = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": BACK,
        "scope": "read:library",
        "state": STATE,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        **changes,
    }
    return {name: value for name, value in parameters.items() if value}


def redirect_parameters(answer: httpx.Response, address: str = BACK, mark: str = "?") -> dict[str, str]:
    """Return the parameters with which the person was redirected to the client."""
    assert answer.status_code == 303, answer.text
    location = answer.headers["location"]
    assert location.startswith(address + mark), location
    parts = urlsplit(location)
    pairs = parse_qsl(parts.fragment if mark == "#" else parts.query, keep_blank_values=True, strict_parsing=True)
    members = dict(pairs)
    assert len(members) == len(pairs)
    return members


def link_parameters(answer: httpx.Response, address: str = BACK, mark: str = "?") -> dict[str, str]:
    """Return the parameters of the link back to the client, on a page that does not redirect the person."""
    assert answer.status_code == 400, answer.text
    assert "location" not in answer.headers
    assert "refresh" not in answer.text
    links = re.findall(r'<a rel="noreferrer" href="([^"]*)">Return to ([^<]*)</a>', answer.text)
    assert len(links) == 1, answer.text
    link, host = unescape(links[0][0]), unescape(links[0][1])
    assert host == urlsplit(address).netloc
    return redirect_parameters(httpx.Response(303, headers={"location": link}), address, mark)


async def code_for(browser: Browser, client: KnownClient, **changes: str) -> str:
    """Return a code that the person allows now or has allowed before."""
    page = await browser.get("/auth/authorize", authorization_parameters(client, **changes))
    answer = page if page.status_code == 303 else await browser.decide(page, "allow")
    return redirect_parameters(answer, changes.get("redirect_uri", BACK))["code"]


async def exchange(world: World, client: KnownClient, code: str, **changes: str) -> httpx.Response:
    """Exchange a code at the token endpoint and return the response. An empty change omits a member."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": BACK,
        "code_verifier": VERIFIER,
        **changes,
    }
    form_fields = {name: value for name, value in form.items() if value}
    return await world.http.post("/api/v1/auth/token", data=form_fields, auth=client)


def oauth_refusal(answer: httpx.Response) -> tuple[int, str]:
    """Return the status and the error of an OAuth refusal, which must have both documented formats and must not be
    cacheable."""
    body = answer.json()
    assert body["error_description"] == body["message"]
    assert body["code"] == body["error"]
    assert answer.headers["cache-control"] == "no-store"
    return answer.status_code, body["error"]


@pytest.fixture
async def client(world: World) -> KnownClient:
    """A client of north that may ask for read:products and read:library."""
    return await new_client(world)


@pytest.fixture
async def ann(world: World) -> str:
    """The id of ann, who has no role."""
    return await new_person(world, "ann@example.com")


@pytest.fixture
async def browser(world: World, ann: str) -> Browser:
    """The browser of ann, who is signed in."""
    signed_in_browser = Browser(world)
    await signed_in_browser.sign_in("ann@example.com")
    return signed_in_browser
