"""Resumable uploads: their table, their purposes, and the rules for file names and byte ranges.

The purpose of an upload says to which feature the file belongs. The subject is the artifact or the media item that gets
the file.
"""

import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from countersign.kernel import clock, ids
from countersign.kernel.blobs.port import Part
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import InvalidRequest, NotFound, Refused, invalid_member, invalid_parameter
from countersign.kernel.http.range_response import ByteRange, content_range
from countersign.kernel.http.response import Response
from countersign.kernel.security.secrets import digest, new_secret
from countersign.store.context import Store

PurposeName: TypeAlias = Literal["artifact", "media"]
SCOPES: dict[PurposeName, str] = {"artifact": "write:releases", "media": "write:products"}
"""The scope that an agent or program needs to continue its uploads."""

INSERT_UPLOAD = """
    INSERT INTO upload (id, token_hash, org_id, announced_by, purpose, subject_id, size, sha256, created_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
"""
# An address is valid while the caller who announced the upload may write for the organisation. `announced_by` is
# `person:` or `client:` with the id. If an agent or program acted for the person, the id of its registration or consent
# follows. The registration or consent must still have the scope ($4, a pattern).
BY_ADDRESS = """
    SELECT id, org_id, purpose, subject_id, size, sha256, finished_at
    FROM upload
    WHERE token_hash = $1 AND purpose = $2 AND expires_at > $3
      AND (EXISTS (
            SELECT 1 FROM membership m
            WHERE m.org_id = upload.org_id AND m.role <> 'viewer'
              AND substr(announced_by, 1, 7 + length(m.person_id)) = 'person:' || m.person_id
              AND (
                announced_by = 'person:' || m.person_id
                OR EXISTS (
                    SELECT 1 FROM registration r
                    WHERE r.person_id = m.person_id AND announced_by = 'person:' || m.person_id || ':' || r.id
                      AND r.status = 'claimed' AND ' ' || r.scopes || ' ' LIKE $4
                ) OR EXISTS (
                    SELECT 1 FROM consent c JOIN (
                        SELECT id, scopes FROM oauth_client UNION ALL SELECT id, scopes FROM dynamic_client
                    ) o ON o.id = c.client_id
                    WHERE c.person_id = m.person_id AND announced_by = 'person:' || m.person_id || ':' || c.id
                      AND ' ' || c.scopes || ' ' LIKE $4 AND ' ' || o.scopes || ' ' LIKE $4
                )
              )
        ) OR EXISTS (
            SELECT 1 FROM oauth_client c
            WHERE 'client:' || c.id = announced_by AND c.org_id = upload.org_id
        ))
"""
BY_ID = "SELECT id, org_id, purpose, subject_id, size, sha256, finished_at FROM upload WHERE id = $1"
# Locks the row, so that other transactions cannot finish, remove or extend the upload until this transaction ends.
TAKE_OPEN = "UPDATE upload SET finished_at = NULL WHERE id = $1 AND finished_at IS NULL"
FINISH = "UPDATE upload SET finished_at = $2 WHERE id = $1 AND finished_at IS NULL"
PARTS = "SELECT start_at, length, sha256 FROM upload_part WHERE upload_id = $1 ORDER BY start_at"
PUT_PART = """
    INSERT INTO upload_part (upload_id, start_at, length, sha256)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (upload_id, start_at) DO UPDATE SET length = excluded.length, sha256 = excluded.sha256
    WHERE excluded.length >= upload_part.length
"""
FORGET_PART = "DELETE FROM upload_part WHERE upload_id = $1 AND start_at = $2 AND sha256 = $3"
FORGET_PARTS = "DELETE FROM upload_part WHERE upload_id = $1"
FORGET_ALL_PARTS = """
    DELETE FROM upload_part WHERE upload_id IN (SELECT id FROM upload WHERE finished_at IS NULL)
"""
DELETE_UPLOAD = "DELETE FROM upload WHERE id = $1"
TAKE_OF_SUBJECT = "UPDATE upload SET purpose = purpose WHERE subject_id = $1"
OF_SUBJECT = "SELECT id FROM upload WHERE subject_id = $1"
EXPIRED = """
    SELECT id, org_id, purpose, subject_id, size, sha256, finished_at
    FROM upload
    WHERE expires_at <= $1
    ORDER BY expires_at
    LIMIT $2
"""


class UploadNotFound(NotFound):
    """The upload address is unknown or expired, or its file was announced again."""

    code = "upload_not_found"
    resolution = "Announce the file again to get a new upload address."


class Upload(NamedTuple):
    """An upload. `size` is in bytes, `sha256` is the announced digest, and `subject_id` is the id of the artifact or
    media that the upload belongs to."""

    id: str
    org_id: str
    purpose: PurposeName
    subject_id: str
    size: int
    sha256: str | None
    finished_at: Instant | None


