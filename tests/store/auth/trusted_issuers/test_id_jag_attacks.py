"""Attacks with assertions, each with its number in the list: their refusals, and that no assertion is used up."""

import asyncio
import hmac
import json
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countersign.kernel.errors import Refused
from countersign.store.auth import id_jag, tokens, trusted_issuers
from countersign.store.auth.trusted_issuers import TokenRejected
from countersign.store.context import Store
from tests.peers import identity_provider
from tests.peers.identity_provider import SECEVENT, IdentityProvider, b64, compact
from tests.store.auth.trusted_issuers.refusals import refusal_code
from tests.store.conftest import ROOT_URL


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """One database is sufficient. Nothing of a token is stored, and other tests read the issuer's row on both
    databases."""
    return f"sqlite:///{tmp_path}/test.db"


@pytest.fixture(autouse=True)
async def _trusted(store: Store, provider: IdentityProvider) -> None:
    await provider.trust(store)


def now_s() -> int:
    """Return the current time."""
    return int(time.time())


@pytest.mark.parametrize("algorithm", ["none", "None", "HS256", ""])
async def test_t1_t2_no_signature_and_no_mac_passes(store: Store, provider: IdentityProvider, algorithm: str) -> None:
    key, claims = provider.keys["RS256"], provider.claims(ROOT_URL)
    for secret in (provider.key_set(), json.dumps(key.jwk()).encode()):
        header = {"alg": algorithm, "typ": identity_provider.ID_JAG, "kid": key.kid}

        mac_token = compact(header, claims, lambda message, secret=secret: hmac.digest(secret, message, "sha256"))
        assert await refusal_code(store, mac_token) == "invalid_signature"
    assert await refusal_code(store, compact(header, claims, lambda _: b"")) == "invalid_request"


async def test_t3_an_algorithm_that_the_issuer_is_not_allowed_is_refused_though_its_key_is_good(
    store: Store, provider: IdentityProvider
) -> None:
    async with store.database.transaction() as transaction:
        await trusted_issuers.remove(transaction, provider.issuer)
    await provider.trust(store, algorithms=["ES256"])

    assert await refusal_code(store, provider.mint(ROOT_URL, algorithm="RS256")) == "invalid_signature"
    assert provider.requests == 0
    assert (await id_jag.verify(store, provider.mint(ROOT_URL))).subject == "user-1"


@pytest.mark.parametrize("members", [{"crit": ["exp"]}, {"b64": False}], ids=str)
async def test_t4_a_member_that_must_be_understood_is_refused(
    store: Store, provider: IdentityProvider, members: dict[str, object]
) -> None:
    assert await refusal_code(store, provider.mint(ROOT_URL, header=members)) == "invalid_request"


async def test_t5_no_address_in_a_token_is_ever_asked(
    store: Store, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved: list[object] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *arguments, **_: resolved.append(arguments))
    monkeypatch.setattr(asyncio, "open_connection", lambda *arguments, **_: resolved.append(arguments))
    attacker = identity_provider.new_key("ES256")
    for key_url in ("http://169.254.169.254/latest", "https://attacker.example/jwks.json", f"{provider.issuer}/evil"):
        for members in ({"jku": key_url}, {"x5u": key_url}, {"jwk": attacker.jwk()}, {"x5c": ["MII="]}):
            header = {"alg": "ES256", "typ": identity_provider.ID_JAG, "kid": attacker.kid, **members}
            claims = provider.claims(ROOT_URL, jwks_uri=key_url)

            assert await refusal_code(store, compact(header, claims, attacker.sign)) == "invalid_request"
    assert await refusal_code(store, provider.mint(ROOT_URL, iss="https://attacker.example")) == "invalid_issuer"

    assert resolved == []
    assert provider.requests == 0


@pytest.mark.parametrize("kid", ["../../etc/passwd", "' OR 1=1 --", "☃", "k" * 256])
async def test_t6_an_odd_key_id_is_no_key(store: Store, provider: IdentityProvider, kid: str) -> None:
    assert await refusal_code(store, provider.mint(ROOT_URL, header={"kid": kid})) == "invalid_signature"


