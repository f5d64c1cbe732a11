"""The redirect addresses that a client may register, and which of them a request means."""

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel.errors import InvalidRequest
from countersign.store.auth.oauth import clients
from tests.store.world import World

SAFE = (
    "https://app.example/back",
    "https://app.example",
    "https://app.example:8443/back?a=1&b=%20",
    "http://127.0.0.1/cb",
    "http://127.0.0.1:8000/cb",
    "http://[::1]:8000/cb",
    "http://localhost:8000/cb",
    "https://192.0.2.1/cb",
    "https://xn--80ak6aa92e.example/cb",
    "https://1.example/cb",
)
UNSAFE = (
    "",
    "app.example/back",
    "/back",
    "//app.example/back",
    "http://app.example/back",
    "http://127.0.0.2/cb",
    "http://localhost.evil.example/cb",
    "http://127.0.0.1@evil.example/cb",
    "https://user:password@app.example/back",
    "https://app.example/back#part",
    "https://app.example/back#",
    "https://*.example/back",
    "https://app.example;script-src/back",
    "https://app.example'/back",
    "https://app.example\\back",
    "https://app.example/a b",
    "https://app.example/\r\nX: y",
    "https://app.example/ä",
    "https://ä.example/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.0.0.1/",
    "https://0x/",
    "https://127.1/",
    "https://017700000001/",
    "https://127.0.0.01/",
    "https://1.2.3.4.5/",
    "https://app.127/",
    "https://192.0.2.1./",
    "https://256.0.0.1/",
    "https://./",
    "https://.example/",
    "https://app..example/",
    "https://app.example../",
    "https://-app.example/",
    f"https://{'a' * 64}.example/",
    f"https://{'a.' * 125}example/",
    "https://app.example:0/",
    "https://app.example:65536/",
    "https://app.example:x/",
    "https:///back",
    "https://[1.2.3]/back",
    "http://[::2]/back",
    "https:app.example",
    "HTTPS://app.example/back",
    "javascript:alert(1)",
    "data:text/html,x",
    "custom-scheme:/back",
    "https://app.example/" + "a" * 2_000,
)


@pytest.mark.parametrize("uri", SAFE)
def test_valid_redirect_uris_can_be_registered(uri: str) -> None:
    clients.require_safe_uris([uri])

    assert clients.is_registered_uri(uri, [uri])


@pytest.mark.parametrize("uri", UNSAFE)
def test_t35_invalid_redirect_uris_cannot_be_registered(uri: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        clients.require_safe_uris(["https://app.example/back", uri])

    assert refusal.value.faults[0].place == "/redirect_uris/1"


@given(st.text(max_size=40), st.sampled_from(SAFE))
def test_t35_nothing_but_the_port_of_a_loopback_address_may_differ(text: str, registered_uri: str) -> None:
    for given_uri in (text, registered_uri + text, registered_uri.replace("/cb", text), f"http://127.0.0.1:{text}/cb"):
        if clients.is_registered_uri(given_uri, [registered_uri]) and given_uri != registered_uri:
            meant, registered_parts = urlsplit(given_uri), urlsplit(registered_uri)
            assert meant.hostname == registered_parts.hostname
            assert meant.hostname in ("127.0.0.1", "::1")
            assert (meant.scheme, meant.path, meant.query, meant.fragment) == (
                "http",
                registered_parts.path,
                registered_parts.query,
                "",
            )
            assert meant.username is None


@given(st.text(alphabet=st.characters(max_codepoint=0x7F), max_size=30))
def test_a_registered_redirect_uri_names_one_origin_for_the_policy(text: str) -> None:
    uri = f"https://{text}"
    try:
        clients.require_safe_uris([uri])
    except InvalidRequest:
        return

    assert not set(clients.policy_source(uri)) & set(" ;,'\"*\r\n")


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("localhost", True),
        ("a.localhost", True),
        ("a.localhost.", True),
        ("[::1]", True),
        ("localhost.example", False),
        ("192.0.2.1", False),
    ],
)
def test_redirect_uris_to_the_own_machine_are_recognised(host: str, is_own: bool) -> None:
    assert clients.redirect_uri_error(f"https://{host}/cb") is None
    assert clients.is_loopback(f"https://{host}/cb") is is_own


def test_an_ipv6_address_is_named_to_people_and_its_scheme_to_the_policy() -> None:
    assert clients.origin("http://[::1]:8000/cb") == "http://[::1]:8000"
    assert clients.policy_source("http://[::1]:8000/cb") == "http:"
    assert clients.policy_source("http://127.0.0.1:8000/cb") == "http://127.0.0.1:8000"


async def test_an_administrator_registers_addresses_with_a_client_and_sees_them(world: World) -> None:
    owner = await world.person("owner@north.example", north="owner")
    body = {"name": "App", "scopes": ["read:library"], "redirect_uris": list(SAFE), "implicit": True}

    created_body = (await world.call("POST", "/org/clients", owner, json=body)).json()
    plain_client = (
        await world.call("POST", "/org/clients", owner, json={"name": "CI", "scopes": ["read:library"]})
    ).json()
    listed_body = (await world.call("GET", "/org/clients", owner)).json()

    assert (created_body["redirect_uris"], created_body["implicit"]) == (list(SAFE), True)
    assert (plain_client["redirect_uris"], plain_client["implicit"]) == ([], False)
    assert [client["redirect_uris"] for client in listed_body] == [list(SAFE), []]


async def test_t35_a_dangerous_address_is_refused_by_its_place(world: World) -> None:
    owner = await world.person("owner@north.example", north="owner")
    for uris, expected_pointer in (
        ([SAFE[0], "javascript:alert(1)"], "/redirect_uris/1"),
        ([SAFE[0]] * 11, "/redirect_uris"),
    ):
        body = {"name": "App", "scopes": ["read:library"], "redirect_uris": uris}

        answer = await world.call("POST", "/org/clients", owner, json=body)

        assert answer.status_code == 400
        assert answer.json()["errors"][0]["pointer"] == expected_pointer
    assert (await world.call("GET", "/org/clients", owner)).json() == []
