"""Attacks with tokens that other servers have signed. Each test has its number in the list of attacks. All tokens are
refused, and none causes a crash."""

import hmac
import json
from contextlib import suppress
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign.kernel.security import external_jwt
from countersign.kernel.security.external_jwt import BadSignature, BadToken
from tests.peers.identity_provider import SigningKey, b64, compact, new_key

TYP = "oauth-id-jag+jwt"
CLAIMS: dict[str, Any] = {"iss": "https://id.example", "sub": "user-1"}
KEYS = {name: new_key(name) for name in ("ES256", "ES384", "RS256", "PS256", "EdDSA")}


def key_set(*keys: SigningKey | dict[str, Any]) -> bytes:
    """Return a JWK Set."""
    return json.dumps({"keys": [key.jwk() if isinstance(key, SigningKey) else key for key in keys]}).encode()


def header(key: SigningKey, **changes: object) -> dict[str, Any]:
    """Return the usual header of tokens of the key."""
    return {"alg": key.algorithm, "typ": TYP, "kid": key.kid} | changes


def sign_token(key: SigningKey, payload: object = None, **changes: object) -> str:
    """Return a token signed by the key."""
    body = payload if isinstance(payload, bytes) else json.dumps(CLAIMS if payload is None else payload).encode()
    return compact(header(key, **changes), body, key.sign)


def verify_claims(token: str, keys: bytes, typ: str = TYP) -> dict[str, object] | None:
    """Return the claims of a token, or None if it names no key of the set or the key did not sign it."""
    token_read = external_jwt.read(token, typ)
    key = external_jwt.select_key(external_jwt.public_keys(keys), token_read.algorithm, token_read.kid)
    if key is None:
        return None
    try:
        token_read.verify(key)
    except BadSignature:
        return None
    return token_read.claims


@pytest.mark.parametrize("algorithm", KEYS)
def test_a_token_of_each_algorithm_is_verified_and_none_of_another_key(algorithm: str) -> None:
    key = KEYS[algorithm]
    is_rsa = algorithm[1:] == "S256" and algorithm[0] in "RP"
    private = rsa.generate_private_key(65537, 2048) if is_rsa else new_key(algorithm).private
    stranger = SigningKey(algorithm, private, key.kid)

    assert verify_claims(sign_token(key), key_set(*KEYS.values())) == CLAIMS
    assert verify_claims(sign_token(stranger), key_set(*KEYS.values())) is None


def test_the_newer_name_of_eddsa_is_known() -> None:
    key = KEYS["EdDSA"]
    jwk = key.jwk() | {"alg": "Ed25519"}

    assert verify_claims(sign_token(key, alg="Ed25519"), key_set(jwk)) == CLAIMS
    assert verify_claims(sign_token(key), key_set(jwk)) is None


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", "HS256", "HS512", "ES512", "ES256K", "RS1"])
@pytest.mark.parametrize("signature", [b"\0", b"\0" * 64, b"\xff" * 64])
def test_t1_no_signature_and_no_other_algorithm_passes(algorithm: str, signature: bytes) -> None:
    for key in KEYS.values():
        token = compact(header(key, alg=algorithm), CLAIMS, lambda _: signature)

        assert verify_claims(token, key_set(*KEYS.values())) is None


@pytest.mark.parametrize("algorithm", KEYS)
def test_t1_an_empty_or_zero_signature_is_refused(algorithm: str) -> None:
    key = KEYS[algorithm]
    unsigned = sign_token(key).rpartition(".")[0] + "."

    with pytest.raises(BadToken):
        external_jwt.read(unsigned, TYP)
    for size in (1, 32, 64, 96, 256):
        assert verify_claims(compact(header(key), CLAIMS, lambda _, size=size: b"\0" * size), key_set(key)) is None


@pytest.mark.parametrize("algorithm", KEYS)
def test_t2_a_mac_with_the_public_key_is_refused(algorithm: str) -> None:
    key = KEYS[algorithm]
    public, info = key.private.public_key(), serialization.PublicFormat.SubjectPublicKeyInfo
    secrets = [public.public_bytes(form, info) for form in (serialization.Encoding.PEM, serialization.Encoding.DER)]
    secrets += [json.dumps(key.jwk()).encode(), key_set(key)]

    for secret in secrets:
        for name in ("HS256", algorithm):
            token = compact(header(key, alg=name), CLAIMS, lambda m, s=secret: hmac.digest(s, m, "sha256"))
            assert verify_claims(token, key_set(key)) is None
            shared_jwk = {"kty": "oct", "k": b64(secret), "kid": key.kid, "alg": "HS256"}
            assert verify_claims(token, key_set(shared_jwk)) is None


def test_t3_an_algorithm_that_is_not_the_keys_is_refused() -> None:
    for key in KEYS.values():
        for other_key in KEYS.values():
            if other_key is not key:
                assert verify_claims(sign_token(key, alg=other_key.algorithm), key_set(*KEYS.values())) is None
                assert verify_claims(sign_token(other_key, kid=key.kid), key_set(*KEYS.values())) is None


