"""Independent OAuth clients, unmodified, at a started store: each gets access, and revokes it."""

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.peers import shop as shops
from tests.peers.node import Node, environment, prepare_node
from tests.peers.shop import PersonBrowser, RunningStore

PROJECT = Path(__file__).parent / "oauth_clients"
WAYS = ("client_secret_basic", "client_secret_post")
TIMEOUT_S = 60
FROM_A_REFUSAL = (
    "GET /api/v1/library",
    "GET /.well-known/oauth-protected-resource",
    "GET /.well-known/oauth-authorization-server",
    "POST /api/v1/auth/login",
    "GET /api/v1/library",
)
"""The requests by which a client that knows only its credentials gets access."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStore]:
    """The store that these tests share."""
    with shops.open_shop(tmp_path_factory.mktemp("shop") / "data") as running:
        yield running


@pytest.fixture
def person(shop: RunningStore) -> Iterator[PersonBrowser]:
    """A person without any consent so far."""
    with shop.person() as browser:
        yield browser


@pytest.fixture(scope="session")
def oauth_node() -> Node:
    """Node with the locked packages of the OAuth clients; the test is skipped when they are not available."""
    return prepare_node(PROJECT)


def seen_by(
    command: list[str | Path],
    client_settings: dict[str, str],
    person: PersonBrowser | None = None,
    *,
    folder: Path = PROJECT,
    **extra: str,
) -> Any:
    """Run the client, and return its results. Each time the client sends its person to the store, the person consents.
    `more` is added to the client's environment."""
    with subprocess.Popen(
        [*command, json.dumps(client_settings)],
        cwd=folder,
        env={**environment(), **extra},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as client:
        # Without a limit, reading from a client that waits for ever would never end.
        watch = Timer(TIMEOUT_S, client.kill)
        watch.start()
        try:
            results = client_results(client, person)
            _, errors = client.communicate()
        finally:
            watch.cancel()
            client.kill()
    assert results is not None, errors or f"nothing was seen within {TIMEOUT_S} s"
    return results


def client_results(client: "subprocess.Popen[str]", person: PersonBrowser | None) -> Any:
    """Open each address that the client prints, until it prints its results. Return the results, or None if it never
    prints them."""
    assert client.stdin is not None
    assert client.stdout is not None
    for line in client.stdout:
        content = json.loads(line)
        if "seen" in content:
            return content["seen"]
        assert person is not None, "nobody is there to allow anything"
        client.stdin.write(person.authorize(content["open"]) + "\n")
        client.stdin.flush()
    return None


def in_python(script: str, client_settings: dict[str, str], person: PersonBrowser | None = None, **extra: str) -> Any:
    """Return the results of a client in Python."""
    return seen_by([sys.executable, PROJECT / script], client_settings, person, **extra)


def check(shop: RunningStore, person: PersonBrowser, results: dict[str, Any]) -> None:
    """Compare the client's results with the store. Each of the three tokens gave access to the library until it was
    revoked. One token has a person's consent."""
    assert person.pages == ["sign-in", "consent"]
    assert results["issuer"] == shop.root
    for name in (*WAYS, "code"):
        token = results[name]
        assert token["token_type"].lower() == "bearer"
        assert token["expires_in"] == 86_400
        assert token["scope"] == "read:library"
        assert results[f"{name}_ended"] == [200, 200, 401], name
        assert shop.library(token["access_token"]) == 401


@pytest.mark.parametrize("script", ["authlib_requests.py", "authlib_httpx.py"])
def test_authlib_gets_and_revokes_a_token(shop: RunningStore, person: PersonBrowser, script: str) -> None:
    results = in_python(script, shop.known_to_client(), person)

    check(shop, person, results)
    assert results["iss"] == [shop.root]


def test_requests_oauthlib_gets_a_token(shop: RunningStore, person: PersonBrowser) -> None:
    # Its documented switch for addresses without TLS.
    results = in_python("requests_oauthlib_client.py", shop.known_to_client(), person, OAUTHLIB_INSECURE_TRANSPORT="1")

    for name in (*WAYS, "code"):
        assert results[name]["expires_in"] == 86_400
        assert results[f"{name}_status"] == 200


def test_oauth4webapi_gets_verifies_and_revokes_a_token(
    shop: RunningStore, person: PersonBrowser, oauth_node: Node
) -> None:
    results = seen_by(
        [oauth_node.program, "oauth4webapi.mjs"], shop.known_to_client(), person, folder=oauth_node.folder
    )

    check(shop, person, results)
    for name in (*WAYS, "code"):
        claims = results[f"{name}_claims"]
        assert (claims["iss"], claims["aud"], claims["client_id"]) == (shop.root, shop.root, shop.client_id)
        assert (claims["sub"] == shop.client_id) == (name != "code")


def test_openid_client_gets_and_revokes_a_token(shop: RunningStore, person: PersonBrowser, oauth_node: Node) -> None:
    results = seen_by(
        [oauth_node.program, "openid_client.mjs"], shop.known_to_client(), person, folder=oauth_node.folder
    )

    check(shop, person, results)
    assert results["supportsPKCE"] is True


@pytest.mark.parametrize("auth_method", WAYS)
@pytest.mark.parametrize("grant", ["credentials", "code"])
def test_the_mcp_sdk_gets_a_token_after_a_refusal(
    shop: RunningStore, person: PersonBrowser, grant: str, auth_method: str
) -> None:
    client_settings = shop.known_to_client(grant=grant, way=auth_method, revoke=f"{shop.root}/auth/revoke")

    results = in_python("mcp_provider.py", client_settings, person)

    assert results["requests"] == [*FROM_A_REFUSAL, "POST /auth/revoke", *FROM_A_REFUSAL]
    assert (results["status"], results["after"]) == (200, 200)
    assert person.pages == (["sign-in", "consent"] if grant == "code" else [])
    assert results["token"]["scope"] == "read:library"


@pytest.mark.parametrize("auth_method", ["none", *WAYS])
def test_the_mcp_sdk_registers_itself_and_gets_a_token_after_a_refusal(
    shop: RunningStore, person: PersonBrowser, auth_method: str
) -> None:
    client_settings = shop.known_to_client(grant="registration", way=auth_method, client_id="", client_secret="")

    results = in_python("mcp_provider.py", client_settings, person)

    assert results["requests"] == [*FROM_A_REFUSAL[:3], "POST /auth/clients", *FROM_A_REFUSAL[3:]]
    assert results["status"] == 200
    assert person.pages == ["sign-in", "consent"]


def new_assertion(shop: RunningStore) -> tuple[str, str]:
    """Return a new person at the identity provider, and an assertion about them for the shop's client."""
    subject = f"user-{uuid.uuid4().hex}"
    email = f"{subject}@example.com"
    claims = {"sub": subject, "email": email, "client_id": shop.client_id, "resource": f"{shop.base}/library"}
    assertion = shop.provider.mint(shop.root, **claims, scope="read:library")
    return subject, assertion


@pytest.mark.parametrize("auth_method", WAYS)
def test_the_mcp_sdk_presents_an_assertion_and_an_event_ends_its_token(shop: RunningStore, auth_method: str) -> None:
    subject, assertion = new_assertion(shop)

    results = in_python(
        "mcp_provider.py", shop.known_to_client(grant="assertion", way=auth_method, assertion=assertion)
    )

    token = results["token"]["access_token"]
    assert results["status"] == 200
    assert results["token"]["scope"] == "read:library"
    assert shop.library(token) == 200
    event_answer = shop.provider.push(shop.root, shop.provider.event(shop.root, subject))
    assert (event_answer.status_code, event_answer.content) == (202, b"")
    assert shop.library(token) == 401


def test_authlib_presents_an_assertion_and_an_event_ends_its_token(shop: RunningStore) -> None:
    subject, assertion = new_assertion(shop)
    other_assertion, kept_assertion = new_assertion(shop)

    results = in_python("authlib_assertion.py", shop.known_to_client(assertion=assertion))
    untouched = in_python("authlib_assertion.py", shop.known_to_client(assertion=kept_assertion))

    assert results["status"] == 200
    assert shop.provider.push(shop.root, shop.provider.event(shop.root, subject)).status_code == 202
    assert shop.library(results["token"]["access_token"]) == 401
    assert shop.library(untouched["token"]["access_token"]) == 200, other_assertion
