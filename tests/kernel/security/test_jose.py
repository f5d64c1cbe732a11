"""Access tokens: what is issued is accepted, and every attack on a token is refused (named by its number)."""

import base64
import hashlib
import hmac
import json
import socket
from collections.abc import Callable

import msgspec
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from hypothesis import example, given
from hypothesis import strategies as st

from countersign.kernel import clock
from countersign.kernel.security.jose import (
    ACCESS_TYP,
    LARGEST_TOKEN,
    AccessClaims,
    AccessTokens,
    InvalidToken,
    KeyRing,
    TokenCache,
)

_ROOT = "https://store.example"
_NOW_S = 1_795_000_000
_RING = KeyRing.new()
_CLAIMS = AccessClaims(
    iss=_ROOT,
    aud=_ROOT,
    sub="person_1",
    client_id="client_1",
    iat=_NOW_S,
    exp=_NOW_S + 3_600,
    jti="018f-1",
    scope="read:library",
)


@pytest.fixture(autouse=True)
def fixed_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def set_to(seconds: int) -> None:
        monkeypatch.setattr(clock, "now", lambda: clock.Instant(seconds * clock.SECOND))

    set_to(_NOW_S)
    return set_to


def _tokens(ring: KeyRing = _RING, *, cache_size: int = 100) -> AccessTokens:
    return AccessTokens(ring, _ROOT, _ROOT, cache_size=cache_size)


def _refusal(token: str, tokens: AccessTokens | None = None) -> str:
    with pytest.raises(InvalidToken) as refusal:
        (tokens or _tokens()).verify(token)
    assert refusal.value.status == 401
    assert refusal.value.code == "invalid_token"
    for part in token.split("."):
        assert len(part) < 8 or part not in f"{refusal.value.reason} {refusal.value.detail}"
    return refusal.value.reason


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _private_key() -> ec.EllipticCurvePrivateKey:
    stored = json.loads(_RING.to_json())["current"]["d"]
    return ec.derive_private_key(int.from_bytes(base64.urlsafe_b64decode(stored + "==")), ec.SECP256R1())


def _es256(message: bytes) -> bytes:
    r, s = decode_dss_signature(_private_key().sign(message, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32) + s.to_bytes(32)


def _forged(
    header: object,
    payload: object = None,
    sign: Callable[[bytes], bytes] = _es256,
    encoded: bytes | None = None,
) -> str:
    body = encoded or msgspec.json.encode(_CLAIMS if payload is None else payload)
    message = f"{_b64(msgspec.json.encode(header))}.{_b64(body)}"
    return f"{message}.{_b64(sign(message.encode()))}"


def _header(**changes: object) -> dict[str, object]:
    return {"alg": "ES256", "typ": ACCESS_TYP, "kid": _RING.kid} | changes


def test_an_issued_token_is_accepted_with_the_same_claims() -> None:
    claims = msgspec.structs.replace(_CLAIMS, auth_time=_NOW_S - 5, sid="s_1", reg="reg_1", gen=2)

    assert _tokens().verify(_tokens().issue(claims)) == claims


def test_the_header_names_type_algorithm_and_key_and_absent_claims_are_not_written() -> None:
    header, payload, _ = _tokens().issue(_CLAIMS).split(".")

    assert json.loads(base64.urlsafe_b64decode(header + "==")) == _header()
    assert set(json.loads(base64.urlsafe_b64decode(payload + "=="))) == {
        "iss", "aud", "sub", "client_id", "iat", "exp", "jti", "scope",
    }  # fmt: skip


def test_a_token_made_by_hand_as_the_rfcs_say_is_accepted() -> None:
    assert _tokens().verify(_forged(_header())) == _CLAIMS


def test_claims_that_a_later_version_adds_are_ignored() -> None:
    payload = msgspec.to_builtins(_CLAIMS) | {"later": {"x": 1}}

    assert _tokens().verify(_forged(_header(), payload)) == _CLAIMS


# --- T1 to T3: algorithms ---


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", ""])
@pytest.mark.parametrize("signature", [b"", b"\0" * 64])
def test_t1_a_token_without_a_signature_algorithm_is_refused(algorithm: str, signature: bytes) -> None:
    _refusal(_forged(_header(alg=algorithm), sign=lambda _: signature))


def test_t1_an_empty_or_zero_signature_under_es256_is_refused() -> None:
    _refusal(_forged(_header(), sign=lambda _: b""))
    _refusal(_forged(_header(), sign=lambda _: b"\0" * 64))
    _refusal(_forged(_header(), sign=lambda _: b"\xff" * 64))


def _public_spellings() -> list[bytes]:
    public = _private_key().public_key()
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    jwk = msgspec.json.encode(_RING.jwks().keys[0])
    return [
        public.public_bytes(serialization.Encoding.PEM, info),
        public.public_bytes(serialization.Encoding.DER, info),
        public.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint),
        jwk,
        json.dumps(json.loads(jwk)).encode(),
    ]


