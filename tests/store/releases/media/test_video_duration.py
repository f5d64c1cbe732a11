"""The duration of a video: read from the file by a confined process, and shown with the product's media."""

import struct
from itertools import pairwise
from pathlib import Path

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.store.demo.catalog import products
from countersign.store.releases import media
from countersign.store.releases.processing import video_duration
from countersign.store.releases.processing.sandboxed_process import run_process
from countersign.store.releases.processing.video_duration import (
    MAX_DURATION_MS,
    MAX_READS,
    DurationOrder,
    RangeRequest,
    VideoFile,
    VideoType,
    decode_record,
    duration_ms,
)
from tests.store.files import Shop

TRAILER = next(product.read_trailer() for product in products() if product.trailer is not None)
"""A film of the demonstration, which an encoder made: 9584 milliseconds."""


def box(name: bytes, content: bytes = b"", *, is_long: bool = False) -> bytes:
    """Return a box of an MP4 file."""
    if is_long:
        return struct.pack(">I4sQ", 1, name, len(content) + 16) + content
    return struct.pack(">I4s", len(content) + 8, name) + content


def movie_header(timescale: int, duration: int, *, version: int = 0) -> bytes:
    """Return the header of a movie. The fields after the duration are zeros."""
    form = ">B3xQQIQ80x" if version else ">B3xIIII80x"
    return box(b"mvhd", struct.pack(form, version, 0, 0, timescale, duration))


FILE_TYPE = box(b"ftyp", b"mp42\0\0\0\0mp42isom")
PICTURES = box(b"mdat", bytes(300_000))


def mp4(header: bytes, *more_boxes: bytes) -> bytes:
    """Return a film whose movie box is at the end, as cameras write it."""
    return FILE_TYPE + box(b"free") + PICTURES + box(b"moov", header + b"".join(more_boxes))


