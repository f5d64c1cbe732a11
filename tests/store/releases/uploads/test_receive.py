"""Received uploads: complete, in parts, cut off, repeated, concurrent, with too many, too few or wrong bytes."""

import asyncio
from collections.abc import AsyncIterator
from typing import NoReturn

import httpx
import pytest

from countersign.kernel import clock
from countersign.kernel.blobs.port import Part
from countersign.kernel.errors import Unavailable
from countersign.store.releases import receive_upload, uploads
from tests.store.files import Shop, pattern, put_and_cut, sha256_of

DATA = pattern(1000)


async def list_staged_uploads(shop: Shop) -> list[str]:
    """Return the uploads that have staged bytes."""
    return [blob.upload async for blob in shop.store.blobs.staged_uploads()]


async def list_sealed_digests(shop: Shop) -> list[str]:
    """Return the digests of all sealed blobs."""
    return [digest async for digest, *_ in shop.store.blobs.sealed_blobs()]


async def count(shop: Shop, statement: str) -> int:
    """Return the number that a statement returns."""
    row = await shop.store.database.fetch_one(statement)
    assert row is not None
    return row[0]


async def test_a_whole_body_becomes_a_ready_artifact(shop: Shop) -> None:
    address = await shop.address(1000, platform="linux", sha256=sha256_of(DATA).upper())

    answer = await shop.put(address, DATA)

    assert answer.status_code == 201
    assert {**answer.json(), "id": ""} == {
        "id": "",
        "filename": "game.zip",
        "size": 1000,
        "sha256": sha256_of(DATA),
        "platform": "linux",
        "status": "ready",
    }
    assert await list_staged_uploads(shop) == []
    assert await list_sealed_digests(shop) == [sha256_of(DATA)]


async def test_parts_may_come_in_any_order(shop: Shop) -> None:
    address = await shop.address(1000)

    third_answer = await shop.put(address, DATA[700:], "bytes 700-999/1000")
    first_answer = await shop.put(address, DATA[:300], "bytes 0-299/1000")

    assert (third_answer.status_code, third_answer.headers["Upload-Received"]) == (204, "700-999")
    assert (first_answer.status_code, first_answer.headers["Upload-Received"]) == (204, "0-299,700-999")
    assert await shop.received_ranges(address) == [[0, 299], [700, 999]]
    second_answer = await shop.put(address, DATA[300:700], "bytes 300-699/1000")
    assert second_answer.status_code == 201
    assert second_answer.json()["sha256"] == sha256_of(DATA)


async def test_parts_that_overlap_make_the_same_file(shop: Shop) -> None:
    address = await shop.address(1000)

    await shop.put(address, DATA[100:500], "bytes 100-499/1000")
    await shop.put(address, DATA[100:200], "bytes 100-199/1000")
    await shop.put(address, DATA[400:900], "bytes 400-899/1000")
    assert await shop.received_ranges(address) == [[100, 899]]
    answer = await shop.put(address, DATA)

    assert answer.json()["sha256"] == sha256_of(DATA)


async def test_a_cut_connection_loses_nothing_that_arrived(shop: Shop) -> None:
    address = await shop.address(1000)

    assert await put_and_cut(shop.store, address, [DATA[:123], DATA[123:400]], None, 1000) == 0
    assert await shop.received_ranges(address) == [[0, 399]]
    await put_and_cut(shop.store, address, [DATA[350:600]], "bytes 350-999/1000", 650)
    assert await shop.received_ranges(address) == [[0, 599]]
    answer = await shop.put(address, DATA[600:], "bytes 600-999/1000")

    assert answer.status_code == 201
    assert answer.json()["sha256"] == sha256_of(DATA)


async def test_a_body_interrupted_before_its_first_byte_leaves_no_part(shop: Shop) -> None:
    address = await shop.address(1000)

    await put_and_cut(shop.store, address, [], None, 1000)

    assert await shop.received_ranges(address) == []
    assert await list_staged_uploads(shop) == []


async def send_in_chunks(data: bytes) -> AsyncIterator[bytes]:
    """Yield a body without a declared length."""
    for start in range(0, len(data), 100):
        yield data[start : start + 100]


