"""Files encrypted with a passphrase: they decrypt completely or not at all, and are compatible with other
implementations of age."""

import base64
import io
import random
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign.kernel.security.age import (
    CHANGED,
    CHUNK_BYTES,
    ENDS_EARLY,
    LAST_CHANGED,
    AgeDecryptor,
    AgeEncryptor,
    Damaged,
    WrongPassphrase,
    find_damage,
)

PASSPHRASE = "correct horse battery staple"
WORK = 4
SEALED_CHUNK = CHUNK_BYTES + 16
EDGES = (0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, 3 * CHUNK_BYTES + 5)
# Another implementation (rage, through its Python binding) created this with the passphrase "pass phrase".
FOREIGN = (
    "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNjcnlwdCBDSUxGbDVBUE5WTG15MEJRODJhOG1BIDE5Ck85WVlqclVvR1FqSTliRDhm"
    "SVNtVFpCeW5wWXRGRzd6emtNWFhlRWdZbFUKLS0tIE1ObmJhY1diSWp4T2Q1SE9kYmFlbzZiak1yUm8vZEZSUko1cDlVTTQzbkkK"
    "UCKNcNB6VRSHQY2olWowv2ZYsw6QdOxfkwtG/i+AMZ1MfheMfX4iKD8="
)


def encrypt(content: bytes, piece: int = 7919) -> bytes:
    """Return the encrypted content, written in pieces."""
    file = io.BytesIO()
    sealing = AgeEncryptor(file.write, PASSPHRASE, work=WORK)
    for at in range(0, len(content), piece):
        sealing.write(content[at : at + piece])
    sealing.finish()
    return file.getvalue()


def decrypt(file: bytes, passphrase: str = PASSPHRASE, piece: int = 1 << 20) -> bytes:
    """Return the content of the file."""
    opening = AgeDecryptor(io.BytesIO(file).read, passphrase)
    content = bytearray()
    while plain_piece := opening.read(piece):
        content += plain_piece
    return bytes(content)


@pytest.mark.parametrize("size", EDGES)
def test_decryption_reverses_encryption(size: int) -> None:
    content = random.Random(size).randbytes(size)

    assert decrypt(encrypt(content)) == decrypt(encrypt(content, 200_000), piece=4093) == content


@settings(max_examples=50)
@given(st.binary(max_size=300), st.integers(1, 400), st.integers(1, 400))
def test_pieces_of_any_size_make_the_same_content(content: bytes, write_size: int, read_size: int) -> None:
    assert decrypt(encrypt(content, write_size), piece=read_size) == content


@pytest.mark.full
def test_a_file_of_another_implementation_opens() -> None:
    assert decrypt(base64.b64decode(FOREIGN), "pass phrase") == b"a backup\n"


def test_another_passphrase_opens_nothing() -> None:
    with pytest.raises(WrongPassphrase):
        decrypt(encrypt(b"content"), "correct horse battery stable")


def test_a_file_cut_anywhere_is_damaged() -> None:
    encrypted = encrypt(random.Random(1).randbytes(2 * CHUNK_BYTES + 100))
    start = len(encrypted) - 2 * SEALED_CHUNK - 116

    for length in (
        0,
        10,
        start - 20,
        start,
        start + 5,
        start + SEALED_CHUNK,
        start + 2 * SEALED_CHUNK,
        len(encrypted) - 1,
    ):
        with pytest.raises(Damaged):
            decrypt(encrypted[:length])


def test_chunks_in_another_order_are_damaged() -> None:
    encrypted = encrypt(random.Random(1).randbytes(3 * CHUNK_BYTES))
    start = len(encrypted) - 3 * SEALED_CHUNK
    first_chunk, second_chunk = (
        encrypted[start : start + SEALED_CHUNK],
        encrypted[start + SEALED_CHUNK : start + 2 * SEALED_CHUNK],
    )

    with pytest.raises(Damaged):
        decrypt(encrypted[:start] + second_chunk + first_chunk + encrypted[start + 2 * SEALED_CHUNK :])
    with pytest.raises(Damaged):
        decrypt(encrypted[:start] + second_chunk + encrypted[start + 2 * SEALED_CHUNK :])
    with pytest.raises(Damaged):
        decrypt(encrypted + encrypted[-SEALED_CHUNK:])


def test_damage_names_each_place_and_no_other() -> None:
    encrypted = bytearray(encrypt(random.Random(1).randbytes(5 * CHUNK_BYTES)))
    start = len(encrypted) - 5 * SEALED_CHUNK
    for chunk in (0, 2, 3):
        encrypted[start + chunk * SEALED_CHUNK + 77] ^= 1

    damaged_places = list(find_damage(io.BytesIO(encrypted).read, PASSPHRASE))

    assert damaged_places == [
        (start, start + SEALED_CHUNK, CHANGED),
        (start + 2 * SEALED_CHUNK, start + 4 * SEALED_CHUNK, CHANGED),
    ]


def test_a_cut_is_distinguished_from_a_change_where_possible() -> None:
    encrypted = encrypt(random.Random(1).randbytes(3 * CHUNK_BYTES))
    head = len(encrypted) - 3 * SEALED_CHUNK
    at = [0, 1, len("age-encryption.org/v1\n"), 100, head - 16, head, head + SEALED_CHUNK, head + 2 * SEALED_CHUNK]

    def fault(content: bytes) -> str:
        with pytest.raises(Damaged) as failure:
            decrypt(content)
        error_text = failure.value.detail.partition(" (bytes")[0]
        with suppress(Damaged):
            assert [damage.fault for damage in find_damage(io.BytesIO(content).read, PASSPHRASE)][:1] == [error_text]
        return error_text

    assert {fault(encrypted[:length]) for length in at} == {ENDS_EARLY}
    assert {fault(encrypted[:length]) for length in (head + 5, len(encrypted) - 1)} == {LAST_CHANGED}
    assert fault(b"no archive at all" * 20) == fault(b"short") == "the file is not encrypted with a passphrase"
    # Change one bit. Another letter at this position could be the same letter.
    assert fault(encrypted[: head + 9] + bytes([encrypted[head + 9] ^ 1]) + encrypted[head + 10 :]) == CHANGED


def test_every_bit_of_the_header_counts() -> None:
    encrypted = encrypt(b"content")
    for bit in range(8 * 149):
        changed_bytes = bytearray(encrypted)
        changed_bytes[bit // 8] ^= 1 << bit % 8
        # Skip the digit of the cost, because a changed cost may need much more work.
        if bit // 8 in range(54, 58):
            continue
        with pytest.raises((Damaged, WrongPassphrase)):
            decrypt(bytes(changed_bytes))
