"""Deltas between made-up trees create exactly the wanted files, and manipulated deltas create nothing."""

import gzip
import hashlib
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign.updates.chunks import chunk_id
from countersign.updates.deltas import apply, byte_matches, make, patch
from countersign.updates.deltas.apply import DeltaRefused, FilePiece, MemoryPiece, Reference, TargetFile, contents
from countersign.updates.deltas.byte_matches import covers
from countersign.updates.deltas.make import BuildFiles, DeltaBlob
from countersign.updates.deltas.patch import add_bytes, subtract_bytes
from countersign.updates.manifest import File
from countersign.updates.planner import positions
from countersign.updates.recompress.archives import InflateBudget
from countersign.updates.varint import Malformed, VarintReader, encode_numbers, unzigzag, zigzag
from tests.updates.test_unfold import TEXT, tar_files, zip_files

Files = dict[str, bytes]
MIB = 1 << 20


def side(files: Files) -> BuildFiles:
    """Return the files as the maker sees them."""
    listed_files = [
        File(path, 0o644, len(data), hashlib.sha256(data).hexdigest(), chunk_id(data), [])
        for path, data in sorted(files.items(), key=lambda item: item[0].encode())
    ]
    return BuildFiles(listed_files, lambda file: files[file.path])


def make_deltas(old: Files, new: Files, group_bytes: int = make.GROUP_BYTES) -> list[DeltaBlob]:
    """Return the deltas."""
    return list(make.make(side(old), side(new), group_bytes))


def apply_deltas(deltas: list[DeltaBlob], old: Files, new: Files) -> Files:
    """Return the result of the deltas applied to the old files."""
    olds, news = side(old).files, side(new).files
    files: Files = {}
    for delta in deltas:
        old_pieces = [MemoryPiece(old[olds[position].path]) for position in positions(delta.old, len(olds))]
        wanted_files = [news[position] for position in positions(delta.files, len(news))]
        for file, pieces in zip(
            wanted_files, contents(delta.blob, old_pieces, [file.size for file in wanted_files]), strict=True
        ):
            files[file.path] = b"".join(pieces)
    return files


def lacking(old: Files, new: Files) -> Files:
    """Return the contents that only the new tree has."""
    return {path: data for path, data in new.items() if data and data not in old.values()}


def edit_randomly(data: bytes, rng: random.Random) -> bytes:
    """Return the data with a few changes of every kind."""
    edited_bytes = bytearray(data)
    for _ in range(rng.randrange(1, 9)):
        at = rng.randrange(len(edited_bytes) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            edited_bytes[at:at] = rng.randbytes(rng.randrange(300))
        elif kind == 1:
            del edited_bytes[at : at + rng.randrange(300)]
        elif kind == 2 and edited_bytes:
            edited_bytes[at % len(edited_bytes)] ^= 1 + rng.randrange(255)
        else:
            edited_bytes[at:at] = edited_bytes[: rng.randrange(len(edited_bytes) + 1)]
    return bytes(edited_bytes)


def tree(rng: random.Random, old_files: Files | None = None) -> Files:
    """Return a random tree. With `old_files`, it is a later version of that tree."""
    if old_files is None:
        kinds = (rng.randbytes, lambda size: TEXT[:size], lambda size: zip_files({"m": TEXT[:size]}), bytes)
        return {f"d{n % 3}/f{n}": rng.choice(kinds)(rng.randrange(5000)) for n in range(rng.randrange(1, 12))}
    new_files = {(path if rng.random() < 0.8 else path + ".moved"): data for path, data in old_files.items()}
    for path in list(new_files):
        if rng.random() < 0.5:
            new_files[path] = edit_randomly(new_files[path], rng)
    return {**new_files, "new.zip": zip_files({"m": TEXT[: rng.randrange(9000)], "n": b"n" * 400})}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from([2000, 20_000, make.GROUP_BYTES]))
def test_random_trees_are_made_exactly(seed: int, group_bytes: int) -> None:
    rng = random.Random(seed)
    old = tree(rng)
    new = tree(rng, old)

    files = apply_deltas(make_deltas(old, new, group_bytes), old, new)

    assert files == {path: data for path, data in new.items() if path in files}
    if group_bytes == make.GROUP_BYTES and any(old.values()):
        assert files == lacking(old, new)