@pytest.mark.parametrize(("content_range", "sent_bytes"), [(None, 999), (None, 1001), ("bytes 500-599/1000", 99)])
async def test_a_body_shorter_or_longer_than_announced_is_not_stored(
    shop: Shop, content_range: str | None, sent_bytes: int
) -> None:
    address = await shop.address(1000)
    await shop.put(address, DATA[:100], "bytes 0-99/1000")
    headers = {} if content_range is None else {"Content-Range": content_range}

    answer = await shop.world.http.put(address, content=send_in_chunks((DATA * 2)[:sent_bytes]), headers=headers)

    assert answer.status_code == 400
    assert answer.json()["code"] == "invalid_request"
    assert await shop.received_ranges(address) == [[0, 99]]


@pytest.mark.parametrize(
    "content_range",
    ["", "bytes 0-9", "bytes 0-9/*", "bytes 0-9/1001", "bytes 9-0/1000", "bytes 991-1000/1000", "0-9/1000"],
)
async def test_a_content_range_that_does_not_fit_is_named(shop: Shop, content_range: str) -> None:
    address = await shop.address(1000)

    answer = await shop.put(address, DATA[:10], content_range)

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["parameter"] == "Content-Range"
    assert await shop.received_ranges(address) == []


async def test_a_content_length_other_than_the_range_is_refused_unread(shop: Shop) -> None:
    address = await shop.address(1000)

    short = await shop.put(address, DATA[:10])
    long = await shop.put(address, DATA[:10], "bytes 0-8/1000")

    assert (short.status_code, long.status_code) == (400, 400)
    assert short.json()["errors"][0]["parameter"] == "Content-Length"
    assert await list_staged_uploads(shop) == []


async def test_an_upload_address_that_was_never_issued_or_has_expired_is_unknown(shop: Shop) -> None:
    address = await shop.address(1000)
    async with shop.store.database.transaction() as transaction:
        await transaction.run("UPDATE upload SET expires_at = $1", clock.now())
    unknown = address[:-1] + ("a" if address[-1] != "a" else "b")

    for url in (address, unknown, address.replace("/artifacts/", "/media/")):
        put, get = await shop.put(url, DATA), await shop.world.http.get(url)
        assert (put.status_code, put.json()["code"]) == (404, "upload_not_found")
        assert (get.status_code, get.json()["code"]) == (404, "upload_not_found")


async def test_a_finished_upload_answers_again_without_reading(shop: Shop) -> None:
    address = await shop.address(1000)
    first_answer = await shop.put(address, DATA)

    second_answer = await shop.put(address, b"x" * 1000)

    assert (second_answer.status_code, second_answer.content) == (201, first_answer.content)
    assert await shop.received_ranges(address) == [[0, 999]]
    assert await list_sealed_digests(shop) == [sha256_of(DATA)]


async def test_bytes_other_than_announced_leave_nothing_behind(shop: Shop) -> None:
    address = await shop.address(1000, sha256="0" * 64)
    await shop.put(address, DATA[:500], "bytes 0-499/1000")

    answer = await shop.put(address, DATA[500:], "bytes 500-999/1000")

    assert (answer.status_code, answer.json()["code"]) == (422, "checksum_mismatch")
    assert (await list_staged_uploads(shop), await list_sealed_digests(shop)) == ([], [])
    for table in ("upload", "upload_part", "artifact", "blob"):
        assert await count(shop, f"SELECT count(*) FROM {table}") == 0
    assert (await shop.put(address, DATA)).json()["code"] == "upload_not_found"


async def test_concurrent_completions_get_the_same_answer(shop: Shop) -> None:
    address = await shop.address(1000)

    answers = await asyncio.gather(*(shop.put(address, DATA) for _ in range(6)))

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert await count(shop, "SELECT count(*) FROM blob") == 1
    assert await list_staged_uploads(shop) == [] or not await uploads.is_open(
        shop.store.database, (await list_staged_uploads(shop))[0]
    )