class UploadAddress(NamedTuple):
    """The secret token of an upload address, and its expiry."""

    token: str
    expires_at: Instant


async def announce(
    transaction: Transaction,
    purpose: PurposeName,
    subject_id: str,
    *,
    org_id: str,
    announced_by: str,
    size: int,
    sha256: str | None,
    ttl_s: int,
) -> UploadAddress:
    """Create an upload of the subject's file. The token permits the upload for as long as the caller with the key
    `announced_by` may write for the organisation. Only the hash of the token is stored."""
    token = new_secret("cup")
    now = clock.now()
    expires_at = clock.later(now, seconds=ttl_s)
    row = (
        *(ids.new_uuid(), digest(token), org_id, announced_by, purpose, subject_id),
        *(size, sha256, now, expires_at),
    )
    await transaction.run(INSERT_UPLOAD, *row)
    return UploadAddress(token, expires_at)


async def upload_with_token(reader: Reader, purpose: PurposeName, token: str) -> Upload:
    """The upload with this address.

    Raises:
        UploadNotFound: no upload of this purpose has the address, or the upload has expired.
    """
    row = await reader.fetch_one(BY_ADDRESS, digest(token), purpose, clock.now(), f"% {SCOPES[purpose]} %")
    if row is None:
        raise UploadNotFound("no upload has this address")
    return Upload(*row)


async def reload(reader: Reader, upload: Upload) -> Upload:
    """The current state of the upload.

    Raises:
        UploadNotFound: the upload was removed.
    """
    row = await reader.fetch_one(BY_ID, upload.id)
    if row is None:
        raise UploadNotFound("the file was announced again, or the upload has expired")
    return Upload(*row)


async def parts(reader: Reader, upload_id: str) -> list[Part]:
    """Return the received parts, ordered by offset."""
    return [Part(*row) for row in await reader.fetch(PARTS, upload_id)]


async def add_part(transaction: Transaction, upload_id: str, part: Part) -> bool:
    """Record a staged part as received. Return False if the upload is finished or removed."""
    if not await transaction.run(TAKE_OPEN, upload_id):
        return False
    await transaction.run(PUT_PART, upload_id, part.offset, part.length, part.sha256)
    return True


async def forget_parts(transaction: Transaction, upload_id: str, parts_to_forget: list[Part]) -> None:
    """Delete the record of the parts if the upload is open."""
    if await transaction.run(TAKE_OPEN, upload_id):
        await transaction.run_many(FORGET_PART, [(upload_id, part.offset, part.sha256) for part in parts_to_forget])


async def forget_all_parts(transaction: Transaction) -> None:
    """Delete the recorded parts of all open uploads. Clients must send these files again, to the same addresses."""
    await transaction.run(FORGET_ALL_PARTS)


async def finish(transaction: Transaction, upload_id: str) -> bool:
    """Mark the upload as finished, and delete its parts. Return False if the upload is already finished or removed."""
    if not await transaction.run(FINISH, upload_id, clock.now()):
        return False
    await transaction.run(FORGET_PARTS, upload_id)
    return True


async def delete_unfinished(transaction: Transaction, upload_id: str) -> bool:
    """Remove an unfinished upload. Return False if the upload is finished or removed."""
    if not await transaction.run(TAKE_OPEN, upload_id):
        return False
    await _delete(transaction, upload_id)
    return True


async def delete_finished(transaction: Transaction, upload_id: str) -> None:
    """Remove a finished upload's row, so that its address no longer answers."""
    await _delete(transaction, upload_id)


async def delete_of_subject(transaction: Transaction, subject_id: str) -> None:
    """Remove all uploads of a subject; the collector removes their staged parts."""
    await transaction.run(TAKE_OF_SUBJECT, subject_id)
    for (upload_id,) in await transaction.fetch(OF_SUBJECT, subject_id):
        await _delete(transaction, upload_id)


async def expired(reader: Reader, limit: int) -> list[Upload]:
    """Expired uploads, the oldest first."""
    return [Upload(*row) for row in await reader.fetch(EXPIRED, clock.now(), limit)]


async def is_open(reader: Reader, upload_id: str) -> bool:
    """Whether an unfinished upload has this id."""
    row = await reader.fetch_one(BY_ID, upload_id)
    return row is not None and row[-1] is None


async def _delete(transaction: Transaction, upload_id: str) -> None:
    await transaction.run(FORGET_PARTS, upload_id)
    await transaction.run(DELETE_UPLOAD, upload_id)


