"""SQL of uploads: their addresses, and the parts that have arrived.

An upload's row stands from the announcement until it expires, or until its file is announced again. A part's bytes
are durable before its row; rows may overlap, and what has arrived is their union.
"""

from typing import Literal, NamedTuple, TypeAlias

from countersign.kernel import clock, ids
from countersign.kernel.blobs.port import Part
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import NotFound
from countersign.kernel.security.secrets import digest, new_secret

PurposeName: TypeAlias = Literal["artifact", "media"]
SCOPES: dict[PurposeName, str] = {"artifact": "write:releases", "media": "write:products"}
"""What an agent or a program has to hold for its uploads to go on."""

INSERT_UPLOAD = """
    INSERT INTO upload (id, token_hash, org_id, announced_by, purpose, subject_id, size, sha256, created_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
"""
# An address works as long as whoever announced it may still write for the organisation. `person:` and `client:` are
# followed by the id; after a person's comes the registration or consent, if an agent or a program acted for them, which
# has to hold the scope still ($4, a pattern).
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
# Takes the row: until the transaction ends, nobody else can finish, drop or add to the upload.
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
FORGET_EVERY_PART = """
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
    """The upload address was never given, has expired, or its file was announced again."""

    code = "upload_not_found"
    resolution = "Announce the file again to get a fresh upload address."


class Upload(NamedTuple):
    """A file on its way: `size` in bytes, `sha256` as it was announced, `subject_id` what it is a file of."""

    id: str
    org_id: str
    purpose: PurposeName
    subject_id: str
    size: int
    sha256: str | None
    finished_at: Instant | None


class Address(NamedTuple):
    """The secret that an upload address ends in, and when that expires."""

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
) -> Address:
    """A fresh upload of the subject's file. Whoever knows the token may send it, while `announced_by` (a caller's
    key) may write for the organisation; only a hash of it is kept."""
    token = new_secret("cup")
    now = clock.now()
    expires_at = clock.later(now, seconds=ttl_s)
    row = (
        *(ids.new_uuid(), digest(token), org_id, announced_by, purpose, subject_id),
        *(size, sha256, now, expires_at),
    )
    await transaction.run(INSERT_UPLOAD, *row)
    return Address(token, expires_at)


async def by_token(reader: Reader, purpose: PurposeName, token: str) -> Upload:
    """The upload with this address.

    Raises:
        UploadNotFound: none for this purpose has it, or it has expired.
    """
    row = await reader.fetch_one(BY_ADDRESS, digest(token), purpose, clock.now(), f"% {SCOPES[purpose]} %")
    if row is None:
        raise UploadNotFound("no upload has this address any more")
    return Upload(*row)


async def again(reader: Reader, upload: Upload) -> Upload:
    """The upload as it is now.

    Raises:
        UploadNotFound: it is gone.
    """
    row = await reader.fetch_one(BY_ID, upload.id)
    if row is None:
        raise UploadNotFound("the file was announced again, or the upload has expired")
    return Upload(*row)


async def parts(reader: Reader, upload_id: str) -> list[Part]:
    """What has arrived, by where it begins."""
    return [Part(*row) for row in await reader.fetch(PARTS, upload_id)]


async def add_part(transaction: Transaction, upload_id: str, part: Part) -> bool:
    """Count a staged part as arrived; False when the upload is finished or gone."""
    if not await transaction.run(TAKE_OPEN, upload_id):
        return False
    await transaction.run(PUT_PART, upload_id, part.offset, part.length, part.sha256)
    return True


async def forget_parts(transaction: Transaction, upload_id: str, unwanted: list[Part]) -> None:
    """Count the parts as not arrived, where the upload is still open."""
    if await transaction.run(TAKE_OPEN, upload_id):
        await transaction.run_many(FORGET_PART, [(upload_id, part.offset, part.sha256) for part in unwanted])


async def forget_every_part(transaction: Transaction) -> None:
    """Count nothing of any open upload as arrived: whoever sends it begins anew, at the same address."""
    await transaction.run(FORGET_EVERY_PART)


async def finish(transaction: Transaction, upload_id: str) -> bool:
    """Mark the upload finished and forget its parts; False when somebody else did, or it is gone."""
    if not await transaction.run(FINISH, upload_id, clock.now()):
        return False
    await transaction.run(FORGET_PARTS, upload_id)
    return True


async def drop_open(transaction: Transaction, upload_id: str) -> bool:
    """Remove an upload that is not finished; False when it is, or is gone."""
    if not await transaction.run(TAKE_OPEN, upload_id):
        return False
    await _delete(transaction, upload_id)
    return True


async def drop_finished(transaction: Transaction, upload_id: str) -> None:
    """Remove a finished upload's row, so that its address no longer answers."""
    await _delete(transaction, upload_id)


async def drop_of_subject(transaction: Transaction, subject_id: str) -> None:
    """Remove every upload of a subject; the collector removes what was staged for them."""
    await transaction.run(TAKE_OF_SUBJECT, subject_id)
    for (upload_id,) in await transaction.fetch(OF_SUBJECT, subject_id):
        await _delete(transaction, upload_id)


async def expired(reader: Reader, limit: int) -> list[Upload]:
    """Uploads whose time is over, the oldest first."""
    return [Upload(*row) for row in await reader.fetch(EXPIRED, clock.now(), limit)]


async def is_open(reader: Reader, upload_id: str) -> bool:
    """Whether there is an upload of this id that is not finished."""
    row = await reader.fetch_one(BY_ID, upload_id)
    return row is not None and row[-1] is None


async def _delete(transaction: Transaction, upload_id: str) -> None:
    await transaction.run(FORGET_PARTS, upload_id)
    await transaction.run(DELETE_UPLOAD, upload_id)