@pytest.mark.parametrize("kid", ["k" * 9_000, "\0", "\ud800", 1, {}, [], ""], ids=lambda kid: repr(kid)[:9])
async def test_t6_a_key_id_of_no_form_is_refused(store: Store, provider: IdentityProvider, kid: object) -> None:
    assert await refusal_code(store, provider.mint(ROOT_URL, header={"kid": kid})) == "invalid_request"


@pytest.mark.parametrize(
    "payload",
    [b"[]", b"1", b"null", b'{"iss":"\xff"}', b"[" * 9_000, b'{"iss":1}', b"{}", b"", b" " * 17_000],
    ids=lambda payload: repr(payload[:9]),
)
async def test_t7_a_payload_that_is_no_object_is_refused(
    store: Store, provider: IdentityProvider, payload: bytes
) -> None:
    assert await refusal_code(store, provider.signed(payload)) == "invalid_request"


async def test_t7_a_claim_that_occurs_twice_is_refused(store: Store, provider: IdentityProvider) -> None:
    doubled_claims = json.dumps(provider.claims(ROOT_URL)).encode()[:-1] + b', "email": "victim@example.com"}'

    assert await refusal_code(store, provider.signed(doubled_claims)) == "invalid_request"


async def test_t8_every_other_kind_of_token_is_refused_here(store: Store, provider: IdentityProvider) -> None:
    usual_claims = provider.claims(ROOT_URL)
    other_tokens = [
        provider.signed(usual_claims, {"typ": typ}) for typ in ("JWT", "at+jwt", SECEVENT, "id_token", None, "jag")
    ]
    other_tokens.append(tokens.issue(store, "person", tokens.FIRST_PARTY, frozenset({"read:products"})))
    other_tokens.append(provider.event(ROOT_URL))

    for token in other_tokens:
        assert await refusal_code(store, token) == "invalid_request"
    own_token = store.tokens.ring.sign(json.dumps(usual_claims | {"iss": ROOT_URL}).encode(), identity_provider.ID_JAG)
    assert await refusal_code(store, own_token) == "invalid_issuer"


@pytest.mark.parametrize(
    "audience",
    [f"{ROOT_URL}/", f"{ROOT_URL}/api/v1/auth/token", ROOT_URL.upper(), "https://other.example", "", [],
     [ROOT_URL, "https://other.example"], [ROOT_URL, ROOT_URL], [f"{ROOT_URL}/"], ["https://other.example"]],
    ids=str,
)  # fmt: skip
async def test_t11_an_audience_that_is_not_exactly_ours_is_refused(
    store: Store, provider: IdentityProvider, audience: object
) -> None:
    assert await refusal_code(store, provider.signed(provider.claims(ROOT_URL, aud=audience))) == "invalid_audience"


async def test_t11_the_audience_may_be_a_list_with_one_value(store: Store, provider: IdentityProvider) -> None:
    assert await id_jag.verify(store, provider.signed(provider.claims(ROOT_URL, aud=[ROOT_URL])))


@pytest.mark.parametrize(
    "resource", ["https://other.example", f"{ROOT_URL}.evil.example", [ROOT_URL, "https://other.example"]], ids=str
)
async def test_t11_a_resource_of_another_service_is_refused(
    store: Store, provider: IdentityProvider, resource: object
) -> None:
    assert await refusal_code(store, provider.mint(ROOT_URL, resource=resource)) == "invalid_audience"


async def test_t12_an_issuer_that_differs_from_the_trusted_issuer_is_refused(
    store: Store, provider: IdentityProvider
) -> None:
    trusted_one = provider.issuer
    for issuer in (
        *(f"{trusted_one}/", f"{trusted_one}.evil.example", trusted_one[:-1], trusted_one.upper(), f" {trusted_one}"),
        *(trusted_one.replace("http", "https"), f"{trusted_one}#", "", "%", "_" * len(trusted_one), ROOT_URL),
    ):
        assert await refusal_code(store, provider.mint(ROOT_URL, iss=issuer)) == "invalid_issuer"
    assert provider.requests == 0


