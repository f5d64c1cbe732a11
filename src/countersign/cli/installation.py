"""What a data directory and its settings hold as a whole: both services' databases, the blobs, the keys."""

from collections.abc import Callable
from pathlib import Path

from countersign.backup.creation import BlobSource
from countersign.backup.databases import PostgresDatabases, SqliteDatabases, file_name
from countersign.cli import output, progress
from countersign.kernel import clock
from countersign.kernel.blobs.open import open_blobs
from countersign.kernel.blobs.port import BlobStore
from countersign.records import app
from countersign.settings import Settings
from countersign.store import lifespan
from countersign.store.releases import blobs

SCHEMAS = (lifespan.SCHEMA, app.SCHEMA)
TOLD_EVERY_S = 5.0


def databases(settings: Settings) -> SqliteDatabases | PostgresDatabases | None:
    """The databases of the services; None where there is none, and it is not PostgreSQL."""
    if settings.database_url:
        return PostgresDatabases(settings.database_url, SCHEMAS)
    paths = files(settings)
    return SqliteDatabases(paths, Path(settings.data), settings.reserve_mib << 20) if paths else None


def files(settings: Settings) -> dict[str, Path]:
    """The SQLite files that are there, by schema."""
    data = Path(settings.data).absolute()
    return {schema: data / file_name(schema) for schema in SCHEMAS if (data / file_name(schema)).exists()}


def store(settings: Settings) -> BlobStore:
    """The blobs."""
    return open_blobs(
        settings.blobs_url, Path(settings.data) / lifespan.BLOBS_FOLDER, beneath=settings.blobs_beneath, reserve_bytes=0
    )


def referred(settings: Settings) -> BlobSource:
    """The blobs, and which of them the store refers to."""
    return BlobSource(store(settings), lifespan.SCHEMA, blobs.LIVE)


def teller() -> Callable[[str, int], None]:
    """Tells now and then on stderr what is being done and how far it is, in bytes."""
    told_s = clock.monotonic_s()

    def tell(what: str, done: int) -> None:
        nonlocal told_s
        now_s = clock.monotonic_s()
        if now_s - told_s >= TOLD_EVERY_S:
            told_s = now_s
            output.note(f"{what}: {progress.size(done)}")

    return tell
