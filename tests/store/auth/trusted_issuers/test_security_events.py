"""Security events: what a trusted issuer may revoke, and what other issuers cannot revoke (RFC 8417, RFC 8935)."""

import asyncio
import time
import uuid
from typing import Any

import httpx
import pytest

from countersign.kernel import clock
from countersign.store.auth import tokens
from countersign.store.context import Store
from tests.peers import identity_provider
from tests.peers.identity_provider import REVOKED, IdentityProvider
from tests.store.conftest import ROOT_URL

TYPE = "application/secevent+jwt"
REGISTERED = """
    INSERT INTO registration (id, kind, status, generation, issuer, subject, scopes, agent, address, interval_s,
        created_at)
    VALUES ($1, 'identity_assertion', 'claimed', 1, $2, $3, 'read:products', 'an agent', '127.0.0.1', 5, $4)
"""


async def register(store: Store, issuer: str, subject: str) -> str:
    """Register an agent with an assertion of the issuer, and return its id."""
    registration_id = f"reg_{uuid.uuid4().hex}"
    async with store.database.transaction() as transaction:
        await transaction.run(REGISTERED, registration_id, issuer, subject, clock.now())
    return registration_id


async def status(store: Store, registration: str) -> tuple[str, int]:
    """Return the status and the generation of the registration."""
    row = await store.database.fetch_one("SELECT status, generation FROM registration WHERE id = $1", registration)
    assert row is not None
    return row[0], row[1]


async def push(http: httpx.AsyncClient, token: str | bytes, content_type: str | None = TYPE) -> httpx.Response:
    """Send an event and return the response."""
    headers = {} if content_type is None else {"Content-Type": content_type}
    return await http.post("/healthz", content=token, headers=headers)


async def err(http: httpx.AsyncClient, token: str | bytes, content_type: str | None = TYPE) -> str:
    """Return the error code of a refused event in the format of RFC 8935."""
    answer = await push(http, token, content_type)
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-language"] == "en"
    assert answer.json().keys() == {"err", "description"}
    return answer.json()["err"]


async def test_a_revocation_ends_what_the_issuer_asserted_and_is_acknowledged_twice(
    store: Store, http: httpx.AsyncClient, provider: IdentityProvider
) -> None:
    await provider.trust(store)
    ended_registrations = [await register(store, provider.issuer, "user-1") for _ in range(2)]
    other_registration = await register(store, provider.issuer, "user-2")
    event = provider.event(ROOT_URL)

    first_answer = await push(http, event)
    assert [await status(store, registration) for registration in (*ended_registrations, other_registration)] == [
        ("revoked", 2),
        ("revoked", 2),
        ("claimed", 1),
    ]
    later_registration = await register(store, provider.issuer, "user-1")
    second_answer = await push(http, event)

    for answer in (first_answer, second_answer):
        assert (answer.status_code, answer.content) == (202, b"")
    assert await status(store, later_registration) == ("claimed", 1)


async def test_a_subject_may_be_named_by_issuer_and_sub(
    store: Store, http: httpx.AsyncClient, provider: IdentityProvider
) -> None:
    await provider.trust(store)
    named_registration = await register(store, provider.issuer, "user-1")
    sub_id = {"format": "iss_sub", "iss": provider.issuer, "sub": "user-1"}

    assert (await push(http, provider.event(ROOT_URL, None, sub_id=sub_id))).status_code == 202
    assert (await status(store, named_registration))[0] == "revoked"
    for changed_members in (
        {"sub": "user-2"},
        {"sub": None},
        {"sub": 1},
        {"format": "email", "email": "ann@example.com"},
    ):
        subject = "user-1" if changed_members == {"sub": "user-2"} else None
        event = provider.event(ROOT_URL, subject, sub_id=sub_id | changed_members)
        assert await err(http, event) == "invalid_request"


async def test_t42_an_event_about_another_issuers_subject_has_no_effect(
    store: Store, http: httpx.AsyncClient, provider: IdentityProvider
) -> None:
    with identity_provider.serve_provider() as other_provider:
        await provider.trust(store)
        await other_provider.trust(store)
        own_registration = await register(store, provider.issuer, "user-1")

        assert (await push(http, other_provider.event(ROOT_URL))).status_code == 202
        sub_id = {"format": "iss_sub", "iss": provider.issuer, "sub": "user-1"}
        assert await err(http, other_provider.event(ROOT_URL, None, sub_id=sub_id)) == "access_denied"
        assert await err(http, other_provider.event(ROOT_URL, iss=provider.issuer)) == "invalid_key"

    assert await status(store, own_registration) == ("claimed", 1)