@pytest.mark.parametrize(("signing_algorithm", "claimed_algorithm"), [("RS256", "PS256"), ("PS256", "RS256")])
def test_t3_ps_and_rs_are_not_swapped(signing_algorithm: str, claimed_algorithm: str) -> None:
    jwk = KEYS[signing_algorithm].jwk()
    del jwk["alg"]

    assert verify_claims(sign_token(KEYS[signing_algorithm]), key_set(jwk)) == CLAIMS
    assert verify_claims(sign_token(KEYS[signing_algorithm], alg=claimed_algorithm), key_set(jwk)) is None
    assert verify_claims(sign_token(KEYS[signing_algorithm]), key_set(jwk | {"alg": claimed_algorithm})) is None


@pytest.mark.parametrize(
    "change",
    [{"use": "enc"}, {"key_ops": ["sign"]}, {"key_ops": []}, {"alg": "ES384"}, {"alg": "none"}, {"kty": "RSA"},
     {"kty": "oct"}, {"crv": "P-384"}, {"crv": "secp256k1"}, {"d": "AA"}, {"x": "AA"}, {"x": b64(b"\1" * 32)},
     {"x": None}, {"y": 1}, {"kid": 1}, {"use": []}],
    ids=str,
)  # fmt: skip
def test_t3_a_key_for_something_else_or_that_is_invalid_verifies_nothing(change: dict[str, object]) -> None:
    key = KEYS["ES256"]

    assert verify_claims(sign_token(key), key_set(key.jwk() | change)) is None
    assert verify_claims(sign_token(key), key_set(key.jwk() | change, key)) == CLAIMS


@pytest.mark.parametrize("bits", [1024, 2040])
def test_an_rsa_key_under_2048_bits_verifies_nothing(bits: int) -> None:
    weak_key = SigningKey("RS256", rsa.generate_private_key(65537, bits), "weak")

    assert external_jwt.public_keys(key_set(weak_key)) == ()


@pytest.mark.parametrize(
    "members",
    [{"crit": ["x"]}, {"crit": []}, {"crit": ["b64"], "b64": False}, {"b64": False}, {"b64": True}, {"zip": "DEF"}],
    ids=str,
)
def test_t4_a_member_that_must_be_understood_is_refused(members: dict[str, object]) -> None:
    with pytest.raises(BadToken, match="not accepted"):
        external_jwt.read(sign_token(KEYS["ES256"], **members), TYP)


@pytest.mark.parametrize(
    "members",
    [{"jwk": KEYS["ES384"].jwk()}, {"jku": "http://169.254.169.254/"}, {"x5u": "https://attacker.example/"},
     {"x5c": ["MII="]}, {"jwk": None}],
    ids=["jwk", "jku", "x5u", "x5c", "no jwk"],
)  # fmt: skip
def test_t5_a_token_that_brings_or_names_its_key_is_refused(members: dict[str, object]) -> None:
    with pytest.raises(BadToken, match="not accepted"):
        external_jwt.read(sign_token(KEYS["ES256"], **members), TYP)


def test_a_header_member_that_only_informs_is_ignored() -> None:
    assert verify_claims(sign_token(KEYS["ES256"], x5t="abc", cty="JWT", later=1), key_set(KEYS["ES256"])) == CLAIMS


@pytest.mark.parametrize(
    "kid", ["../../../../dev/null", "' OR 1=1 --", "%2e%2e", "k" * 256, "☃", "ES256-0", " ", "constructor"]
)
def test_t6_a_key_id_that_is_not_in_the_set_means_no_key(kid: str) -> None:
    assert verify_claims(sign_token(KEYS["ES256"], kid=kid), key_set(*KEYS.values())) is None


@pytest.mark.parametrize("kid", ["", "k" * 257, "\0", "\ud800", 1, [], {}, True])
def test_t6_a_key_id_that_is_no_usual_text_is_refused(kid: object) -> None:
    with pytest.raises(BadToken):
        external_jwt.read(sign_token(KEYS["ES256"], kid=kid), TYP)


def test_without_a_key_id_the_only_key_of_the_algorithm_is_meant_and_of_two_equals_none() -> None:
    key, other_key = KEYS["ES256"], new_key("ES256")

    assert verify_claims(sign_token(key, kid=None), key_set(*KEYS.values())) == CLAIMS
    assert verify_claims(sign_token(key, kid=None), key_set(*KEYS.values(), other_key)) is None
    assert verify_claims(sign_token(key), key_set(key, other_key.jwk() | {"kid": key.kid})) is None


@pytest.mark.parametrize(
    "payload",
    [b"[]", b"1", b"null", b"{", b'{"iss":"\xff"}', b'{"iss":"a","iss":"a"}', b"[" * 5_000, b'{"a":' * 999, b"NaN",
     b'{"a":' + b"[" * 40 + b"]" * 40 + b"}"],
    ids=lambda payload: repr(payload[:12]),
)  # fmt: skip
def test_t7_a_payload_that_is_no_plain_object_is_refused(payload: bytes) -> None:
    with pytest.raises(BadToken, match="payload"):
        external_jwt.read(sign_token(KEYS["ES256"], payload), TYP)


