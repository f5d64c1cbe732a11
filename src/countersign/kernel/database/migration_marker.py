"""The mark that a folder's databases are in PostgreSQL: nobody writes SQLite files there by accident from then on.

A move writes it before the target becomes visible. So whoever is killed in between leaves files that are not served,
and never two installations that both are. A folder that never had such files gets it once PostgreSQL was opened for
it: a command that lacks the setting would make an empty installation there, and back that one up.
"""

import os
from pathlib import Path

import msgspec

from countersign.kernel import clock, connection_urls, ids
from countersign.kernel.errors import Refused

FILE_NAME = "moved.json"
FILES = "*.sqlite"


class MigrationMarker(msgspec.Struct, frozen=True):
    """What the file says: the move's id, which the target bears as well, where to (without a password), since when
    (RFC 3339), and whether it is known to have ended."""

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
    """The folder's mark, or None.

    Raises:
        Moved: there is one, and it cannot be read.
    """
    try:
        return msgspec.json.decode((folder / FILE_NAME).read_bytes(), type=MigrationMarker)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise DatabaseMoved(
            f"{folder / FILE_NAME} cannot be read", resolution="Restore it, or ask who moved it."
        ) from error


def require_not_moved(folder: Path) -> None:
    """Insist that the folder's files are the ones in use.

    Raises:
        Moved: they are not.
    """
    if not (folder / FILE_NAME).exists():
        return
    mark = read_marker(folder)
    if mark is None:
        return
    back = f"To go back instead, see that nobody serves the other, then remove {folder / FILE_NAME}."
    if mark.is_complete:
        text = f"the databases of {folder} are in {mark.to} since {mark.at}"
        raise DatabaseMoved(
            text, resolution=f"Set COUNTERSIGN_DATABASE_URL to it. {back} What happened there is not here."
        )
    text = f"a move of these databases to {mark.to} began at {mark.at} and was cut off"
    raise DatabaseMoved(text, resolution=f"Run the same `countersign db migrate` again, which ends it. {back}")


def require_in_use(folder: Path, url: str) -> None:
    """Insist that the folder's own files, which an empty address means, are the ones in use.

    Raises:
        Moved: they are not.
    """
    if not url:
        require_not_moved(folder)


def mark_new_folder(folder: Path, url: str) -> None:
    """Mark a folder without files of its own as PostgreSQL's at the address, which was opened.

    Raises:
        OSError: the mark cannot be written.
    """
    if url and not (folder / FILE_NAME).exists() and not _has_files(folder):
        write_marker(
            folder,
            MigrationMarker(
                ids.new_uuid(), connection_urls.postgres_location(url), clock.rfc3339(clock.now()), is_complete=True
            ),
        )


def is_ambiguous(folder: Path) -> bool:
    """Whether there are SQLite files in the folder that no mark keeps from being written."""
    return _has_files(folder) and not (folder / FILE_NAME).exists()


def write_marker(folder: Path, mark: MigrationMarker) -> None:
    """Mark the folder; on the disk when this returns.

    Raises:
        OSError: it cannot be written.
    """
    # Several processes may begin in a new folder at once.
    path = folder / f"{FILE_NAME}.{os.getpid()}.unfinished"
    with path.open("wb") as file:
        file.write(msgspec.json.encode(mark))
        file.flush()
        os.fsync(file.fileno())
    path.rename(folder / FILE_NAME)
    _sync(folder)


def remove_marker(folder: Path) -> None:
    """Take the mark away again."""
    (folder / FILE_NAME).unlink(missing_ok=True)
    _sync(folder)


def _has_files(folder: Path) -> bool:
    return any(folder.glob(FILES))


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
