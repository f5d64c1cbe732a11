"""A folder of backups whose names contain their times: lists the backups, finds one by time, and removes old ones."""

import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from countersign.backup import atomic_files
from countersign.kernel import clock
from countersign.kernel.clock import SECOND, Instant
from countersign.kernel.errors import NotFound

MAX_CLOCK_SKEW = 3600 * SECOND
"""How far the clock of the machine that created a backup may be ahead of the local clock."""

_NAME = re.compile(r"countersign-(\d{8}T\d{6}\.\d{6}Z)\.backup")


class BackupFile(NamedTuple):
    """A backup: the time in its name, and its path."""

    moment: Instant
    path: Path


class BackupFolder(NamedTuple):
    """The backups in a folder, oldest first.

    `skipped` are the files whose name contains an invalid time or a time in the future. The age of these files is
    unknown, so they are neither restored nor removed."""

    path: Path
    backups: list[BackupFile]
    skipped: list[Path]


class NoBackup(NotFound):
    """The folder has no backup, or no backup that is old enough."""

    code = "no_backup"
    resolution = "Name another folder or a later time. A backup restores only the state at its own time."


def backup_name(moment: Instant) -> str:
    """The file name of a backup with this time, for example countersign-20261122T092623.123456Z.backup."""
    day, _, time = clock.rfc3339(moment).rstrip("Z").partition("T")
    seconds = time.partition(".")[0].replace(":", "")
    return f"countersign-{day.replace('-', '')}T{seconds}.{moment % SECOND:06d}Z.backup"


def read_folder(folder: Path) -> BackupFolder:
    """List the backups in the folder. Files with other names are ignored.

    Raises:
        Unavailable: the folder cannot be read.
    """
    with atomic_files.disk_errors(folder):
        matches = [(_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    timestamped_paths = sorted((match[1], path) for match, path in matches if match is not None)
    max_timestamp = clock.now() + MAX_CLOCK_SKEW
    backup_folder = BackupFolder(folder, [], [])
    for timestamp, path in timestamped_paths:
        moment = _parse_timestamp(timestamp)
        if moment is None or moment > max_timestamp:
            backup_folder.skipped.append(path)
        else:
            backup_folder.backups.append(BackupFile(moment, path))
    return backup_folder


def newest(folder: BackupFolder, instant: Instant | None) -> BackupFile:
    """Return the newest backup whose time is not after `instant`, or the newest of all backups if `instant` is not
    given.

    Raises:
        NoBackup: the folder contains no such backup.
    """
    candidates = [backup for backup in folder.backups if instant is None or backup.moment <= instant]
    if not candidates:
        limit_text = "" if instant is None else f" of {clock.rfc3339(instant)} or before"
        raise NoBackup(f"{folder.path} contains no backup{limit_text}")
    return candidates[-1]


def remove_old(folder: BackupFolder, keep: int, created: Path) -> list[Path]:
    """Remove all but the newest `keep` backups, and return the removed ones. The backup `created` is always kept.

    Raises:
        Unavailable: a backup cannot be removed.
    """
    other_names = [backup.path for backup in folder.backups if backup.path.name != created.name]
    surplus = other_names[: max(len(other_names) - keep + 1, 0)]
    with atomic_files.disk_errors(folder.path):
        for path in surplus:
            path.unlink(missing_ok=True)
    return surplus


def parse_moment(text: str) -> Instant:
    """Parse a time in RFC 3339, with at most six digits for the fraction of a second.

    Raises:
        ValueError: the text is not valid, or has no time zone.
    """
    return clock.from_datetime(datetime.fromisoformat(text))


def _parse_timestamp(timestamp: str) -> Instant | None:
    try:
        return clock.from_datetime(datetime.strptime(f"{timestamp[:-1]}+0000", "%Y%m%dT%H%M%S.%f%z"))
    except ValueError:
        return None
