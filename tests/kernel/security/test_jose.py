"""Access tokens: an issued token is accepted while it is valid and its key is known."""

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import fields

import msgspec
import pytest

from countersign.kernel.security.jose import (
    MAX_LIFE_S,
    RETIREMENT_S,
    SKEW_S,
    KeyRing,
    TokenCache,
)
from countersign.settings import Settings
from tests.kernel.security.forgery import CLAIMS, NOW_S, RING, access_tokens, b64, forged, our_header, refusal

pytestmark = pytest.mark.usefixtures("fixed_clock")


def test_an_issued_token_is_accepted_with_the_same_claims() -> None:
    claims = msgspec.structs.replace(CLAIMS, auth_time=NOW_S - 5, sid="s_1", reg="reg_1", gen=2)

    assert access_tokens().verify(access_tokens().issue(claims)) == claims


def test_the_header_names_type_algorithm_and_key_and_absent_claims_are_not_written() -> None:
    header, payload, _ = access_tokens().issue(CLAIMS).split(".")

    assert json.loads(base64.urlsafe_b64decode(header + "==")) == our_header()
    assert set(json.loads(base64.urlsafe_b64decode(payload + "=="))) == {
        "iss", "aud", "sub", "client_id", "iat", "exp", "jti", "scope",
    }  # fmt: skip


def test_a_token_built_manually_by_the_rfcs_is_accepted() -> None:
    assert access_tokens().verify(forged(our_header())) == CLAIMS


def test_claims_that_a_later_version_adds_are_ignored() -> None:
    payload = msgspec.to_builtins(CLAIMS) | {"later": {"x": 1}}

    assert access_tokens().verify(forged(our_header(), payload)) == CLAIMS


# --- T10: rotation ---


def test_t10_a_token_outlives_any_number_of_rotations_and_its_key_ends_with_the_last_token_it_signed(
    fixed_clock: Callable[[int], None],
) -> None:
    ring = RING
    rings: list[KeyRing] = []
    for hour in range(5):
        fixed_clock(NOW_S + hour * 3_600)
        rings.append(ring)
        ring = KeyRing.from_json(ring.rotated().to_json())
    last_s = NOW_S + 4 * 3_600
    claims = msgspec.structs.replace(CLAIMS, iat=last_s, exp=last_s + MAX_LIFE_S)
    last_tokens = [access_tokens(ring).issue(claims) for ring in rings]

    assert list(ring.previous) == [ring.kid for ring in reversed(rings)]
    for seconds in (0, MAX_LIFE_S, MAX_LIFE_S + SKEW_S):
        fixed_clock(last_s + seconds)
        assert access_tokens(ring).verify(last_tokens[-1]) == claims
    for hour, key_ring in enumerate(rings):
        ends_s = NOW_S + hour * 3_600 + RETIREMENT_S
        fixed_clock(ends_s)
        assert key_ring.kid in {key.kid for key in ring.jwks().keys}
        fixed_clock(ends_s + 1)
        assert key_ring.kid not in {key.kid for key in ring.jwks().keys}
        assert refusal(last_tokens[hour], access_tokens(ring)) == "key is not in the ring"
    assert [key.kid for key in ring.jwks().keys] == [ring.kid]
    assert not json.loads(ring.rotated().rotated().to_json())["previous"][2:], "ended keys leave the stored ring"


def test_t10_a_key_retired_by_an_earlier_version_expires_after_the_next_rotation(
    fixed_clock: Callable[[int], None],
) -> None:
    stored_ring = json.loads(RING.rotated().to_json())
    del stored_ring["previous"][0]["ends_at"]
    ring = KeyRing.from_json(json.dumps(stored_ring).encode())
    token = access_tokens().issue(CLAIMS)

    assert access_tokens(ring).verify(token) == CLAIMS
    later_ring = ring.rotated()
    assert list(later_ring.previous) == [ring.kid, RING.kid]
    fixed_clock(NOW_S + RETIREMENT_S + 1)
    assert [key.kid for key in later_ring.jwks().keys] == [later_ring.kid]


def test_with_any_settings_a_token_ends_before_the_key_that_signed_it() -> None:
    bounds = {item.name: item.metadata["max_value"] for item in fields(Settings)}

    assert bounds["token_ttl_s"] == bounds["assertion_ttl_s"] == MAX_LIFE_S


