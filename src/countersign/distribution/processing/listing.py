"""archive.extract: what an artifact holds, entry by entry with digests, by reading every byte and writing none."""

from dataclasses import dataclass

import msgspec

from countersign.distribution.context import Store
from countersign.distribution.jobs.kinds import Outcome, Work
from countersign.distribution.processing import artifacts, reader
from countersign.distribution.processing.schemas import ExtractPayload, ListedEntry, Listing
from countersign.updates.ingest.records import At, Ended, Found

LISTED_BYTES = 1 << 20
"""Of entries in one result: results are kept, and shown many at a time."""


async def extract(store: Store, work: Work[ExtractPayload]) -> Outcome:
    """List the archive's entries.

    Raises:
        ArtifactGone: the artifact is not there (any more).
        ArchiveRefused, ArchiveUnknown: it breaks a rule of safe reading, or is no archive.
    """
    wanted = work.payload
    artifact = await artifacts.ready(store.database, wanted.artifact_id)
    path = await store.blobs.file(artifact.sha256, work.scratch)
    listing = Listing(artifact.id, 0, 0, 0, [], None)
    page = _Page(wanted.offset, wanted.offset + wanted.limit)
    async with reader.reading(store.settings, path, artifact.filename, chunks=False, plain=False) as reading:
        while not isinstance(record := await reading.next(), Ended):
            if isinstance(record, Found):
                _count(listing, record, page)
            elif isinstance(record, At):
                await work.progress(min(record.position / max(artifact.size, 1), 1.0))
    if listing.total > wanted.offset + len(listing.entries):
        listing.next_offset = wanted.offset + len(listing.entries)
    return Outcome(listing)


@dataclass
class _Page:
    """Which entries are listed, by number, and how many more bytes of them."""

    start: int
    stop: int
    room: int = LISTED_BYTES


def _count(listing: Listing, found: Found, page: _Page) -> None:
    if page.start <= listing.total < page.stop:
        entry = _listed(found)
        page.room -= len(msgspec.json.encode(entry))
        if page.room >= 0:
            listing.entries.append(entry)
        else:
            page.stop = listing.total
    listing.total += 1
    if found.kind == "file":
        listing.files += 1
        listing.size += found.size


def _listed(found: Found) -> ListedEntry:
    mode = f"{found.mode:04o}"
    if found.kind == "file":
        return ListedEntry(found.path, "file", mode, found.size, found.sha256.hex())
    return ListedEntry(found.path, found.kind, mode, target=found.target or None)
