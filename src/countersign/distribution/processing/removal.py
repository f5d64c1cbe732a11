"""Removing a draft release: its files, their builds, and what was prepared from them."""

from dataclasses import dataclass, field

from countersign.distribution.builds import artifacts as files
from countersign.distribution.context import Store
from countersign.distribution.processing import artifacts, queries
from countersign.distribution.processing.queries import Build
from countersign.distribution.publishing import releases
from countersign.distribution.publishing.rules import OwnedRelease
from countersign.kernel.database.port import Reader, Transaction

OF_RELEASE = "SELECT artifact_id FROM build WHERE release_id = $1 ORDER BY artifact_id"


@dataclass(frozen=True, slots=True)
class Built:
    """The builds of a release, with the names of their chunks."""

    builds: list[tuple[Build, list[str]]] = field(default_factory=list[tuple[Build, list[str]]])


async def built(store: Store, release_id: str) -> Built:
    """The release's builds, read before anything is locked."""
    found: list[tuple[Build, list[str]]] = []
    for artifact_id in await _built(store.database, release_id):
        build = await queries.build(store.database, artifact_id)
        if build is not None:
            found.append((build, await artifacts.chunk_names(store, build)))
    return Built(found)


async def remove(transaction: Transaction, release: OwnedRelease, known: Built) -> None:
    """Remove the draft with everything it has.

    Raises:
        AlreadyPublished: it is no draft (any more).
        JustChanged: a file was processed at the same moment; the same call can be made again.
    """
    await releases.require_draft(transaction, release)
    for build, names in known.builds:
        await queries.drop_build(transaction, build, names)
    if await _built(transaction, release.id):
        raise releases.JustChanged("a file of the release was processed at the same moment")
    await files.remove_all(transaction, release.id)
    await releases.remove(transaction, release)


async def _built(reader: Reader, release_id: str) -> list[str]:
    return [artifact_id for (artifact_id,) in await reader.fetch(OF_RELEASE, release_id)]
