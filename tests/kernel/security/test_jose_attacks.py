"""Attacks on tokens. Each test has its number in the list of attacks. All tokens are refused, and none causes a
crash."""

import hmac
import json
import socket

import msgspec
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from hypothesis import example, given
from hypothesis import strategies as st

from countersign.kernel.security.jose import (
    ACCESS_TYP,
    MAX_TOKEN_LENGTH,
    AccessTokens,
    InvalidToken,
    KeyRing,
)
from tests.kernel.security.forgery import (
    CLAIMS,
    NOW_S,
    RING,
    ROOT,
    access_tokens,
    b64,
    es256,
    forged,
    our_header,
    private_key,
    refusal,
)

pytestmark = pytest.mark.usefixtures("fixed_clock")


# --- T1 to T3: algorithms ---


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", ""])
@pytest.mark.parametrize("signature", [b"", b"\0" * 64])
def test_t1_a_token_without_a_signature_algorithm_is_refused(algorithm: str, signature: bytes) -> None:
    refusal(forged(our_header(alg=algorithm), sign=lambda _: signature))


def test_t1_an_empty_or_zero_signature_under_es256_is_refused() -> None:
    refusal(forged(our_header(), sign=lambda _: b""))
    refusal(forged(our_header(), sign=lambda _: b"\0" * 64))
    refusal(forged(our_header(), sign=lambda _: b"\xff" * 64))


def _public_spellings() -> list[bytes]:
    public = private_key().public_key()
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    jwk = msgspec.json.encode(RING.jwks().keys[0])
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

        refusal(
            forged(our_header(alg=algorithm), sign=lambda m, d=digest: hmac.digest(secret, m, d).ljust(width, b"\0"))
        )


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES384", "ES512", "ES256K", "EdDSA", "es256", "ES256 "])
def test_t3_an_algorithm_that_is_not_allowed_is_refused_even_with_a_good_signature(algorithm: str) -> None:
    assert refusal(forged(our_header(alg=algorithm))) == "algorithm is not allowed"


def test_t3_an_rsa_signature_under_our_key_id_is_refused() -> None:
    key = rsa.generate_private_key(65537, 2048)

    for algorithm in ("ES256", "RS256"):
        refusal(forged(our_header(alg=algorithm), sign=lambda m: key.sign(m, padding.PKCS1v15(), hashes.SHA256())))


@pytest.mark.parametrize("algorithm", [None, 1, ["ES256"], {"ES256": 1}, True])
def test_t3_an_algorithm_that_is_no_text_is_refused(algorithm: object) -> None:
    refusal(forged(our_header(alg=algorithm)))


# --- T4 to T6: other header members ---


@pytest.mark.parametrize(
    "members",
    [{"crit": ["unknown"]}, {"crit": []}, {"crit": ["b64"], "b64": False}, {"b64": False}, {"b64": True},
     {"crit": ["exp"], "exp": NOW_S}, {"crit": "exp"}, {"zip": "DEF"}, {"cty": "JWT"}, {"x": 1}],
    ids=str,
)  # fmt: skip
def test_t4_a_header_member_that_we_never_write_is_refused(members: dict[str, object]) -> None:
    assert refusal(forged(our_header(**members))) == "header is not exactly alg, typ and kid"


