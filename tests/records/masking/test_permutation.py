"""The keyed permutation: encoding and decoding are inverse, single or in batches, and each key gives another
permutation."""

import random

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from countersign.records.access.view import Domain
from countersign.records.masking.placeholder_tokens import (
    MAX_BATCH,
    MAX_KNOWN,
    ROUNDS,
    SIZE,
    DomainMasks,
    Permutation,
)

KEYS = st.binary(min_size=32, max_size=32)
NUMBERS = st.lists(st.integers(0, SIZE - 1) | st.sampled_from([0, 1, (1 << 24) - 1, 1 << 24, SIZE - 1]), max_size=40)


def plainly(key: bytes, number: int) -> int:
    """Compute the permutation as in a textbook, one number at a time."""
    left_half, right = number >> 24, number & 0xFFFFFF
    for turn in range(1, ROUNDS + 1):
        encryptor = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor()
        block = encryptor.update(turn.to_bytes(8) + right.to_bytes(8))
        left_half, right = right, left_half ^ int.from_bytes(block[-3:])
    return left_half << 24 | right


@given(KEYS, NUMBERS)
def test_decoding_reverses_encoding_and_encoding_reverses_decoding(key: bytes, numbers: list[int]) -> None:
    permutation = Permutation(key)

    encoded, decoded = permutation.encode(numbers), permutation.decode(numbers)

    assert permutation.decode(encoded) == permutation.encode(decoded) == numbers
    assert all(0 <= number < SIZE for number in encoded + decoded)


@given(KEYS, NUMBERS)
def test_a_batch_has_the_same_result_as_permuting_each_number_separately(key: bytes, numbers: list[int]) -> None:
    permutation = Permutation(key)

    assert permutation.encode(numbers) == [permutation.encode([number])[0] for number in numbers]
    assert permutation.encode(numbers) == [plainly(key, number) for number in numbers]
    assert permutation.decode(numbers) == [permutation.decode([number])[0] for number in numbers]


@pytest.mark.parametrize("count", [0, 1, MAX_BATCH - 1, MAX_BATCH, MAX_BATCH + 1, 2 * MAX_BATCH + 3])
def test_batches_of_any_size_keep_order_and_number(count: int) -> None:
    permutation = Permutation(b"k" * 32)
    numbers = random.Random(count).sample(range(SIZE), count)

    encoded = permutation.encode(numbers)

    assert len(encoded) == len(set(encoded)) == count
    assert permutation.decode(encoded) == numbers
    assert encoded[-3:] == [permutation.encode([number])[0] for number in numbers[-3:]]


def test_neighbouring_ids_give_numbers_spread_over_all_48_bits() -> None:
    numbers = Permutation(b"k" * 32).encode(range(50_000))

    assert len(set(numbers)) == 50_000
    for bit in range(48):
        # Each bit is set in half of the numbers, within five standard deviations.
        assert abs(sum(number >> bit & 1 for number in numbers) - 25_000) < 5 * 112
    assert len({number >> 40 for number in numbers}) == 256


@pytest.mark.parametrize("bit", [0, 7, 100, 255])
def test_keys_that_differ_in_a_bit_give_unrelated_numbers(bit: int) -> None:
    key_number = int.from_bytes(b"k" * 32)
    ids = range(20_000)

    numbers_here = Permutation(key_number.to_bytes(32)).encode(ids)
    numbers_there = Permutation((key_number ^ 1 << bit).to_bytes(32)).encode(ids)

    distances = [(a ^ b).bit_count() for a, b in zip(numbers_here, numbers_there, strict=True)]
    assert not set(numbers_here) & set(numbers_there)
    assert abs(sum(distances) / len(distances) - 24) < 0.2
    # The numbers of one key do not decode to ids of the other key.
    assert all(number >= 20_000 for number in Permutation((key_number ^ 1 << bit).to_bytes(32)).decode(numbers_here))


def test_tokens_are_the_same_with_and_without_the_cache() -> None:
    domain = Domain("d", b"k" * 32)
    rng = random.Random(5)
    values = [rng.randrange(SIZE) for _ in range(3 * MAX_KNOWN)]
    expected = dict(zip(values, Permutation(domain.key).encode(values), strict=True))
    masks = DomainMasks(domain)

    for _ in range(400):
        asked_ids = rng.choices(values[: rng.choice([50, len(values)])], k=rng.choice([0, 1, 30, 700, 1_500]))
        assert masks.numbers(asked_ids) == [str(expected[value_id]) for value_id in asked_ids]