class EmptyTurns(dict[str, asyncio.Lock]):
    """A view of other processes' turns that is always empty."""

    def setdefault(self, key: str, default: asyncio.Lock) -> asyncio.Lock:
        """Give everyone a turn at the same time."""
        return default


async def test_nodes_that_complete_at_once_all_get_the_same_answer(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive_upload, "_locks", EmptyTurns())
    address = await shop.address(1000)

    answers = await asyncio.gather(*(shop.put(address, DATA) for _ in range(6)))

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert await count(shop, "SELECT count(*) FROM upload WHERE finished_at IS NOT NULL") == 1


@pytest.mark.parametrize("step", ["stage", "seal"])
async def test_a_node_whose_files_another_node_removes_as_it_finishes_gives_the_same_answer(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(receive_upload, "_locks", EmptyTurns())
    address = await shop.address(1000)
    store = shop.world.store.blobs
    original, answers = getattr(store, step), list[httpx.Response]()

    async def overtaken(*_: object) -> NoReturn:
        monkeypatch.setattr(store, step, original)
        answers.append(await shop.put(address, DATA))
        raise Unavailable("The folder of the blobs cannot be used: No such file or directory.")

    monkeypatch.setattr(store, step, overtaken)
    answers.append(await shop.put(address, DATA))

    assert [answer.status_code for answer in answers] == [201, 201], answers[-1].text
    assert answers[0].content == answers[1].content


async def test_an_upload_to_an_unavailable_blob_store_is_answered_503(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def seal_unavailable(*_: object) -> NoReturn:
        raise Unavailable("The bucket is away.")

    address = await shop.address(1000)
    monkeypatch.setattr(shop.world.store.blobs, "seal", seal_unavailable)

    assert (await shop.put(address, DATA)).status_code == 503


async def test_a_shorter_part_never_replaces_a_longer_part(shop: Shop) -> None:
    address = await shop.address(1000)
    upload = await uploads.upload_with_token(shop.store.database, "artifact", address.rsplit("/", 1)[1])

    for length in (10, 5, 20, 15):
        async with shop.store.database.transaction() as transaction:
            assert await uploads.add_part(transaction, upload.id, Part(0, length, f"{length:064x}"))

    assert await uploads.parts(shop.store.database, upload.id) == [Part(0, 20, f"{20:064x}")]


async def test_a_blob_matches_its_digest_when_clients_send_different_bytes_at_once(shop: Shop) -> None:
    address = await shop.address(1000)
    other_data = pattern(1000, seed=2)

    async def send(data: bytes, at: int) -> httpx.Response:
        return await shop.put(address, data[at : at + 250], f"bytes {at}-{at + 249}/1000")

    await asyncio.gather(*(send(data, at) for at in (0, 250, 500, 750) for data in (DATA, other_data)))
    finished_answer = await shop.put(address, DATA)

    assert finished_answer.status_code == 201
    digest = finished_answer.json()["sha256"]
    stored_bytes = b"".join([piece async for piece in shop.store.blobs.read(digest, 0, 2000)])
    assert sha256_of(stored_bytes) == digest
    assert len(stored_bytes) == 1000


async def test_a_file_announced_again_gets_a_new_address_and_starts_again(shop: Shop) -> None:
    first_announcement = (await shop.announce(1000)).json()
    await shop.put(first_announcement["upload_url"], DATA[:500], "bytes 0-499/1000")

    second_announcement = (await shop.announce(900, platform="macos")).json()

    assert second_announcement["artifact_id"] == first_announcement["artifact_id"]
    assert (await shop.put(first_announcement["upload_url"], DATA)).status_code == 404
    assert await shop.received_ranges(second_announcement["upload_url"]) == []
    finished_answer = await shop.put(second_announcement["upload_url"], DATA[:900])
    assert (finished_answer.json()["size"], finished_answer.json()["platform"]) == (900, "macos")


async def test_the_token_is_not_in_the_database(shop: Shop) -> None:
    address = await shop.address(1000)

    rows = await shop.store.database.fetch("SELECT token_hash FROM upload")

    assert address.rsplit("/", 1)[1].encode() not in bytes(rows[0][0])