@pytest.mark.parametrize("spelling", range(5))
@pytest.mark.parametrize("width", [32, 64])
def test_t2_hs256_signed_with_the_public_key_is_refused(spelling: int, width: int) -> None:
    secret = _public_spellings()[spelling]
    for algorithm in ("HS256", "HS512", "ES256"):
        digest = "sha512" if algorithm == "HS512" else "sha256"

        _refusal(
            _forged(_header(alg=algorithm), sign=lambda m, d=digest: hmac.digest(secret, m, d).ljust(width, b"\0"))
        )


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES384", "ES512", "ES256K", "EdDSA", "es256", "ES256 "])
def test_t3_an_algorithm_that_is_not_allowed_is_refused_even_with_a_good_signature(algorithm: str) -> None:
    assert _refusal(_forged(_header(alg=algorithm))) == "algorithm is not allowed"


def test_t3_an_rsa_signature_under_our_key_id_is_refused() -> None:
    key = rsa.generate_private_key(65537, 2048)

    for algorithm in ("ES256", "RS256"):
        _refusal(_forged(_header(alg=algorithm), sign=lambda m: key.sign(m, padding.PKCS1v15(), hashes.SHA256())))


@pytest.mark.parametrize("algorithm", [None, 1, ["ES256"], {"ES256": 1}, True])
def test_t3_an_algorithm_that_is_no_text_is_refused(algorithm: object) -> None:
    _refusal(_forged(_header(alg=algorithm)))


# --- T4 to T6: other header members ---


@pytest.mark.parametrize(
    "members",
    [{"crit": ["unknown"]}, {"crit": []}, {"crit": ["b64"], "b64": False}, {"b64": False}, {"b64": True},
     {"crit": ["exp"], "exp": _NOW_S}, {"crit": "exp"}, {"zip": "DEF"}, {"cty": "JWT"}, {"x": 1}],
    ids=str,
)  # fmt: skip
def test_t4_a_header_member_that_we_never_write_is_refused(members: dict[str, object]) -> None:
    assert _refusal(_forged(_header(**members))) == "header is not alg, typ and kid"


