"""Opaque secrets: format, checksum, digest."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel.security import secrets


def test_a_secret_is_its_prefix_and_49_base62_digits() -> None:
    secret = secrets.new_secret("csk_community")

    assert re.fullmatch(r"csk_community_[0-9A-Za-z]{49}", secret)
    assert secrets.looks_like_secret(secret)


def test_no_two_secrets_are_alike() -> None:
    assert len({secrets.new_secret("clm") for _ in range(1_000)}) == 1_000


@pytest.mark.parametrize("prefix", ["", "Csk", "csk_", "_csk", "csk__a", "csk-a", "csk a", "1csk", "c" * 65])
def test_a_prefix_that_scanners_could_not_find_is_an_error(prefix: str) -> None:
    with pytest.raises(ValueError, match="lower-case words"):
        secrets.new_secret(prefix)


@given(st.integers(min_value=0), st.sampled_from("0Az_-é "))
def test_any_changed_character_breaks_the_checksum(place: int, character: str) -> None:
    secret = secrets.new_secret("csk_agent")
    at = place % len(secret)
    changed_secret = secret[:at] + character + secret[at + 1 :]

    assert secrets.looks_like_secret(changed_secret) == (changed_secret == secret)


@given(st.text())
def test_any_other_text_does_not_look_like_a_secret(text: str) -> None:
    assert not secrets.looks_like_secret(text)
    assert len(secrets.digest(text)) == 32


@pytest.mark.parametrize("change", [str.upper, str.lower, "{}\n".format, " {}".format])
def test_a_changed_secret_does_not_look_like_a_secret(change: Callable[[str], str]) -> None:
    assert not secrets.looks_like_secret(change(secrets.new_secret("csk_agent")))


def test_a_digest_matches_only_its_secret() -> None:
    secret = secrets.new_secret("csk_agent")
    stored_digest = secrets.digest(secret)

    assert secrets.matches(secret, stored_digest)
    assert not secrets.matches(secrets.new_secret("csk_agent"), stored_digest)
    assert not secrets.matches(secret, stored_digest[:16])


def test_half_a_surrogate_pair_is_a_wrong_secret_and_no_crash() -> None:
    assert not secrets.matches("\ud800", secrets.digest("csk"))