@pytest.mark.parametrize("length", range(1, 17))
def test_a_file_of_few_bytes_is_changed_exactly(length: int) -> None:
    old = {"a": b"0123456789abcdef"[:length]}
    new = {"a": old["a"][::-1] + b"!"}

    assert apply_deltas(make_deltas(old, new), old, new) == new


def test_old_files_of_fewer_bytes_than_a_dictionary_has_are_refused() -> None:
    with pytest.raises(Malformed, match="too short for a dictionary"):
        apply._prefix(Reference([MemoryPiece(b"1234567")], InflateBudget()))


def test_a_changed_byte_in_a_big_file_costs_next_to_nothing() -> None:
    data = random.Random(1).randbytes(MIB)
    changed_data = data[:500_000] + b"x" + data[500_001:]

    (delta,) = make_deltas({"a": data}, {"a": changed_data})

    assert len(delta.blob) < 60


def test_the_delta_of_a_typical_archive_costs_little_more_than_its_changed_content() -> None:
    members = {f"m{number}": TEXT[number * 100 :] for number in range(20)}
    old = zip_files(members)
    new = zip_files({**members, "m7": members["m7"].replace(b"bottles", b"BOTTLES", 3)})

    (delta,) = make_deltas({"app.zip": old}, {"app.zip": new})

    assert apply_deltas([delta], {"app.zip": old}, {"app.zip": new}) == {"app.zip": new}
    assert len(delta.blob) < 400


def test_nested_archives_with_almost_no_content_are_restored_exactly() -> None:
    """A client refuses data that unpacks to more than files of this size can contain."""
    old, new = ({"a.gz": gzip.compress(gzip.compress(bytes(size), mtime=0), mtime=0)} for size in (4 << 20, 5 << 20))

    assert apply_deltas(make_deltas(old, new), old, new) == new


def test_a_delta_finds_content_moved_to_another_file() -> None:
    data = random.Random(2).randbytes(MIB)

    deltas = make_deltas({"one": data, "two": b"2"}, {"three/renamed": data[1000:], "two": b"2"})

    assert sum(len(delta.blob) for delta in deltas) < 100


def test_contents_beyond_the_group_are_searched_in_parts() -> None:
    rng = random.Random(3)
    assets = [rng.randbytes(200_000) for _ in range(40)]
    moved_assets = [
        assets[30],
        *assets[:12],
        edit_randomly(assets[12], rng),
        rng.randbytes(9000),
        *assets[13:30],
        *assets[31:],
    ]
    old, new = {"pack": b"".join(assets)}, {"pack": b"".join(moved_assets)}

    deltas = make_deltas(old, new, 4 * MIB)

    assert apply_deltas(deltas, old, new) == new
    assert sum(len(delta.blob) for delta in deltas) < 9000 + 5000


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 32))
def test_covers_found_in_parts_are_covers(seed: int) -> None:
    rng = random.Random(seed)
    old = rng.randbytes(rng.randrange(400_000))
    new = edit_randomly(edit_randomly(old, rng), rng)

    covers = byte_matches.all_covers(old, new, 100_000)

    ends = [0, *(cover.new + cover.length for cover in covers)]
    assert all(cover.new >= end and cover.length > 0 for cover, end in zip(covers, ends, strict=False))
    assert all(0 <= cover.old <= len(old) - cover.length for cover in covers)
    assert ends[-1] <= len(new)


def test_files_are_written_and_wrong_files_are_named(tmp_path: Path) -> None:
    old, new = {"a": TEXT, "b": TEXT[:999]}, {"a": TEXT + b"!", "b": TEXT[:99] + b"!"}
    (delta,) = make_deltas(old, new)
    for path, data in old.items():
        (tmp_path / path).write_bytes(data)
    targets = [
        TargetFile(tmp_path / "a.new", len(new["a"]), hashlib.sha256(new["a"]).hexdigest()),
        TargetFile(tmp_path / "b.new", len(new["b"]), "0" * 64),
    ]

    failed = apply.apply(delta.blob, [FilePiece(tmp_path / path) for path in sorted(old)], targets)

    assert failed == [1]
    assert (tmp_path / "a.new").read_bytes() == new["a"]
    assert not (tmp_path / "b.new").exists()