@dataclass(frozen=True, slots=True)
class Content:
    """The stored blob of an upload. For an image, `width` and `height` are in pixels. For a cover, `sizes` contains
    smaller copies, and `color` is the mean colour of all pixels. `duration_ms` is the duration of a video."""

    sha256: str
    size: int
    media_type: str | None = None
    width: int | None = None
    height: int | None = None
    color: str | None = None
    sizes: tuple["Content", ...] = ()
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Purpose:
    """The handlers of a feature's uploads.

    content  checks or converts the uploaded blob, outside of a transaction, and returns the blob to store; if it
             raises a 422 error, the upload is removed
    keep     stores the reference to the blob, in the transaction that finishes the upload
    abandon  removes the announced row, in the transaction that removes the upload
    answer   makes the response of the finished upload (201)
    """

    name: PurposeName
    content: Callable[[Store, Upload, str], Awaitable[Content]]
    keep: Callable[[Transaction, Upload, Content], Awaitable[None]]
    abandon: Callable[[Transaction, Upload], Awaitable[None]]
    response: Callable[[Reader, Upload], Awaitable[Response]]


MAX_FILENAME_BYTES = 255
MAX_PARTS = 10_000
MAX_SHOWN = 100
"""The maximum number of ranges in Upload-Received. A GET request lists all ranges."""


class TooManyParts(Refused):
    """The file is sent in too many parts."""

    status = 409
    code = "too_many_parts"
    title = "Too many parts"
    resolution = "Announce the file again and send it in fewer, larger parts."


def check_filename(filename: str) -> None:
    """Check that the name is valid as a file name on common systems.

    Raises:
        InvalidRequest: the name is empty, over 255 bytes of UTF-8, "." or "..", or has a slash, a backslash or a
            control character (including line ends and bidirectional overrides).
    """
    if not 1 <= len(filename.encode("utf-8", "surrogatepass")) <= MAX_FILENAME_BYTES:
        raise invalid_member("/filename", f"must have 1 to {MAX_FILENAME_BYTES} bytes in UTF-8")
    if filename in (".", ".."):
        raise invalid_member("/filename", "must name a file")
    if any(letter in "/\\" or unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") for letter in filename):
        raise invalid_member("/filename", "must not contain a slash, a backslash or a control character")


def requested_span(range_header: str | None, length_header: str | None, size: int) -> ByteRange:
    """Return the byte range of a request's body, as stated in Content-Range. Without this header, the range is the
    whole file.

    Raises:
        InvalidRequest: Content-Range is malformed or does not fit the file, or Content-Length does not match.
    """
    span = ByteRange(0, size) if range_header is None else content_range(range_header, size)
    if length_header is not None and length_header != str(span.length):
        name = "Content-Length" if range_header is None else "Content-Range"
        raise invalid_parameter(name, f"the body has {length_header} bytes, but {span.length} are expected")
    return span


def received_ranges(parts: Iterable[Part]) -> list[ByteRange]:
    """The ranges that the parts cover, merged and in order."""
    spans: list[ByteRange] = []
    for part in sorted(parts, key=lambda part: part.offset):
        stop = part.offset + part.length
        if spans and part.offset <= spans[-1].stop:
            spans[-1] = ByteRange(spans[-1].start, max(spans[-1].stop, stop))
        else:
            spans.append(ByteRange(part.offset, stop))
    return spans


def is_complete(parts: Iterable[Part], size: int) -> bool:
    """Whether all bytes of the file were received."""
    return received_ranges(parts) == [ByteRange(0, size)]


def missing_ranges(parts: Iterable[Part], span: ByteRange) -> list[ByteRange]:
    """The missing ranges of the span, in order."""
    gaps: list[ByteRange] = []
    position = span.start
    for received_range in received_ranges(parts):
        if received_range.start > position:
            gaps.append(ByteRange(position, min(received_range.start, span.stop)))
        position = max(position, received_range.stop)
        if position >= span.stop:
            break
    if position < span.stop:
        gaps.append(ByteRange(position, span.stop))
    return [gap for gap in gaps if gap.start < gap.stop]


def received_pairs(parts: Iterable[Part]) -> list[tuple[int, int]]:
    """The received ranges, each as first and last byte (as in Content-Range)."""
    return [(span.start, span.stop - 1) for span in received_ranges(parts)]


def received_header(parts: Iterable[Part]) -> str:
    """The received ranges as `FIRST-LAST,FIRST-LAST,…`, at most 100; empty if there are none."""
    return ",".join(f"{first_byte}-{last_byte}" for first_byte, last_byte in received_pairs(parts)[:MAX_SHOWN])


def require_part_limit(parts: Sequence[Part]) -> None:
    """Require that the file has not reached the maximum number of parts.

    Raises:
        TooManyParts: 10,000 parts were received.
    """
    if len(parts) >= MAX_PARTS:
        raise TooManyParts(f"the file has {len(parts)} parts, and at most {MAX_PARTS} are allowed")


def wrong_length_error(is_long: bool, span: ByteRange) -> InvalidRequest:
    """The error for a body that is shorter or longer than its range, although the connection is intact."""
    length_text = "is longer" if is_long else "is shorter"
    return invalid_parameter("Content-Range", f"the body {length_text} than the {span.length} bytes of the range")
