"""The properties of every blob store, in a directory or in a bucket."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countersign.kernel import clock, ids
from countersign.kernel.blobs.layout import PIECE_BYTES
from countersign.kernel.blobs.port import BlobStore, ChecksumMismatch, Part
from countersign.kernel.errors import NotFound
from tests.kernel.blobs.traffic import ConnectionCut, arriving, content, digest_of, sealed_in, staged_uploads

_DATA = random.Random(7).randbytes(3 * PIECE_BYTES + 12_345)
_SHA = digest_of(_DATA)
_LARGE = random.Random(8).randbytes(20 * PIECE_BYTES + 1)


async def _store(blobs: BlobStore, data: bytes, upload: str = "up") -> str:
    staged_part = await blobs.stage(upload, 0, arriving(data))
    return await blobs.seal(upload, [staged_part], len(data), None)


async def test_a_file_sent_in_one_piece_is_stored_under_its_digest(blobs: BlobStore) -> None:
    staged_part = await blobs.stage("up", 0, arriving(_DATA))
    sealed_digest = await blobs.seal("up", [staged_part], len(_DATA), _SHA)

    assert staged_part == Part(0, len(_DATA), _SHA)
    assert sealed_digest == _SHA
    assert await blobs.size(_SHA) == len(_DATA)
    assert await content(blobs, _SHA) == _DATA


@pytest.mark.parametrize("announced_digest", [None, digest_of(_LARGE)])
async def test_parts_may_come_in_any_order(blobs: BlobStore, announced_digest: str | None) -> None:
    cuts = [0, 5 * PIECE_BYTES, 5 * PIECE_BYTES + 3, 17 * PIECE_BYTES, len(_LARGE)]
    pairs = list(itertools.pairwise(cuts))

    parts = [await blobs.stage("up", start, arriving(_LARGE[start:stop])) for start, stop in reversed(pairs)]
    sealed_digest = await blobs.seal("up", parts, len(_LARGE), announced_digest)

    assert sealed_digest == digest_of(_LARGE)
    assert await content(blobs, sealed_digest) == _LARGE


async def test_bytes_sent_again_replace_the_bytes_they_overlap(blobs: BlobStore) -> None:
    first_part = await blobs.stage("up", 0, arriving(b"aaaaaaaa"))
    second_part = await blobs.stage("up", 4, arriving(b"BBBBBBBB"))
    third_part = await blobs.stage("up", 2, arriving(b"cc"))

    sealed_digest = await blobs.seal("up", [first_part, second_part, third_part], 12, None)

    assert await content(blobs, sealed_digest) == b"aaccBBBBBBBB"


@pytest.mark.parametrize("data", [b"", b"bytes", _DATA])
async def test_bytes_in_memory_are_stored_under_their_digest(blobs: BlobStore, data: bytes) -> None:
    stored_digest = await blobs.put(data)

    assert stored_digest == digest_of(data)
    assert await content(blobs, stored_digest) == data
    assert await staged_uploads(blobs) == []


async def test_an_empty_file_is_a_file(blobs: BlobStore) -> None:
    staged_part = await blobs.stage("up", 0, arriving(b""))

    sealed_digest = await blobs.seal("up", [staged_part], 0, digest_of(b""))

    assert staged_part == Part(0, 0, digest_of(b""))
    assert await blobs.size(sealed_digest) == 0
    assert await content(blobs, sealed_digest) == b""


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=3_000), draw=st.data())
def test_the_digest_and_the_bytes_do_not_depend_on_the_pieces(
    blobs: BlobStore, data: bytes, draw: st.DataObject
) -> None:
    cuts = draw.draw(st.lists(st.integers(0, len(data)), max_size=5).map(lambda c: sorted({0, len(data), *c})))
    pairs = draw.draw(st.permutations(list(itertools.pairwise(cuts))))
    chunk = draw.draw(st.integers(1, 1_000))

    async def send() -> None:
        upload = ids.new_uuid()
        parts = [await blobs.stage(upload, a, arriving(data[a:b], chunk=chunk)) for a, b in pairs]
        assert [staged_part.sha256 for staged_part in parts] == [digest_of(data[a:b]) for a, b in pairs]
        sealed_digest = await blobs.seal(upload, parts, len(data), None)
        assert sealed_digest == digest_of(data)
        assert await content(blobs, sealed_digest) == data

    asyncio.run(send())


async def test_an_interrupted_connection_leaves_no_counted_bytes(blobs: BlobStore) -> None:
    with pytest.raises(ConnectionCut):
        await blobs.stage("up", 0, arriving(_DATA, cut=True))

    assert await staged_uploads(blobs) in ([], ["up"])
    assert await sealed_in(blobs) == []
    with pytest.raises(ChecksumMismatch):
        await blobs.seal("up", [Part(0, len(_DATA), _SHA)], len(_DATA), _SHA)


async def test_an_error_of_the_connection_is_raised_unchanged(blobs: BlobStore) -> None:
    error = ConnectionResetError("peer")

    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * 2 * PIECE_BYTES
        raise error

    with pytest.raises(ConnectionResetError) as raised:
        await blobs.stage("up", 0, broken())

    assert raised.value is error


async def test_a_cancelled_call_leaves_no_counted_bytes(blobs: BlobStore) -> None:
    reached_event = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * PIECE_BYTES
        reached_event.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(blobs.stage("up", 0, endless()))
    await reached_event.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await sealed_in(blobs) == []
    assert await content(blobs, await _store(blobs, b"again")) == b"again"


@pytest.mark.parametrize("is_cut", [True, False])
async def test_other_bytes_for_a_received_stretch_cannot_slip_under_its_digest(blobs: BlobStore, is_cut: bool) -> None:
    staged_part = await blobs.stage("up", 0, arriving(_DATA))
    other_data = bytes(len(_DATA))

    try:
        await blobs.stage("up", 0, arriving(other_data, cut=is_cut))
    except ConnectionCut:
        assert is_cut
    await blobs.seal("up", [staged_part], len(_DATA), _SHA)

    assert await content(blobs, _SHA) == _DATA


async def test_concurrent_sends_of_the_same_part_do_not_mix_their_bytes(blobs: BlobStore) -> None:
    ones, twos = b"1" * 3 * PIECE_BYTES, b"2" * 3 * PIECE_BYTES

    parts = await asyncio.gather(blobs.stage("up", 0, arriving(ones)), blobs.stage("up", 0, arriving(twos)))

    for staged_part, data in zip(parts, (ones, twos), strict=True):
        assert await content(blobs, await blobs.seal("up", [staged_part], len(data), digest_of(data))) == data


@pytest.mark.parametrize("pieces", [1, 2])
async def test_bytes_that_do_not_match_the_announced_digest_are_not_kept(blobs: BlobStore, pieces: int) -> None:
    step = -(-len(_DATA) // pieces)
    parts = [await blobs.stage("up", at, arriving(_DATA[at : at + step])) for at in range(0, len(_DATA), step)]

    for announced_digest in (digest_of(b"other"), _SHA.upper(), "../../escape"):
        with pytest.raises(ChecksumMismatch):
            await blobs.seal("up", parts, len(_DATA), announced_digest)

    assert await sealed_in(blobs) == []
    assert await blobs.seal("up", parts, len(_DATA), _SHA) == _SHA


@pytest.mark.parametrize(
    ("parts", "size"),
    [
        ([], 1),
        ([Part(0, 4, _SHA)], 5),
        ([Part(1, 4, _SHA)], 5),
        ([Part(0, 6, _SHA)], 5),
        ([Part(0, 2, _SHA), Part(3, 2, _SHA)], 5),
    ],
)
async def test_parts_with_a_gap_or_an_overhang_are_refused(blobs: BlobStore, parts: list[Part], size: int) -> None:
    with pytest.raises(ValueError):
        await blobs.seal("up", parts, size, None)


async def test_the_same_bytes_from_two_uploads_at_once_are_stored_once(blobs: BlobStore) -> None:
    whole_part = await blobs.stage("one", 0, arriving(_DATA))
    halves = [
        await blobs.stage("two", 0, arriving(_DATA[:1000])),
        await blobs.stage("two", 1000, arriving(_DATA[1000:])),
    ]

    sealed_digests = await asyncio.gather(
        *(blobs.seal("one", [whole_part], len(_DATA), _SHA) for _ in range(3)),
        *(blobs.seal("two", halves, len(_DATA), None) for _ in range(3)),
    )

    assert set(sealed_digests) == {_SHA}
    assert await sealed_in(blobs) == [_SHA]
    assert await content(blobs, _SHA) == _DATA


async def test_discarding_an_upload_keeps_its_sealed_blob(blobs: BlobStore) -> None:
    sealed_digest = await _store(blobs, _DATA, "one")
    await blobs.stage("two", 0, arriving(b"x"))

    assert await staged_uploads(blobs) == ["one", "two"]
    await blobs.discard("one")
    await blobs.discard("one")
    await blobs.discard("never")

    assert await staged_uploads(blobs) == ["two"]
    assert await content(blobs, sealed_digest) == _DATA


@pytest.mark.parametrize(
    ("start", "stop"),
    [
        (0, 1),
        (1, PIECE_BYTES + 2),
        (PIECE_BYTES, 2 * PIECE_BYTES),
        (len(_DATA) - 1, len(_DATA)),
        (5, 5),
        (len(_DATA), len(_DATA) + 9),
        (len(_DATA) - 2, len(_DATA) + 9),
    ],
)
async def test_any_stretch_of_a_blob_can_be_read(blobs: BlobStore, start: int, stop: int) -> None:
    sealed_digest = await _store(blobs, _DATA)

    pieces = [piece async for piece in blobs.read(sealed_digest, start, stop)]

    assert b"".join(pieces) == _DATA[start:stop]
    assert all(0 < len(piece) <= PIECE_BYTES for piece in pieces)


async def test_a_deleted_blob_is_missing_and_can_be_stored_again(blobs: BlobStore) -> None:
    sealed_digest = await _store(blobs, _DATA)

    await blobs.delete(sealed_digest)
    await blobs.delete(sealed_digest)

    assert await blobs.size(sealed_digest) is None
    assert await sealed_in(blobs) == []
    with pytest.raises(NotFound):
        await content(blobs, sealed_digest)
    assert await content(blobs, await _store(blobs, _DATA)) == _DATA


@pytest.mark.parametrize(
    "name",
    ["", "..", "../../etc/passwd", "/etc/passwd", "AB" * 32, "ab" * 31, "ab" * 32 + "\n", "ab/" * 21 + "c"],
)
async def test_a_digest_that_is_invalid_reaches_no_other_file(blobs: BlobStore, name: str) -> None:
    assert await blobs.size(name) is None
    with pytest.raises(NotFound):
        await content(blobs, name)
    await blobs.delete(name)


@pytest.mark.parametrize("upload", ["", ".", "..", "../up", "a/b", "a\\b", "a\0b", "up\n", "a" * 65, "é"])
async def test_an_upload_id_cannot_walk_out_of_the_staging_folder(blobs: BlobStore, upload: str) -> None:
    with pytest.raises(NotFound):
        await blobs.stage(upload, 0, arriving(b"x"))
    with pytest.raises(NotFound):
        await blobs.seal(upload, [], 0, None)
    with pytest.raises(NotFound):
        await blobs.discard(upload)
    with pytest.raises(NotFound):
        await blobs.seal("up", [Part(0, 1, "../../../x")], 1, None)


async def test_the_listings_have_the_time_of_the_last_change(blobs: BlobStore) -> None:
    earliest = clock.now() - 2 * clock.SECOND
    sealed_digest = await _store(blobs, b"x")
    latest = clock.now() + 2 * clock.SECOND

    assert [(upload, earliest <= at <= latest) async for upload, at in blobs.staged_uploads()] == [("up", True)]
    assert [(sha, earliest <= at <= latest) async for sha, at, _ in blobs.sealed_blobs()] == [(sealed_digest, True)]


async def test_an_empty_store_lists_nothing(blobs: BlobStore) -> None:
    assert await staged_uploads(blobs) == []
    assert await sealed_in(blobs) == []


async def test_the_check_leaves_nothing_behind(blobs: BlobStore) -> None:
    await blobs.check()

    assert await staged_uploads(blobs) == []
    assert await sealed_in(blobs) == []


async def test_a_signed_address_gives_the_blob_and_ranges_of_it(s3_blobs: BlobStore) -> None:
    sealed_digest = await _store(s3_blobs, _DATA)

    address = await s3_blobs.signed_url(sealed_digest, "file.zip", 60)

    assert address is not None
    async with httpx.AsyncClient(trust_env=False) as client:
        whole_answer = await client.get(address)
        some = await client.get(address, headers={"Range": "bytes=10-19"})
    assert whole_answer.content == _DATA
    assert whole_answer.headers["Content-Type"] == "application/octet-stream"
    assert whole_answer.headers["Content-Disposition"] == "attachment"
    assert (some.status_code, some.content) == (206, _DATA[10:20])


async def test_a_blob_can_be_read_as_a_file(blobs: BlobStore, tmp_path: Path) -> None:
    digest = await _store(blobs, _DATA)

    path = await blobs.file(digest, tmp_path)

    assert path.read_bytes() == _DATA
    with pytest.raises(NotFound):
        await blobs.file("0" * 64, tmp_path)


async def test_the_marker_is_made_once_and_replaced_on_request(blobs: BlobStore) -> None:
    assert await blobs.marker() is None

    results = await asyncio.gather(*(blobs.mark(b"%d" % number, is_new=True) for number in range(5)))

    assert results.count(True) == 1
    assert await blobs.marker() == b"%d" % results.index(True)
    assert await blobs.mark(b"next", is_new=False)
    assert await blobs.marker() == b"next"
    assert [blob async for blob in blobs.sealed_blobs()] == []
    assert [blob async for blob in blobs.staged_uploads()] == []


async def test_sealed_blobs_are_listed_by_digest_with_their_size(blobs: BlobStore) -> None:
    data = {digest_of(b"x" * size): size for size in range(1, 20)}
    for size in data.values():
        await _store(blobs, b"x" * size)

    sealed_blobs = [(blob.sha256, blob.size) async for blob in blobs.sealed_blobs()]

    assert sealed_blobs == sorted(data.items())


async def test_clearing_a_blob_store_removes_all_files_and_staged_uploads(blobs: BlobStore) -> None:
    await _store(blobs, _DATA)
    await blobs.stage("other", 0, arriving(b"begun"))

    await blobs.clear()
    await blobs.clear()

    assert await blobs.size(_SHA) is None
    assert not await sealed_in(blobs)
    assert not await staged_uploads(blobs)
    assert await _store(blobs, _DATA) == _SHA