def test_a_zlib_that_writes_other_bytes_makes_a_wrong_file_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from countersign.updates.recompress import zlib_settings

    old, new = {"a.zip": zip_files({"m": TEXT})}, {"a.zip": zip_files({"m": TEXT + b"!"})}
    (delta,) = make_deltas(old, new)
    monkeypatch.setattr(
        zlib_settings, "SETTINGS", tuple(zlib_settings.DeflateSettings(1, 8) for _ in zlib_settings.SETTINGS)
    )
    size = len(new["a.zip"])

    try:
        (made_file,) = [b"".join(pieces) for pieces in contents(delta.blob, [MemoryPiece(old["a.zip"])], [size])]
    except DeltaRefused:
        return

    assert made_file != new["a.zip"]


@pytest.mark.parametrize("other_old_file", [b"", TEXT[1:], TEXT + b"more"], ids=["empty", "shorter", "longer"])
def test_a_delta_for_other_old_files_is_refused(other_old_file: bytes) -> None:
    (delta,) = make_deltas({"a": TEXT}, {"a": TEXT + b"!"})

    with pytest.raises(DeltaRefused):
        [b"".join(pieces) for pieces in contents(delta.blob, [MemoryPiece(other_old_file)], [len(TEXT) + 1])]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_tampered_delta_is_refused_or_makes_files_of_the_announced_sizes(data: st.DataObject) -> None:
    tampered = bytearray(_BLOB)
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(tampered) - 1))
        tampered[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    sizes = [len(content) for content in _NEW.values()]

    try:
        made_sizes = [
            sum(map(len, pieces))
            for pieces in contents(bytes(tampered), [MemoryPiece(content) for content in _OLD.values()], sizes)
        ]
    except DeltaRefused:
        return

    assert all(made_size <= size for made_size, size in zip(made_sizes, sizes, strict=True))


def test_numbers_come_back() -> None:
    numbers = [0, 1, 127, 128, 1 << 20, (1 << 40) - 1]

    assert VarintReader(encode_numbers(numbers)).numbers(len(numbers), 1 << 40) == numbers
    assert [unzigzag(zigzag(number)) for number in (-5, -1, 0, 1, 5)] == [-5, -1, 0, 1, 5]
    for bad_number in (b"", b"\x80", b"\xff" * 12):
        with pytest.raises(Malformed):
            VarintReader(bad_number).number(1 << 40)


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_a_difference_added_to_the_old_bytes_gives_the_new_bytes(left: bytes, right: bytes) -> None:
    size = min(len(left), len(right))
    new, old = left[:size], right[:size]

    assert add_bytes(old, subtract_bytes(memoryview(new), memoryview(old))) == new


@pytest.mark.parametrize(("start", "length"), [(-1, 1), (0, 8), (7, 1), (9, 0)])
def test_nothing_is_read_outside_of_the_old_files(start: int, length: int) -> None:
    reference = Reference([MemoryPiece(b"one"), MemoryPiece(b"four")], InflateBudget())

    assert b"".join(reference.slices(2, 3)) == b"efo"
    with pytest.raises(Malformed):
        list(reference.slices(start, length))


def test_nothing_matches_nothing() -> None:
    assert covers(b"", b"new") == []
    assert covers(b"old", b"") == []
    with pytest.raises(Malformed):
        patch.decode(b"none of ours")


_OLD: Files = {"a.zip": zip_files({"m": TEXT[:3000]}), "b": TEXT[:2000], "c.tar": tar_files({"x": TEXT[:100]})}
_NEW: Files = {"a.zip": zip_files({"m": TEXT[:2900]}), "b": TEXT[:1500] + b"!" + TEXT[1500:]}
_BLOB = make_deltas(_OLD, _NEW)[0].blob
