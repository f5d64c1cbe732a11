"""Encrypted values and signatures: only the right key, purpose and bytes are accepted."""

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel.security import encryption
from countersign.kernel.security.masterkey import Key, MasterKey

_NEW = Key("new", b"n" * 32)
_OLD = Key("old", b"o" * 32)
_MASTER = MasterKey((_NEW, _OLD))


@given(st.binary(max_size=300), st.text(max_size=20))
def test_decryption_returns_the_encrypted_value(plaintext: bytes, purpose: str) -> None:
    assert encryption.decrypt(_MASTER, encryption.encrypt(_MASTER, plaintext, purpose), purpose) == plaintext


def test_a_sealed_value_names_its_form_and_key_first_and_hides_the_rest() -> None:
    value = encryption.encrypt(_MASTER, b"the plaintext", "mail")

    assert value[:5] == b"\x01\x03new"
    assert b"plaintext" not in value
    assert encryption.encryption_key_id(value) == "new"
    assert encryption.encrypt(_MASTER, b"the plaintext", "mail") != value


def test_an_old_key_still_opens_after_a_rotation_and_not_after_its_removal() -> None:
    value = encryption.encrypt(MasterKey((_OLD,)), b"kept", "mail")

    assert encryption.decrypt(_MASTER, value, "mail") == b"kept"
    with pytest.raises(encryption.DecryptionFailed) as refusal:
        encryption.decrypt(MasterKey((_NEW,)), value, "mail")
    assert "master key" in refusal.value.remedy


def test_another_purpose_does_not_open() -> None:
    with pytest.raises(encryption.DecryptionFailed):
        encryption.decrypt(_MASTER, encryption.encrypt(_MASTER, b"kept", "mail"), "keys")


def test_a_key_renamed_to_another_does_not_open() -> None:
    impostor = MasterKey((Key("new", b"x" * 32),))

    with pytest.raises(encryption.DecryptionFailed):
        encryption.decrypt(impostor, encryption.encrypt(_MASTER, b"kept", "mail"), "mail")


def test_every_flipped_bit_is_detected() -> None:
    value = encryption.encrypt(_MASTER, b"kept", "mail")

    for bit in range(len(value) * 8):
        flipped = bytearray(value)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(encryption.DecryptionFailed):
            encryption.decrypt(_MASTER, bytes(flipped), "mail")


def test_every_truncation_is_detected() -> None:
    value = encryption.encrypt(_MASTER, b"kept", "mail")

    for length in range(len(value)):
        with pytest.raises(encryption.DecryptionFailed):
            encryption.decrypt(_MASTER, value[:length], "mail")


@given(st.binary(max_size=80))
def test_any_bytes_are_refused_and_never_crash(garbage: bytes) -> None:
    with pytest.raises(encryption.DecryptionFailed):
        encryption.decrypt(_MASTER, garbage, "mail")
    with pytest.raises(encryption.DecryptionFailed):
        encryption.decrypt_with_secret(b"secret", b"salt", garbage)
    assert encryption.encryption_key_id(garbage) is None or garbage[0] == 1


@given(st.binary(min_size=1, max_size=40), st.binary(max_size=40), st.binary(max_size=100))
def test_a_value_encrypted_with_a_secret_is_decrypted_only_with_the_same_secret_and_salt(
    secret: bytes, salt: bytes, plaintext: bytes
) -> None:
    value = encryption.encrypt_with_secret(secret, salt, plaintext)

    assert encryption.decrypt_with_secret(secret, salt, value) == plaintext
    with pytest.raises(encryption.DecryptionFailed):
        encryption.decrypt_with_secret(secret + b"x", salt, value)
    with pytest.raises(encryption.DecryptionFailed):
        encryption.decrypt_with_secret(secret, salt + b"x", value)
    with pytest.raises(encryption.DecryptionFailed):
        encryption.decrypt(_MASTER, value, "mail")


@given(st.binary(max_size=300), st.binary(min_size=32, max_size=32))
def test_a_signature_is_hmac_sha256_cut_to_sixteen_bytes(message: bytes, key: bytes) -> None:
    signer = encryption.Signer((key,))

    assert signer.sign(message) == hmac.digest(key, message, hashlib.sha256)[:16]
    assert signer.verify(message, signer.sign(message))
    assert not signer.verify(message + b"x", signer.sign(message))


def test_a_signature_is_valid_only_for_its_purpose_and_key() -> None:
    signer = encryption.signer_for(_MASTER, "cursor")
    signature = signer.sign(b"page")

    assert not encryption.signer_for(_MASTER, "address").verify(b"page", signature)
    assert not encryption.signer_for(b"n" * 32, "other").verify(b"page", signature)
    assert not signer.verify(b"page", signature[:15])
    assert not signer.verify(b"page", b"")


def test_a_signature_of_the_previous_key_is_still_accepted() -> None:
    previous_signer = encryption.signer_for(MasterKey((_OLD,)), "cursor")
    next_signer = encryption.signer_for(_MASTER, "cursor")

    assert next_signer.verify(b"page", previous_signer.sign(b"page"))
    assert not previous_signer.verify(b"page", next_signer.sign(b"page"))


def test_a_key_given_by_the_caller_signs_too() -> None:
    signer = encryption.signer_for(b"a key of the caller", "address")

    assert signer.verify(b"/download", signer.sign(b"/download"))
