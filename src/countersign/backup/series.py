"""A folder of backups: each is called by its moment, so that one of a moment of choice is found, and old ones go."""

import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from countersign.backup import unfinished
from countersign.kernel import clock
from countersign.kernel.clock import SECOND, Instant
from countersign.kernel.errors import NotFound

_NAME = re.compile(r"countersign-(\d{8}T\d{6}\.\d{6}Z)\.backup")


class Kept(NamedTuple):
    """A backup of the series: its moment as its name says it, and the file."""

    moment: Instant
    path: Path


class NoBackup(NotFound):
    """There is no backup as early as that in the folder, or none at all."""

    code = "no_backup"
    resolution = "Name another folder, or a later moment; a backup is one of its moment, and nothing before it."


def name_of(moment: Instant) -> str:
    """What a backup of that moment is called: countersign-20261122T092623.123456Z.backup."""
    day, _, time = clock.rfc3339(moment).rstrip("Z").partition("T")
    whole = time.partition(".")[0].replace(":", "")
    return f"countersign-{day.replace('-', '')}T{whole}.{moment % SECOND:06d}Z.backup"


def kept(folder: Path) -> list[Kept]:
    """The backups of the folder, the oldest first; files with other names are none.

    Raises:
        Unavailable: the folder cannot be read.
    """
    with unfinished.refusals(folder):
        found = [(_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    return sorted(Kept(_moment(name[1]), path) for name, path in found if name)


def newest(folder: Path, at: Instant | None) -> Kept:
    """The newest backup whose moment is not after `at` (None: the newest).

    Raises:
        NoBackup: there is none.
        Unavailable: the folder cannot be read.
    """
    fitting = [each for each in kept(folder) if at is None or each.moment <= at]
    if not fitting:
        when = "" if at is None else f" of {clock.rfc3339(at)} or before"
        raise NoBackup(f"{folder} holds no backup{when}")
    return fitting[-1]


def expire(folder: Path, keep: int) -> list[Path]:
    """Remove all but the newest `keep`; what was removed.

    Raises:
        Unavailable: one cannot be removed.
    """
    surplus = [each.path for each in kept(folder)[:-keep]]
    with unfinished.refusals(folder):
        for path in surplus:
            path.unlink(missing_ok=True)
    return surplus


def moment_of(text: str) -> Instant:
    """The moment that an RFC 3339 text names; with a part of a second as fine as a microsecond.

    Raises:
        ValueError: it names none, or has no time zone.
    """
    return clock.from_datetime(datetime.fromisoformat(text))


def _moment(stamp: str) -> Instant:
    return clock.from_datetime(datetime.strptime(f"{stamp[:-1]}+0000", "%Y%m%dT%H%M%S.%f%z"))