async def test_t12_a_removed_issuer_is_no_longer_trusted(store: Store, provider: IdentityProvider) -> None:
    token = provider.mint(ROOT_URL)
    await id_jag.verify(store, token)
    async with store.database.transaction() as transaction:
        await trusted_issuers.remove(transaction, provider.issuer)

    assert await refusal_code(store, token) == "invalid_issuer"


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"iat": -400, "exp": -100}, "expired"),
        ({"iat": -400, "exp": -61}, "expired"),
        ({"iat": 0, "exp": 601}, "invalid_request"),
        ({"iat": 120, "exp": 300}, "invalid_request"),
        ({"iat": 50, "exp": 50}, "invalid_request"),
        ({"iat": 40, "exp": 30}, "invalid_request"),
        ({"iat": 0, "exp": 300, "nbf": 120}, "invalid_request"),
    ],
)
async def test_t13_an_assertion_out_of_its_time_is_refused(
    store: Store, provider: IdentityProvider, claims: dict[str, int], code: str
) -> None:
    moved_claims = {name: now_s() + offset_s for name, offset_s in claims.items()}

    assert await refusal_code(store, provider.mint(ROOT_URL, **moved_claims)) == code


@pytest.mark.parametrize(("issued_offset", "ends"), [(-300, -50), (50, 300), (0, 600), (-1, 599)])
async def test_t13_a_minutes_difference_of_clocks_is_forgiven(
    store: Store, provider: IdentityProvider, issued_offset: int, ends: int
) -> None:
    assert await id_jag.verify(store, provider.mint(ROOT_URL, iat=now_s() + issued_offset, exp=now_s() + ends))


@pytest.mark.parametrize("claim", ["iss", "sub", "aud", "client_id", "jti", "exp", "iat"])
async def test_t13_a_claim_that_is_missing_or_of_a_wrong_type_is_refused(
    store: Store, provider: IdentityProvider, claim: str
) -> None:
    claims = provider.claims(ROOT_URL)
    del claims[claim]
    wrong_values: list[object] = [None, [], {}, 1.5, True, -1, "", 10**400, "x" * 256, [1], [""]]
    wrong_values.append("1" if claim in ("exp", "iat") else 1)

    codes = [await refusal_code(store, provider.signed(claims))]
    codes += [await refusal_code(store, provider.signed(claims | {claim: value})) for value in wrong_values]

    assert set(codes) <= {"invalid_request", {"iss": "invalid_issuer", "aud": "invalid_audience"}.get(claim)}
    assert codes[0] == "invalid_request"


@pytest.mark.parametrize("claim", ["scope", "email", "auth_time", "nbf", "resource"])
@pytest.mark.parametrize("value", [{}, 1.5, True, [1]], ids=repr)
async def test_t13_an_optional_claim_must_have_its_type(
    store: Store, provider: IdentityProvider, claim: str, value: object
) -> None:
    assert await refusal_code(store, provider.mint(ROOT_URL, **{claim: value})) == "invalid_request"


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
@pytest.mark.parametrize("claim", ["sub", "client_id", "jti", "iss", "later"])
async def test_t13_a_text_that_no_database_keeps_is_refused(
    store: Store, provider: IdentityProvider, claim: str, text: str
) -> None:
    assert await refusal_code(store, provider.mint(ROOT_URL, **{claim: text})) == "invalid_request"


