"""The marker that a folder's databases are in PostgreSQL, so that no SQLite files are written there by mistake.

A migration to PostgreSQL writes the marker before the target becomes visible. If the migration is killed in between,
the files are not served, so that there are never two active installations. A folder without SQLite files gets the
marker when PostgreSQL is opened for it. Otherwise a command without the setting would create an empty installation in
the folder, and back up this empty installation.
"""

import os
from pathlib import Path

import msgspec

from countersign.file_sync import sync_folder
from countersign.kernel import clock, connection_urls, ids
from countersign.kernel.errors import Refused

FILE_NAME = "moved.json"
FILES = "*.sqlite"


class MigrationMarker(msgspec.Struct, frozen=True):
    """The content of the file: the id of the migration, which the target also contains; the target (without a
    password); the time of the start (RFC 3339); and whether the migration is complete."""

    id: str
    to: str
    at: str
    is_complete: bool


class DatabaseMoved(Refused):
    """The folder's SQLite files are not in use: the installation is on PostgreSQL."""

    status = 409
    code = "database_moved"
    title = "Database moved"


def read_marker(folder: Path) -> MigrationMarker | None:
    """Return the folder's marker, or None if it has none.

    Raises:
        DatabaseMoved: the marker cannot be read.
    """
    try:
        return msgspec.json.decode((folder / FILE_NAME).read_bytes(), type=MigrationMarker)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise DatabaseMoved(
            f"{folder / FILE_NAME} cannot be read", resolution="Restore it from a backup of the folder."
        ) from error


def require_not_moved(folder: Path) -> None:
    """Check that the folder's files are in use.

    Raises:
        DatabaseMoved: the databases were moved to PostgreSQL.
    """
    # Every write transaction calls this function, and os.path takes a quarter of pathlib's time.
    if not os.path.exists(os.path.join(folder, FILE_NAME)):
        return
    mark = read_marker(folder)
    if mark is None:
        return
    advice = f"To go back instead, stop every server of the other database, then remove {folder / FILE_NAME}."
    if mark.is_complete:
        text = f"the databases of {folder} are in {mark.to} since {mark.at}"
        raise DatabaseMoved(
            text, resolution=f"Set COUNTERSIGN_DATABASE_URL to it. {advice} These files do not have its later changes."
        )
    text = f"a migration of these databases to {mark.to} began at {mark.at} and was interrupted"
    raise DatabaseMoved(text, resolution=f"Run the same `countersign db migrate` again to complete it. {advice}")


def require_in_use(folder: Path, url: str) -> None:
    """Check that the folder's own files are in use, if the database URL is empty.

    Raises:
        DatabaseMoved: the URL is empty, and the databases were moved to PostgreSQL.
    """
    if not url:
        require_not_moved(folder)


def mark_new_folder(folder: Path, url: str) -> None:
    """Mark a folder without SQLite files as an installation on the PostgreSQL database that was opened.

    Raises:
        OSError: the marker cannot be written.
    """
    if url and not (folder / FILE_NAME).exists() and not _has_files(folder):
        write_marker(
            folder,
            MigrationMarker(
                ids.new_uuid(), connection_urls.postgres_location(url), clock.rfc3339(clock.now()), is_complete=True
            ),
        )


def is_ambiguous(folder: Path) -> bool:
    """Return whether the folder has SQLite files and no marker."""
    return _has_files(folder) and not (folder / FILE_NAME).exists()


def write_marker(folder: Path, mark: MigrationMarker) -> None:
    """Write the marker durably.

    Raises:
        OSError: the marker cannot be written.
    """
    # Several processes may start in a new folder at once, so each of them writes a file of its own.
    path = folder / f"{FILE_NAME}.{os.getpid()}.unfinished"
    with path.open("wb") as file:
        file.write(msgspec.json.encode(mark))
        file.flush()
        os.fsync(file.fileno())
    path.rename(folder / FILE_NAME)
    sync_folder(folder)


def remove_marker(folder: Path) -> None:
    """Remove the marker."""
    (folder / FILE_NAME).unlink(missing_ok=True)
    sync_folder(folder)


def _has_files(folder: Path) -> bool:
    return any(folder.glob(FILES))
