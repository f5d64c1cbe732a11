"""Ids of records in existing databases: reversible, of equal length, and not guessed."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.records.masking.placeholder_tokens import Permutation
from countersign.records.masking.record_ids import Key, KeyKind, RecordIds

SECRET = b"s" * 32
NUMBERS = {"int2": 16, "int4": 32, "int8": 64}


def numbers(*kinds: str) -> st.SearchStrategy[tuple[int, ...]]:
    """Return keys of these kinds of numbers."""
    bits = [NUMBERS[kind] for kind in kinds]
    return st.tuples(*(st.integers(-(1 << bit - 1), (1 << bit - 1) - 1) for bit in bits))


OTHER = st.tuples(st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(), st.binary(max_size=50)), st.text())
CASES: Sequence[Any] = [
    (("int4",), numbers("int4"), {24}),
    (("int8",), numbers("int8"), {24}),
    (("int2", "int4"), numbers("int2", "int4"), {24}),
    (("int4", "int8"), numbers("int4", "int8"), {32}),
    (("int8", "int8"), numbers("int8", "int8"), None),
    (("uuid",), st.tuples(st.uuids().map(lambda uuid: uuid.hex)), {32}),
    (("other", "other"), OTHER, None),
]


@pytest.mark.parametrize(("kinds", "keys", "lengths"), CASES, ids=["+".join(case[0]) for case in CASES])
def test_an_id_gives_its_key_back(kinds: tuple[KeyKind, ...], keys: st.SearchStrategy[Key], lengths: set[int]) -> None:
    ids = RecordIds(SECRET, "public.plant", kinds)

    @given(st.lists(keys, min_size=1, max_size=20))
    def check(several: list[Key]) -> None:
        encoded = ids.encode(several)
        assert [ids.decode(str(token)) for token in encoded] == several
        assert ids.decode_all(["", *map(str, encoded), "no id"]) == [None, *several, None]
        assert lengths is None or {len(str(token)) for token in encoded} <= lengths
        assert all(len(str(token)) % 32 == 0 and len(str(token)) >= 64 for token in encoded) or lengths is not None

    check()


def test_random_ids_are_not_ids_of_a_table_with_number_keys() -> None:
    ids = RecordIds(SECRET, "public.plant", ("int8",))
    rng = random.Random(7)

    assert [number for number in range(2_000) if ids.decode(f"{rng.getrandbits(96):024x}") is not None] == []


@pytest.mark.parametrize(("kind", "key"), [("other", ("rose",)), ("int8", (7,))])
def test_ids_of_another_table_or_database_are_not_accepted(kind: KeyKind, key: Key) -> None:
    ids = RecordIds(SECRET, "public.plant", (kind,))
    other_ciphers = [RecordIds(SECRET, "public.bed", (kind,)), RecordIds(b"o" * 32, "public.plant", (kind,))]

    assert [ids.decode(str(cipher.encode([key])[0])) for cipher in other_ciphers] == [None, None]


def test_a_uuid_has_the_same_id_with_and_without_hyphens() -> None:
    ids = RecordIds(SECRET, "public.plant", ("uuid",))

    plain_id, hyphenated_id = ids.encode(
        [("5b0c0b523a3e4a0a8f0e000000000001",), ("5b0c0b52-3a3e-4a0a-8f0e-000000000001",)]
    )

    assert plain_id == hyphenated_id


def test_a_key_that_no_record_can_have_has_no_id() -> None:
    ids = RecordIds(SECRET, "public.plant", ("int2",))

    assert ids.encode([(2**15,), ("rose",), (1,)])[:2] == [None, None]
    assert [ids.decode(token) for token in ("", "zz", "A" * 24, "0" * 23, "0" * 25)] == [None] * 5


@pytest.mark.parametrize(("kind", "key"), [("other", ("rose",)), ("int8", (7,)), ("uuid", ("0" * 31 + "7",))])
def test_several_ids_are_decoded_together_with_texts_that_are_not_ids(kind: KeyKind, key: Key) -> None:
    ids = RecordIds(SECRET, "public.plant", (kind,))
    (record_id,) = ids.encode([key])
    assert record_id is not None
    unknown = "0" * len(record_id)

    assert ids.decode_all([record_id, "", "xyz", record_id.upper() + "g", record_id]) == [key, None, None, None, key]
    assert (ids.decode(unknown) is None) is (kind != "uuid")


def test_a_thousand_ids_are_decoded_in_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = RecordIds(SECRET, "public.plant", ("int8",))
    encoded = [str(record_id) for record_id in ids.encode([(number,) for number in range(1_000)])]
    batches: list[int] = []
    decode = Permutation.decode
    monkeypatch.setattr(
        Permutation, "decode", lambda self, numbers: (batches.append(len(numbers)), decode(self, numbers))[1]
    )

    assert ids.decode_all(encoded) == [(number,) for number in range(1_000)]
    assert batches == [1_000]