async def test_t16_a_token_that_is_refused_uses_no_jti_up(store: Store, provider: IdentityProvider) -> None:
    stranger = identity_provider.new_key("ES256")
    valid_claims = provider.claims(ROOT_URL)
    header = {"alg": "ES256", "kid": provider.keys["ES256"].kid, "typ": identity_provider.ID_JAG}
    assert await refusal_code(store, compact(header, valid_claims, stranger.sign)) == "invalid_signature"
    assert (
        await refusal_code(store, provider.signed(valid_claims | {"aud": "https://other.example"}))
        == "invalid_audience"
    )

    verified_assertion = await id_jag.verify(store, provider.signed(valid_claims))
    async with store.database.transaction() as transaction:
        await id_jag.use_once(transaction, verified_assertion)


async def test_t17_an_assertion_for_another_client_is_refused(store: Store, provider: IdentityProvider) -> None:
    verified_assertion = await id_jag.verify(store, provider.mint(ROOT_URL, client_id="agent-1"))
    id_jag.require_client(verified_assertion, "agent-1")
    for other_client_id in ("agent-2", "AGENT-1", "agent-1 ", ""):
        with pytest.raises(id_jag.InvalidClientId):
            id_jag.require_client(verified_assertion, other_client_id)


async def test_t17_an_issuer_is_accepted_only_for_its_clients(store: Store, provider: IdentityProvider) -> None:
    async with store.database.transaction() as transaction:
        await trusted_issuers.remove(transaction, provider.issuer)
    await provider.trust(store, client_ids=["agent-1"])

    assert await id_jag.verify(store, provider.mint(ROOT_URL))
    assert await refusal_code(store, provider.mint(ROOT_URL, client_id="agent-2")) == "invalid_client_id"


@pytest.mark.parametrize(("ago_s", "is_fresh"), [(0, True), (3_600, True), (-50, True), (3_700, False), (-120, False)])
async def test_t18_a_sign_in_longer_than_an_hour_ago_or_to_come_is_not_enough(
    store: Store, provider: IdentityProvider, ago_s: int, is_fresh: bool
) -> None:
    verified_assertion = await id_jag.verify(store, provider.mint(ROOT_URL, auth_time=now_s() - ago_s))
    if is_fresh:
        id_jag.require_fresh(verified_assertion)
        return
    with pytest.raises(id_jag.LoginRequired) as refusal:
        id_jag.require_fresh(verified_assertion)
    assert (refusal.value.status, refusal.value.code, refusal.value.members) == (
        401,
        "login_required",
        {"max_age": 3600},
    )
    assert refusal.value.headers == {"WWW-Authenticate": 'AgentAuth error="login_required", max_age="3600"'}


async def test_t18_a_sign_in_without_its_time_is_not_enough(store: Store, provider: IdentityProvider) -> None:
    verified_assertion = await id_jag.verify(store, provider.mint(ROOT_URL, auth_time=None))

    with pytest.raises(id_jag.LoginRequired):
        id_jag.require_fresh(verified_assertion)


@pytest.mark.parametrize("is_verified", [False, "true", "True", 1, 0, None, [], {}, [True], "false"], ids=repr)
async def test_t19_an_address_counts_only_when_its_verification_is_true(
    store: Store, provider: IdentityProvider, is_verified: object
) -> None:
    token = provider.mint(ROOT_URL, email_verified=is_verified)

    assert await refusal_code(store, token) == "missing_verified_email"


@pytest.mark.parametrize(
    "email",
    ["", "ann", "ann@", "@example.com", "a b@example.com", "ann@exa mple.com", "ann@example.com,eve@example.com",
     "an\u212a@example.com", "ann@exámple.com", "ann@example.com\r\nBcc: eve@example.com", "Ann <ann@example.com>",
     "a" * 250 + "@example.com", "ann@evil.example@example.com"],
    ids=repr,
)  # fmt: skip
async def test_t19_an_address_that_is_invalid_is_refused(store: Store, provider: IdentityProvider, email: str) -> None:
    assert await refusal_code(store, provider.mint(ROOT_URL, email=email)) == "missing_verified_email"