async def test_t42_an_event_that_is_not_believed_has_no_effect(
    store: Store, http: httpx.AsyncClient, provider: IdentityProvider
) -> None:
    await provider.trust(store)
    own_registration = await register(store, provider.issuer, "user-1")
    now_s = int(time.time())
    valid_event = provider.event(ROOT_URL)
    stranger = identity_provider.new_key("ES256")
    header = {"alg": "ES256", "kid": provider.keys["ES256"].kid, "typ": "secevent+jwt"}
    forged_event = identity_provider.compact(header, provider.claims(ROOT_URL), stranger.sign)
    cases: list[tuple[str, str]] = [
        (provider.event("https://other.example"), "invalid_audience"),
        (provider.event(f"{ROOT_URL}/"), "invalid_audience"),
        (provider.event(ROOT_URL, aud=[ROOT_URL, "https://other.example"]), "invalid_audience"),
        (provider.event(ROOT_URL, iss="https://other.example"), "invalid_issuer"),
        (provider.event(ROOT_URL, iss=f"{provider.issuer}/"), "invalid_issuer"),
        (provider.event(ROOT_URL, iat=now_s - 8 * 86_400), "invalid_request"),
        (provider.event(ROOT_URL, iat=now_s + 120), "invalid_request"),
        (provider.event(ROOT_URL, exp=now_s - 120), "invalid_request"),
        (provider.event(ROOT_URL, subject=None), "invalid_request"),
        (provider.event(ROOT_URL, events={}), "invalid_request"),
        (provider.event(ROOT_URL, events=[REVOKED]), "invalid_request"),
        (provider.event(ROOT_URL, events={REVOKED: None}), "invalid_request"),
        (forged_event, "authentication_failed"),
        (valid_event[:-8] + "AAAAAAAA", "authentication_failed"),
        (valid_event.rpartition(".")[0] + ".", "invalid_request"),
    ]
    for token, expected in cases:
        assert await err(http, token) == expected
    for claim in ("iss", "aud", "jti", "iat", "events"):
        for value in ("missing", [], "", True):
            event = provider.event(ROOT_URL, **{claim: None if value == "missing" else value})
            assert await err(http, event) in ("invalid_request", "invalid_issuer", "invalid_audience")
    assert await status(store, own_registration) == ("claimed", 1)


async def test_t8_every_other_kind_of_token_is_no_event(
    store: Store, http: httpx.AsyncClient, provider: IdentityProvider
) -> None:
    await provider.trust(store)
    claims: dict[str, Any] = provider.claims(ROOT_URL, events={REVOKED: {}})
    own_registration = await register(store, provider.issuer, "user-1")

    for typ in ("JWT", "at+jwt", "oauth-id-jag+jwt", None):
        assert await err(http, provider.signed(claims, {"typ": typ})) == "invalid_request"
    own_token = tokens.issue(store, "person", tokens.FIRST_PARTY, frozenset({"read:products"}))
    assert await err(http, own_token) == "invalid_request"
    assert await status(store, own_registration) == ("claimed", 1)


async def test_t42_an_unknown_event_is_accepted_and_has_no_effect(
    store: Store, http: httpx.AsyncClient, provider: IdentityProvider
) -> None:
    await provider.trust(store)
    own_registration = await register(store, provider.issuer, "user-1")

    for events in ({"https://schemas.openid.net/secevent/caep/event-type/session-revoked": {}}, {REVOKED + "x": {}}):
        assert (await push(http, provider.event(ROOT_URL, events=events))).status_code == 202
    assert (await push(http, provider.event(ROOT_URL, None, events={"urn:x": {}}))).status_code == 202
    assert await status(store, own_registration) == ("claimed", 1)
    assert (await push(http, provider.event(ROOT_URL, events={"urn:x": {}, REVOKED: {}}))).status_code == 202
    assert (await status(store, own_registration))[0] == "revoked"


async def test_t42_the_body_is_one_event_of_its_type_and_64_kib_at_most(
    store: Store, http: httpx.AsyncClient, provider: IdentityProvider
) -> None:
    await provider.trust(store)
    event = provider.event(ROOT_URL)

    for content_type in ("application/json", "application/jwt", "text/plain", "", None, "application/secevent+jwtx"):
        assert await err(http, event, content_type) == "invalid_request"
    for body in (
        b"",
        b"{}",
        b"\xff\xfe",
        b"a.b.c",
        event.encode() + b"\n" + event.encode(),
        b"x" * 20_000,
        b"." * 65_536,
    ):
        assert await err(http, body) == "invalid_request"
    large = await push(http, b"x" * 65_537)
    assert (large.status_code, large.json()["err"]) == (413, "invalid_request")
    for content_type in ("Application/SecEvent+JWT", "application/secevent+jwt; charset=utf-8"):
        assert (await push(http, provider.event(ROOT_URL) + "\n", content_type)).status_code == 202


async def test_t42_only_one_of_many_concurrent_deliveries_has_an_effect(
    store: Store, http: httpx.AsyncClient, provider: IdentityProvider
) -> None:
    await provider.trust(store)
    own_registration = await register(store, provider.issuer, "user-1")
    event = provider.event(ROOT_URL)

    answers = await asyncio.gather(*(push(http, event) for _ in range(10)))

    assert {answer.status_code for answer in answers} == {202}
    assert await status(store, own_registration) == ("revoked", 2)


async def test_while_the_issuers_keys_cannot_be_had_the_event_is_to_be_sent_again(
    store: Store, http: httpx.AsyncClient, provider: IdentityProvider
) -> None:
    await provider.trust(store)
    provider.stop()

    answer = await push(http, provider.event(ROOT_URL))

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


@pytest.mark.parametrize("header", ["Bearer nonsense", "Basic nonsense"])
async def test_an_authorization_header_of_the_transmitter_is_ignored(
    store: Store, http: httpx.AsyncClient, provider: IdentityProvider, header: str
) -> None:
    await provider.trust(store)

    answer = await http.post(
        "/healthz", content=provider.event(ROOT_URL), headers={"Content-Type": TYPE, "Authorization": header}
    )

    assert answer.status_code == 202
