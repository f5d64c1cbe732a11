"""archive.extract: what an artifact holds, entry by entry with digests, by reading every byte and writing none."""

from countersign.distribution.context import Store
from countersign.distribution.jobs.kinds import Outcome, Work
from countersign.distribution.processing import artifacts, reader
from countersign.distribution.processing.schemas import ExtractPayload, ListedEntry, Listing
from countersign.updates.ingest.records import At, Ended, Found


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
    async with reader.reading(store.settings, path, artifact.filename, chunks=False, plain=False) as reading:
        while not isinstance(record := await reading.next(), Ended):
            if isinstance(record, Found):
                _count(listing, record, wanted)
            elif isinstance(record, At):
                await work.progress(min(record.position / max(artifact.size, 1), 1.0))
    if listing.total > wanted.offset + len(listing.entries):
        listing.next_offset = wanted.offset + len(listing.entries)
    return Outcome(listing)


def _count(listing: Listing, found: Found, wanted: ExtractPayload) -> None:
    if wanted.offset <= listing.total < wanted.offset + wanted.limit:
        listing.entries.append(_listed(found))
    listing.total += 1
    if found.kind == "file":
        listing.files += 1
        listing.size += found.size


def _listed(found: Found) -> ListedEntry:
    mode = f"{found.mode:04o}"
    if found.kind == "file":
        return ListedEntry(found.path, "file", mode, found.size, found.sha256.hex())
    return ListedEntry(found.path, found.kind, mode, target=found.target or None)