async def test_t19_without_an_address_there_is_none_to_rely_on(store: Store, provider: IdentityProvider) -> None:
    nameless = await id_jag.verify(store, provider.mint(ROOT_URL, email=None))
    named_assertion = await id_jag.verify(store, provider.mint(ROOT_URL, email=" Ann@Example.COM "))

    assert (nameless.email, named_assertion.email) == (None, "ann@example.com")
    assert id_jag.verified_email(named_assertion) == "ann@example.com"
    with pytest.raises(id_jag.MissingVerifiedEmail):
        id_jag.verified_email(nameless)


async def test_t20_an_issuer_is_accepted_only_for_its_domains(store: Store, provider: IdentityProvider) -> None:
    async with store.database.transaction() as transaction:
        await trusted_issuers.remove(transaction, provider.issuer)
    await provider.trust(store, domains=["Example.com", "example.org"])

    for email in ("ann@example.com", "ANN@EXAMPLE.ORG"):
        assert (await id_jag.verify(store, provider.mint(ROOT_URL, email=email))).email == email.lower()
    for email in ("ann@sub.example.com", "ann@notexample.com", "ann@example.net", "ann@example.com."):
        assert await refusal_code(store, provider.mint(ROOT_URL, email=email)) == "missing_verified_email"


async def test_t21_an_assertion_belongs_only_to_the_issuer_that_signed_it(
    store: Store, provider: IdentityProvider
) -> None:
    with identity_provider.serve_provider() as other_provider:
        await other_provider.trust(store)
        own_assertion = await id_jag.verify(store, provider.mint(ROOT_URL))
        other_asserted = await id_jag.verify(store, other_provider.mint(ROOT_URL))

        assert own_assertion.subject == other_asserted.subject
        assert own_assertion.issuer != other_asserted.issuer
        header = {"kid": provider.keys["ES256"].kid}
        assert await refusal_code(store, other_provider.mint(ROOT_URL, iss=provider.issuer)) == "invalid_signature"
        assert (
            await refusal_code(store, other_provider.mint(ROOT_URL, iss=provider.issuer, header=header))
            == "invalid_signature"
        )


@pytest.mark.parametrize("claim", ["cnf", "tenant", "authorization_details"])
async def test_t22_a_claim_that_would_change_the_meaning_is_refused(
    store: Store, provider: IdentityProvider, claim: str
) -> None:
    for value in ({"jkt": "x"}, "acme", [], ""):
        claims: dict[str, Any] = provider.claims(ROOT_URL) | {claim: value}
        assert await refusal_code(store, provider.signed(claims)) == "invalid_request"


@pytest.mark.parametrize(
    ("claimed_scope", "scope"),
    [(None, None), ("", frozenset()), ("read:products", {"read:products"}), ("a  b a", {"a", "b"})],
)
async def test_t23_the_scopes_it_is_limited_to_are_reported(
    store: Store, provider: IdentityProvider, claimed_scope: str | None, scope: set[str] | None
) -> None:
    assert (await id_jag.verify(store, provider.mint(ROOT_URL, scope=claimed_scope))).scope == scope


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=200).map(lambda data: data.decode("latin-1"))
    | st.lists(st.binary(max_size=60).map(b64), min_size=3, max_size=3).map(".".join)
)
async def test_t7_any_text_is_refused_without_another_effect(store: Store, text: str) -> None:
    with pytest.raises(Refused):
        await id_jag.verify(store, text)


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)
_CLAIM = st.sampled_from(
    ["sub", "aud", "client_id", "jti", "exp", "iat", "nbf", "scope", "auth_time", "email", "email_verified", "resource"]
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(_CLAIM, _ANY, max_size=4))
async def test_t13_any_claims_are_accepted_or_refused(
    store: Store, provider: IdentityProvider, claims: dict[str, object]
) -> None:
    with suppress(TokenRejected):
        verified_assertion = await id_jag.verify(store, provider.signed(provider.claims(ROOT_URL) | claims))
        assert verified_assertion.issuer == provider.issuer
        assert verified_assertion.email in (None, "ann@example.com")