def element(name: int, content: bytes) -> bytes:
    """Return an element of a WebM file, with a size of eight bytes."""
    return name.to_bytes((name.bit_length() + 7) // 8, "big") + (len(content) | 1 << 56).to_bytes(8, "big") + content


def webm(*info: bytes) -> bytes:
    """Return a film with these elements of the segment's information."""
    head = element(0x1A45DFA3, element(0x4282, b"webm"))
    return head + element(0x18538067, element(0xEC, bytes(90)) + element(0x1549A966, b"".join(info)))


def scale(nanoseconds: int) -> bytes:
    """Return the length of one tick."""
    return element(0x2AD7B1, nanoseconds.to_bytes(4, "big"))


def ticks(number: float) -> bytes:
    """Return the duration of a WebM file, in ticks."""
    return element(0x4489, struct.pack(">d", number))


def read(film: bytes, kind: VideoType) -> int | None:
    """Read the duration of the film in this process."""
    return duration_ms(VideoFile(len(film), lambda start, length: film[start : start + length]), kind)


@pytest.mark.parametrize(
    ("film", "expected"),
    [
        (mp4(movie_header(600, 50_400)), 84_000),
        (mp4(movie_header(90_000, 1_234_567_890_000, version=1)), None),
        (mp4(movie_header(90_000, 90_000 * 3600, version=1)), 3_600_000),
        (FILE_TYPE + box(b"moov", box(b"udta") + movie_header(1000, 1500), is_long=True) + PICTURES, 1500),
        (mp4(movie_header(1000, 0), box(b"mvex", box(b"mehd", struct.pack(">II", 0, 7250)))), 7250),
        (mp4(movie_header(1000, 0), box(b"mvex", box(b"mehd", struct.pack(">IQ", 1 << 24, 7250)))), 7250),
        (mp4(movie_header(1000, 0)), None),
        (mp4(movie_header(0, 1000)), None),
        (mp4(movie_header(1000, 0xFFFFFFFF)), None),
        (FILE_TYPE + PICTURES, None),
        (FILE_TYPE + box(b"moov", movie_header(600, 50_400))[:40], None),
        (b"", None),
    ],
    ids=(
        *("at the end", "too long", "64 bit", "long box", "fragments", "64-bit fragments", "empty", "no timescale"),
        *("unknown", "no movie", "cut", "no bytes"),
    ),
)
def test_the_duration_of_an_mp4_is_read_from_its_movie_header(film: bytes, expected: int | None) -> None:
    assert read(film, "video/mp4") == expected


@pytest.mark.parametrize(
    ("film", "expected"),
    [
        (TRAILER, 9584),
        (webm(scale(1_000_000), ticks(84_000)), 84_000),
        (webm(ticks(84_000)), 84_000),
        (webm(ticks(8_400), scale(10_000_000)), 84_000),
        (webm(element(0x4489, struct.pack(">f", 1500))), 1500),
        (webm(scale(1_000_000)), None),
        (webm(ticks(float("nan"))), None),
        (webm(ticks(float("inf"))), None),
        (webm(ticks(-5)), None),
        (webm(ticks(1e15)), None),
        (TRAILER[:200], None),
        (b"\0" * 64, None),
    ],
    ids=(
        *("film", "milliseconds", "no scale", "scale last", "single precision", "no duration", "nan", "infinite"),
        *("negative", "too long", "cut", "zeros"),
    ),
)
def test_the_duration_of_a_webm_is_read_from_its_segment(film: bytes, expected: int | None) -> None:
    assert read(film, "video/webm") == expected


def test_a_segment_of_unknown_size_is_read_to_the_end_of_the_file() -> None:
    film = element(0x1A45DFA3, b"") + b"\x18\x53\x80\x67\x01" + b"\xff" * 7 + element(0x1549A966, ticks(500))

    assert read(film, "video/webm") == 500


def test_only_a_few_ranges_of_a_hostile_file_are_read() -> None:
    film = box(b"free", bytes(5000)) * 500 + box(b"moov", movie_header(1000, 1000))
    starts: list[int] = []

    def fetch(start: int, length: int) -> bytes:
        starts.append(start)
        return film[start : start + length]

    assert duration_ms(VideoFile(len(film), fetch), "video/mp4") is None
    assert len(starts) == MAX_READS
    assert all(earlier < later for earlier, later in pairwise(starts))


@given(st.data(), st.sampled_from(["video/mp4", "video/webm"]))
def test_a_damaged_file_never_fails(data: st.DataObject, kind: VideoType) -> None:
    film = bytearray(FILE_TYPE + box(b"moov", movie_header(600, 50_400)) if kind == "video/mp4" else TRAILER[:400])
    for position, value in data.draw(
        st.lists(st.tuples(st.integers(0, len(film) - 1), st.integers(0, 255)), max_size=9)
    ):
        film[position] = value
    stop = data.draw(st.integers(0, len(film)))

    duration_ms = read(bytes(film[:stop]), kind)

    assert duration_ms is None or 1 <= duration_ms <= MAX_DURATION_MS


async def upload_film(shop: Shop, film: bytes) -> httpx.Response:
    """Announce and upload a film."""
    body = {"kind": "video", "filename": "film.mp4", "size": len(film), "alt": "A trailer"}
    answer = await shop.world.call("POST", f"/products/{shop.product_id}/media", shop.token, json=body)
    return await shop.put(answer.json()["upload_url"], film)


@pytest.mark.parametrize(
    ("film", "expected"),
    [(mp4(movie_header(600, 50_430)), 84.05), (TRAILER, 9.584), (FILE_TYPE + PICTURES, None)],
    ids=("mp4", "webm", "none"),
)
async def test_an_uploaded_video_has_its_duration(shop: Shop, film: bytes, expected: float | None) -> None:
    answer = await upload_film(shop, film)

    assert answer.status_code == 201, answer.text
    assert answer.json()["duration"] == expected
    detail = (await shop.world.call("GET", f"/products/{shop.product_id}")).json()
    assert [media_file["duration"] for media_file in detail["media"]] == [expected]


async def test_a_video_is_accepted_if_the_process_that_reads_it_fails(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(media, "PROGRAM", "__hello__")

    answer = await upload_film(shop, TRAILER)

    assert (answer.status_code, answer.json()["duration"]) == (201, None)


async def test_a_video_is_accepted_where_the_process_cannot_be_started(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_to_start(program: str) -> None:
        raise BlockingIOError(f"{program}: the system has no process left")

    monkeypatch.setattr(media, "run_process", refuse_to_start)

    answer = await upload_film(shop, TRAILER)

    assert (answer.status_code, answer.json()["duration"]) == (201, None)


async def test_the_process_is_confined_before_reading_the_file() -> None:
    async with run_process(video_duration.PROGRAM) as process:
        await process.send(msgspec.msgpack.encode(DurationOrder("video/webm", len(TRAILER))))
        record = decode_record(await process.receive())
        assert isinstance(record, RangeRequest)
        status = Path(f"/proc/{process._process.pid}/status").read_text().splitlines()

    assert "NoNewPrivs:\t1" in status