@pytest.mark.parametrize("key_url", ["http://169.254.169.254/latest/", "https://attacker.example/jwks.json"])
def test_t5_a_key_that_the_token_brings_or_names_is_never_used_nor_fetched(
    key_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attacker = KeyRing.new()
    jwk = msgspec.to_builtins(attacker.jwks().keys[0])
    fetched_urls: list[object] = []

    def ask(*arguments: object) -> None:
        fetched_urls.append(arguments)

    monkeypatch.setattr(socket, "getaddrinfo", ask)
    monkeypatch.setattr(socket, "create_connection", ask)
    monkeypatch.setattr(socket.socket, "connect", ask)

    refusal(access_tokens(attacker).issue(CLAIMS))
    for members in (
        {"jwk": jwk},
        {"jku": key_url},
        {"x5u": key_url},
        {"x5c": ["MII="]},
        {"jwk": jwk, "kid": "x"},
    ):
        refusal(forged(our_header(**members)))

    assert fetched_urls == []


@pytest.mark.parametrize(
    "kid",
    ["../../../../dev/null", "/etc/passwd", "' OR 1=1 --", "'; DROP TABLE keys; --", "\0", "k" * 100_000,
     "k" * 300, "", "\ud800", "%2e%2e", None, 1, [], {}, True],
    ids=lambda kid: repr(kid)[:20],
)  # fmt: skip
def test_t6_a_key_id_that_is_not_in_the_ring_is_refused(kid: object) -> None:
    encoded = json.dumps(our_header(kid=kid)).encode()
    message = f"{b64(encoded)}.{b64(msgspec.json.encode(CLAIMS))}"

    refusal(f"{message}.{b64(es256(message.encode()))}")


# --- T7: payloads ---


@pytest.mark.parametrize(
    "payload",
    [b"[]", b"[1]", b"1", b"null", b'"text"', b"true", b"{}", b"", b" ", b"{", b"not json", b'{"iss":"\xff"}',
     b'{"later":' + b"[" * 2_000 + b"]" * 2_000 + b"}", b"[" * 5_000, b"NaN", b"\xef\xbb\xbf{}"],
    ids=lambda payload: repr(payload[:12]),
)  # fmt: skip
def test_t7_a_payload_that_is_no_object_of_claims_is_refused_though_well_signed(payload: bytes) -> None:
    refusal(RING.sign(payload, ACCESS_TYP))


@pytest.mark.parametrize("claim", ["iss", "aud", "sub", "client_id", "iat", "exp", "jti", "scope"])
@pytest.mark.parametrize("value", ["missing", None, [], {}, 1.5, True, "1", -1], ids=repr)
def test_t7_a_claim_that_is_missing_or_of_another_type_is_refused(claim: str, value: object) -> None:
    payload: dict[str, object] = msgspec.to_builtins(CLAIMS) | {claim: value}
    if value == "missing":
        del payload[claim]
    elif value == "1" and claim not in ("iss", "aud", "iat", "exp"):
        payload[claim] = 1

    refusal(forged(our_header(), payload))


def test_t7_the_last_of_two_equal_members_counts_for_check_and_answer_alike() -> None:
    doubled_claims = msgspec.json.encode(CLAIMS)[:-1] + b',"iss":"https://other.example"}'

    assert refusal(forged(our_header(), encoded=doubled_claims)) == "wrong issuer"


def test_t7_a_token_over_8_kib_is_refused_before_it_is_read() -> None:
    long = msgspec.structs.replace(CLAIMS, scope="s" * MAX_TOKEN_LENGTH)

    assert refusal(access_tokens().issue(long)) == "too long"
    assert refusal("é" * 20_000) == "too long"


@pytest.mark.parametrize("audience", [[ROOT], [ROOT, "https://other.example"], [], f"{ROOT}/", ROOT.upper(), ""])
def test_an_audience_that_is_not_exactly_ours_is_refused(audience: object) -> None:
    refusal(forged(our_header(), msgspec.to_builtins(CLAIMS) | {"aud": audience}))


@pytest.mark.parametrize("issuer", [f"{ROOT}/", f"{ROOT}.evil.example", ROOT[:-1], ROOT.upper(), ""])
def test_an_issuer_that_is_not_exactly_ours_is_refused(issuer: str) -> None:
    assert refusal(access_tokens().issue(msgspec.structs.replace(CLAIMS, iss=issuer))) == "wrong issuer"


@pytest.mark.parametrize("claim", ["sub", "client_id", "jti"])
def test_an_empty_claim_is_refused(claim: str) -> None:
    assert refusal(forged(our_header(), msgspec.to_builtins(CLAIMS) | {claim: ""})) == "a required claim is empty"


# --- T8: type confusion ---


@pytest.mark.parametrize(
    "token_type",
    ["JWT", "oauth-id-jag+jwt", "secevent+jwt", "application/at+jwt", "AT+JWT", "at+jwt ", "", "id_token"],
)
def test_t8_a_token_of_another_type_is_no_access_token(token_type: str) -> None:
    assert refusal(RING.sign(msgspec.json.encode(CLAIMS), token_type)) == "wrong token type"


def test_t8_an_access_token_is_no_token_of_another_type() -> None:
    with pytest.raises(InvalidToken, match="malformed"):
        RING.open(access_tokens().issue(CLAIMS), "oauth-id-jag+jwt")


def test_t8_a_token_without_a_type_is_refused() -> None:
    header = our_header()
    del header["typ"]

    refusal(forged(header))


# --- mutations ---


def test_a_second_spelling_of_the_same_signature_is_refused() -> None:
    token = access_tokens().issue(CLAIMS)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last_index = alphabet.index(token[-1])

    spelled = token[:-1] + alphabet[last_index | 1]

    assert refusal(spelled) == "signature is not canonical"


_ISSUED = AccessTokens(RING, ROOT, ROOT).issue(CLAIMS)


@given(st.integers(0, len(_ISSUED) - 1), st.characters() | st.sampled_from("AZaz09-_.=+/ \n\0"))
def test_a_token_with_any_character_changed_is_refused(place: int, character: str) -> None:
    changed_token = _ISSUED[:place] + character + _ISSUED[place + 1 :]

    if changed_token != _ISSUED:
        refusal(changed_token)


@given(st.integers(0, len(_ISSUED)), st.integers(0, len(_ISSUED)), st.text(max_size=5))
def test_a_token_with_any_part_cut_doubled_or_inserted_is_refused(start: int, end: int, between: str) -> None:
    changed_token = _ISSUED[:start] + between + _ISSUED[end:]

    if changed_token != _ISSUED:
        refusal(changed_token)


@given(st.text() | st.from_regex(r"[A-Za-z0-9_-]{0,60}\.[A-Za-z0-9_-]{0,60}\.[A-Za-z0-9_-]{86}", fullmatch=True))
@example("..")
@example("a.b.c.d.e")
@example(f"{'A' * 40}.{'A' * 40}.{'A' * 86}")
def test_any_text_is_refused_and_never_crashes(text: str) -> None:
    refusal(text)


@given(
    st.dictionaries(
        st.sampled_from(["alg", "typ", "kid", "crit", "jwk"]) | st.text(max_size=5),
        st.none() | st.booleans() | st.integers() | st.text(max_size=10) | st.lists(st.text(max_size=5), max_size=3),
    )
)
def test_any_signed_header_that_is_not_ours_is_refused_and_never_crashes(header: dict[str, object]) -> None:
    message = f"{b64(json.dumps(header).encode())}.{b64(msgspec.json.encode(CLAIMS))}"

    refusal(f"{message}.{b64(es256(message.encode()))}")


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5) | st.binary())
def test_any_signed_payload_that_is_not_ours_is_refused_and_never_crashes(payload: object) -> None:
    encoded = payload if isinstance(payload, bytes) else json.dumps(payload).encode()

    refusal(RING.sign(encoded, ACCESS_TYP))