@pytest.mark.parametrize("place", ["http://169.254.169.254/latest/", "https://attacker.example/jwks.json"])
def test_t5_a_key_that_the_token_brings_or_names_is_never_used_nor_fetched(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attacker = KeyRing.new()
    jwk = msgspec.to_builtins(attacker.jwks().keys[0])
    asked: list[object] = []

    def ask(*where: object) -> None:
        asked.append(where)

    monkeypatch.setattr(socket, "getaddrinfo", ask)
    monkeypatch.setattr(socket, "create_connection", ask)
    monkeypatch.setattr(socket.socket, "connect", ask)

    _refusal(_tokens(attacker).issue(_CLAIMS))
    for members in (
        {"jwk": jwk},
        {"jku": place},
        {"x5u": place},
        {"x5c": ["MII="]},
        {"jwk": jwk, "kid": "x"},
    ):
        _refusal(_forged(_header(**members)))

    assert asked == []


@pytest.mark.parametrize(
    "kid",
    ["../../../../dev/null", "/etc/passwd", "' OR 1=1 --", "'; DROP TABLE keys; --", "\0", "k" * 100_000,
     "k" * 300, "", "\ud800", "%2e%2e", None, 1, [], {}, True],
    ids=lambda kid: repr(kid)[:20],
)  # fmt: skip
def test_t6_a_key_id_that_is_not_in_the_ring_is_refused(kid: object) -> None:
    encoded = json.dumps(_header(kid=kid)).encode()
    message = f"{_b64(encoded)}.{_b64(msgspec.json.encode(_CLAIMS))}"

    _refusal(f"{message}.{_b64(_es256(message.encode()))}")


# --- T7: payloads ---


@pytest.mark.parametrize(
    "payload",
    [b"[]", b"[1]", b"1", b"null", b'"text"', b"true", b"{}", b"", b" ", b"{", b"not json", b'{"iss":"\xff"}',
     b'{"later":' + b"[" * 2_000 + b"]" * 2_000 + b"}", b"[" * 5_000, b"NaN", b"\xef\xbb\xbf{}"],
    ids=lambda payload: repr(payload[:12]),
)  # fmt: skip
def test_t7_a_payload_that_is_no_object_of_claims_is_refused_though_well_signed(payload: bytes) -> None:
    _refusal(_RING.sign(payload, ACCESS_TYP))


@pytest.mark.parametrize("claim", ["iss", "aud", "sub", "client_id", "iat", "exp", "jti", "scope"])
@pytest.mark.parametrize("value", ["missing", None, [], {}, 1.5, True, "1", -1], ids=repr)
def test_t7_a_claim_that_is_missing_or_of_another_type_is_refused(claim: str, value: object) -> None:
    payload: dict[str, object] = msgspec.to_builtins(_CLAIMS) | {claim: value}
    if value == "missing":
        del payload[claim]
    elif value == "1" and claim not in ("iss", "aud", "iat", "exp"):
        payload[claim] = 1

    _refusal(_forged(_header(), payload))


def test_t7_the_last_of_two_equal_members_counts_for_check_and_answer_alike() -> None:
    twice = msgspec.json.encode(_CLAIMS)[:-1] + b',"iss":"https://other.example"}'

    assert _refusal(_forged(_header(), encoded=twice)) == "issuer is another"


def test_t7_a_token_over_8_kib_is_refused_before_it_is_read() -> None:
    long = msgspec.structs.replace(_CLAIMS, scope="s" * LARGEST_TOKEN)

    assert _refusal(_tokens().issue(long)) == "too long"
    assert _refusal("é" * 20_000) == "too long"


@pytest.mark.parametrize("audience", [[_ROOT], [_ROOT, "https://other.example"], [], f"{_ROOT}/", _ROOT.upper(), ""])
def test_an_audience_that_is_not_exactly_ours_is_refused(audience: object) -> None:
    _refusal(_forged(_header(), msgspec.to_builtins(_CLAIMS) | {"aud": audience}))


@pytest.mark.parametrize("issuer", [f"{_ROOT}/", f"{_ROOT}.evil.example", _ROOT[:-1], _ROOT.upper(), ""])
def test_an_issuer_that_is_not_exactly_ours_is_refused(issuer: str) -> None:
    assert _refusal(_tokens().issue(msgspec.structs.replace(_CLAIMS, iss=issuer))) == "issuer is another"


@pytest.mark.parametrize("claim", ["sub", "client_id", "jti"])
def test_an_empty_claim_is_refused(claim: str) -> None:
    assert _refusal(_forged(_header(), msgspec.to_builtins(_CLAIMS) | {claim: ""})) == "a required claim is empty"


# --- T8: type confusion ---


@pytest.mark.parametrize(
    "token_type",
    ["JWT", "oauth-id-jag+jwt", "secevent+jwt", "application/at+jwt", "AT+JWT", "at+jwt ", "", "id_token"],
)
def test_t8_a_token_of_another_type_is_no_access_token(token_type: str) -> None:
    assert _refusal(_RING.sign(msgspec.json.encode(_CLAIMS), token_type)) == "type is another"


def test_t8_an_access_token_is_no_token_of_another_type() -> None:
    with pytest.raises(InvalidToken, match="malformed"):
        _RING.open(_tokens().issue(_CLAIMS), "oauth-id-jag+jwt")


def test_t8_a_token_without_a_type_is_refused() -> None:
    header = _header()
    del header["typ"]

    _refusal(_forged(header))


# --- T10: rotation ---


def test_t10_a_token_of_the_previous_key_is_accepted_and_of_a_removed_key_refused() -> None:
    token = _tokens().issue(_CLAIMS)
    once = _RING.rotated()
    twice = once.rotated()

    assert once.kid != _RING.kid
    assert _tokens(once).verify(token) == _CLAIMS
    assert _refusal(token, _tokens(twice)) == "key is not in the ring"
    assert _tokens(_RING.rotated().rotated(keep=2)).verify(token) == _CLAIMS


def test_t10_a_token_of_a_removed_key_is_refused_though_it_was_cached() -> None:
    tokens = _tokens()
    token = tokens.issue(_CLAIMS)
    tokens.verify(token)

    tokens.use(_RING.rotated(keep=0))

    assert _refusal(token, tokens) == "key is not in the ring"


def test_a_ring_survives_storage_with_the_private_key_of_the_current_alone() -> None:
    ring = _RING.rotated()
    stored = ring.to_json()
    again = KeyRing.from_json(stored)

    assert again.jwks() == ring.jwks()
    assert stored.count(b'"d":') == 1
    assert _tokens(again).verify(_tokens().issue(_CLAIMS)) == _CLAIMS
    assert _tokens(ring).verify(_tokens(again).issue(_CLAIMS)) == _CLAIMS


@pytest.mark.parametrize("stored", [b"", b"{}", b"[]", b'{"current":{},"previous":[]}', b"\xff"])
def test_a_damaged_ring_is_an_error(stored: bytes) -> None:
    with pytest.raises(ValueError, match="damaged"):
        KeyRing.from_json(stored)


def test_a_stored_point_off_the_curve_is_an_error_that_hides_the_key() -> None:
    stored = json.loads(_RING.to_json())
    stored["current"]["x"] = _b64(b"\1" * 32)

    with pytest.raises(ValueError, match="damaged") as failure:
        KeyRing.from_json(json.dumps(stored).encode())

    assert stored["current"]["d"] not in str(failure.value)
    assert failure.value.__cause__ is None


def test_the_key_set_shows_thumbprints_and_no_private_member() -> None:
    shown = json.loads(msgspec.json.encode(_RING.rotated().jwks()))["keys"]

    assert len(shown) == 2
    for key in shown:
        assert set(key) == {"kty", "crv", "x", "y", "alg", "use", "kid"}
        members = {name: key[name] for name in ("crv", "kty", "x", "y")}
        canonical = json.dumps(members, separators=(",", ":"))
        assert key["kid"] == _b64(hashlib.sha256(canonical.encode()).digest())


# --- times ---


@pytest.mark.parametrize(("passed_s", "accepted"), [(0, True), (3_660, True), (3_661, False), (10**6, False)])
def test_a_token_ends_sixty_seconds_after_its_expiry(
    passed_s: int, accepted: bool, fixed_clock: Callable[[int], None]
) -> None:
    cached = _tokens()
    token = cached.issue(_CLAIMS)
    cached.verify(token)

    fixed_clock(_NOW_S + passed_s)

    for tokens in (cached, _tokens()):
        if accepted:
            assert tokens.verify(token) == _CLAIMS
        else:
            assert _refusal(token, tokens) == "expired"


@pytest.mark.parametrize(("ahead_s", "accepted"), [(60, True), (61, False)])
def test_a_token_from_the_future_is_refused_beyond_the_skew(ahead_s: int, accepted: bool) -> None:
    token = _tokens().issue(msgspec.structs.replace(_CLAIMS, iat=_NOW_S + ahead_s))

    if accepted:
        _tokens().verify(token)
    else:
        assert _refusal(token) == "issued in the future"


@pytest.mark.parametrize("life_s", [0, -1, 86_401, 10**12])
def test_a_life_that_is_empty_or_too_long_is_refused(life_s: int) -> None:
    claims = msgspec.structs.replace(_CLAIMS, exp=_NOW_S + life_s)

    assert _refusal(_tokens().issue(claims)) == "life is empty or too long"


# --- mutations ---


def test_a_second_spelling_of_the_same_signature_is_refused() -> None:
    token = _tokens().issue(_CLAIMS)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = alphabet.index(token[-1])

    spelled = token[:-1] + alphabet[last | 1]

    assert _refusal(spelled) == "signature in a second spelling"


_ISSUED = AccessTokens(_RING, _ROOT, _ROOT).issue(_CLAIMS)


@given(st.integers(0, len(_ISSUED) - 1), st.characters() | st.sampled_from("AZaz09-_.=+/ \n\0"))
def test_a_token_with_any_character_changed_is_refused(place: int, character: str) -> None:
    changed = _ISSUED[:place] + character + _ISSUED[place + 1 :]

    if changed != _ISSUED:
        _refusal(changed)


@given(st.integers(0, len(_ISSUED)), st.integers(0, len(_ISSUED)), st.text(max_size=5))
def test_a_token_with_any_part_cut_doubled_or_inserted_is_refused(start: int, end: int, between: str) -> None:
    changed = _ISSUED[:start] + between + _ISSUED[end:]

    if changed != _ISSUED:
        _refusal(changed)


@given(st.text() | st.from_regex(r"[A-Za-z0-9_-]{0,60}\.[A-Za-z0-9_-]{0,60}\.[A-Za-z0-9_-]{86}", fullmatch=True))
@example("..")
@example("a.b.c.d.e")
@example(f"{'A' * 40}.{'A' * 40}.{'A' * 86}")
def test_any_text_is_refused_and_never_crashes(text: str) -> None:
    _refusal(text)


@given(
    st.dictionaries(
        st.sampled_from(["alg", "typ", "kid", "crit", "jwk"]) | st.text(max_size=5),
        st.none() | st.booleans() | st.integers() | st.text(max_size=10) | st.lists(st.text(max_size=5), max_size=3),
    )
)
def test_any_signed_header_that_is_not_ours_is_refused_and_never_crashes(header: dict[str, object]) -> None:
    message = f"{_b64(json.dumps(header).encode())}.{_b64(msgspec.json.encode(_CLAIMS))}"

    _refusal(f"{message}.{_b64(_es256(message.encode()))}")


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5) | st.binary())
def test_any_signed_payload_that_is_not_ours_is_refused_and_never_crashes(payload: object) -> None:
    encoded = payload if isinstance(payload, bytes) else json.dumps(payload).encode()

    _refusal(_RING.sign(encoded, ACCESS_TYP))


# --- cache ---


def test_the_cache_forgets_what_was_used_longest_ago() -> None:
    cache = TokenCache(2)
    cache.put("a", _CLAIMS)
    cache.put("b", _CLAIMS)
    cache.get("a")
    cache.put("c", _CLAIMS)

    assert cache.get("a") == _CLAIMS
    assert cache.get("b") is None
    assert cache.get("c") == _CLAIMS
    assert len(cache) == 2


def test_the_cache_drops_an_expired_token(fixed_clock: Callable[[int], None]) -> None:
    cache = TokenCache(2)
    cache.put("a", _CLAIMS)

    fixed_clock(_CLAIMS.exp + 61)

    assert cache.get("a") is None
    assert len(cache) == 0


def test_a_cache_of_no_size_holds_nothing() -> None:
    tokens = _tokens(cache_size=0)
    token = tokens.issue(_CLAIMS)

    assert tokens.verify(token) == tokens.verify(token) == _CLAIMS