def test_t10_a_cached_token_of_a_removed_key_is_refused() -> None:
    tokens = access_tokens()
    token = tokens.issue(CLAIMS)
    tokens.verify(token)

    tokens.use(KeyRing.new())

    assert refusal(token, tokens) == "key is not in the ring"


def test_a_stored_key_ring_contains_only_the_private_key_of_the_current_key() -> None:
    ring = RING.rotated()
    stored_ring = ring.to_json()
    restored_ring = KeyRing.from_json(stored_ring)

    assert restored_ring.jwks() == ring.jwks()
    assert stored_ring.count(b'"d":') == 1
    assert access_tokens(restored_ring).verify(access_tokens().issue(CLAIMS)) == CLAIMS
    assert access_tokens(ring).verify(access_tokens(restored_ring).issue(CLAIMS)) == CLAIMS


@pytest.mark.parametrize("stored_ring", [b"", b"{}", b"[]", b'{"current":{},"previous":[]}', b"\xff"])
def test_a_damaged_ring_is_an_error(stored_ring: bytes) -> None:
    with pytest.raises(ValueError, match="damaged"):
        KeyRing.from_json(stored_ring)


def test_a_stored_point_off_the_curve_is_an_error_that_hides_the_key() -> None:
    stored_ring = json.loads(RING.to_json())
    stored_ring["current"]["x"] = b64(b"\1" * 32)

    with pytest.raises(ValueError, match="damaged") as failure:
        KeyRing.from_json(json.dumps(stored_ring).encode())

    assert stored_ring["current"]["d"] not in str(failure.value)
    assert failure.value.__cause__ is None


def test_the_key_set_shows_thumbprints_and_no_private_member() -> None:
    keys = json.loads(msgspec.json.encode(RING.rotated().jwks()))["keys"]

    assert len(keys) == 2
    for key in keys:
        assert set(key) == {"kty", "crv", "x", "y", "alg", "use", "kid"}
        members = {name: key[name] for name in ("crv", "kty", "x", "y")}
        canonical = json.dumps(members, separators=(",", ":"))
        assert key["kid"] == b64(hashlib.sha256(canonical.encode()).digest())


# --- times ---


@pytest.mark.parametrize(("passed_s", "is_accepted"), [(0, True), (3_660, True), (3_661, False), (10**6, False)])
def test_a_token_ends_sixty_seconds_after_its_expiry(
    passed_s: int, is_accepted: bool, fixed_clock: Callable[[int], None]
) -> None:
    cached = access_tokens()
    token = cached.issue(CLAIMS)
    cached.verify(token)

    fixed_clock(NOW_S + passed_s)

    for tokens in (cached, access_tokens()):
        if is_accepted:
            assert tokens.verify(token) == CLAIMS
        else:
            assert refusal(token, tokens) == "expired"


@pytest.mark.parametrize(("ahead_s", "is_accepted"), [(60, True), (61, False)])
def test_a_token_from_the_future_is_refused_beyond_the_skew(ahead_s: int, is_accepted: bool) -> None:
    token = access_tokens().issue(msgspec.structs.replace(CLAIMS, iat=NOW_S + ahead_s))

    if is_accepted:
        access_tokens().verify(token)
    else:
        assert refusal(token) == "issued in the future"


@pytest.mark.parametrize("life_s", [0, -1, 86_401, 10**12])
def test_a_life_that_is_empty_or_too_long_is_refused(life_s: int) -> None:
    claims = msgspec.structs.replace(CLAIMS, exp=NOW_S + life_s)

    assert refusal(access_tokens().issue(claims)) == "lifetime is not positive, or is too long"


# --- cache ---


def test_the_cache_removes_the_least_recently_used_entry() -> None:
    cache = TokenCache(2)
    cache.put("a", CLAIMS)
    cache.put("b", CLAIMS)
    cache.get("a")
    cache.put("c", CLAIMS)

    assert cache.get("a") == CLAIMS
    assert cache.get("b") is None
    assert cache.get("c") == CLAIMS
    assert len(cache) == 2


def test_the_cache_drops_an_expired_token(fixed_clock: Callable[[int], None]) -> None:
    cache = TokenCache(2)
    cache.put("a", CLAIMS)

    fixed_clock(CLAIMS.exp + 61)

    assert cache.get("a") is None
    assert len(cache) == 0


def test_a_cache_of_size_zero_stores_nothing() -> None:
    tokens = access_tokens(cache_size=0)
    token = tokens.issue(CLAIMS)

    assert tokens.verify(token) == tokens.verify(token) == CLAIMS