def test_t7_a_token_over_16_kib_is_refused_and_a_token_of_16_kib_is_read() -> None:
    assert verify_claims(sign_token(KEYS["ES256"], {"a": "x" * 11_000}), key_set(KEYS["ES256"]))
    for token in (sign_token(KEYS["ES256"], {"a": "x" * 13_000}), "e" * 20_000, "é" * 20_000):
        with pytest.raises(BadToken, match="more than 16384"):
            external_jwt.read(token, TYP)


@pytest.mark.parametrize("position", range(3))
def test_t7_a_part_in_a_second_spelling_is_refused(position: int) -> None:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    # With one byte more than a multiple of three, four bits of the last character have no meaning.
    encoded_members = [json.dumps(member).encode() for member in (header(KEYS["ES256"]), CLAIMS)]
    parts = [*(b64(member + b" " * ((1 - len(member)) % 3)) for member in encoded_members), b64(b"\1" * 64)]
    external_jwt.read(".".join(parts), TYP)

    for end in (alphabet[alphabet.index(parts[position][-1]) + 1], parts[position][-1] + "=", "\n", "+", "/"):
        changed_parts = [*parts]
        changed_parts[position] = parts[position][:-1] + end
        with pytest.raises(BadToken):
            external_jwt.read(".".join(changed_parts), TYP)


@pytest.mark.parametrize("typ", ["application/oauth-id-jag+jwt", "OAuth-ID-JAG+JWT", "APPLICATION/oauth-id-jag+jwt"])
def test_the_type_is_known_in_both_forms_and_any_case(typ: str) -> None:
    assert verify_claims(sign_token(KEYS["ES256"], typ=typ), key_set(KEYS["ES256"])) == CLAIMS


@pytest.mark.parametrize(
    "typ",
    ["JWT", "at+jwt", "secevent+jwt", "", None, 1, [TYP], f"{TYP} ", f"text/{TYP}", f"application/application/{TYP}"],
)
def test_t8_a_token_of_another_type_is_refused(typ: object) -> None:
    with pytest.raises(BadToken, match="type"):
        external_jwt.read(sign_token(KEYS["ES256"], typ=typ), TYP)


@pytest.mark.parametrize(
    "document",
    [b"", b"[]", b"{}", b'{"keys":{}}', b'{"keys":[1]}', b'{"keys":null}', b'{"keys":[],"keys":[]}', b"\xff"],
)
def test_t9_a_document_that_is_no_key_set_is_refused(document: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        external_jwt.public_keys(document)


def test_t9_more_than_20_keys_are_refused() -> None:
    key = KEYS["ES256"].jwk()

    assert len(external_jwt.public_keys(key_set(*[key] * 20))) == 20
    with pytest.raises(ValueError, match="more than 20"):
        external_jwt.public_keys(key_set(*[key] * 21))


@settings(deadline=None)
@given(st.text(max_size=300) | st.lists(st.text("eyJhbGci_-0.", max_size=30), max_size=4).map(".".join))
def test_any_text_is_refused_without_another_effect(token: str) -> None:
    with pytest.raises(BadToken):
        external_jwt.read(token, TYP)


@settings(deadline=None)
@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(min_size=1, max_size=80))
def test_any_token_of_three_parts_is_read_or_refused_and_never_trusted(
    head: bytes, body: bytes, signature: bytes
) -> None:
    for start in (head, json.dumps(header(KEYS["ES256"])).encode()):
        with suppress(BadToken):
            assert verify_claims(compact(start, body, lambda _: signature), key_set(*KEYS.values())) is None


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_any_changed_character_of_a_good_token_ends_its_life(data: st.DataObject) -> None:
    token = sign_token(KEYS[data.draw(st.sampled_from(sorted(KEYS)))])
    position = data.draw(st.integers(0, len(token) - 1))
    character = data.draw(st.sampled_from("Aa0_-.=é ").filter(lambda candidate: candidate != token[position]))

    try:
        claims = verify_claims(token[:position] + character + token[position + 1 :], key_set(*KEYS.values()))
    except BadToken:
        return
    assert claims is None


_MEMBERS = st.sampled_from(["keys", "kty", "crv", "x", "y", "n", "e", "alg", "use", "kid", "key_ops"])
_LEAVES = st.none() | st.integers() | st.sampled_from(["EC", "RSA", "OKP", "P-256", "Ed25519", "sig", "AQAB", "AA"])


@settings(deadline=None)
@given(st.recursive(_LEAVES, lambda inner: st.lists(inner) | st.dictionaries(_MEMBERS, inner), max_leaves=20))
def test_any_key_set_is_read_or_refused(value: object) -> None:
    for document in (value, {"keys": value}, {"keys": [value]}):
        with suppress(ValueError):
            assert len(external_jwt.public_keys(json.dumps(document).encode())) <= 20


def test_a_curve_that_is_not_allowed_is_left_out() -> None:
    key = SigningKey("ES256", ec.generate_private_key(ec.SECP521R1()), "p521")
    assert external_jwt.public_keys(key_set(key.jwk())) == ()
