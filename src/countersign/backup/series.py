"""A folder of backups: each is called by its moment, so that one of a moment of choice is found, and old ones go."""

import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from countersign.backup import unfinished
from countersign.kernel import clock
from countersign.kernel.clock import SECOND, Instant
from countersign.kernel.errors import NotFound

AHEAD = 3600 * SECOND
"""How far the clock of the machine that made a backup may be ahead of this one's."""

_NAME = re.compile(r"countersign-(\d{8}T\d{6}\.\d{6}Z)\.backup")


class Kept(NamedTuple):
    """A backup of the series: its moment as its name says it, and the file."""

    moment: Instant
    path: Path


class Series(NamedTuple):
    """The backups of a folder, the oldest first; and what is called like one of a moment that has not been, or of
    none: nobody can say whether it is newer than another, so that it is neither restored nor removed."""

    folder: Path
    kept: list[Kept]
    passed_over: list[Path]


class NoBackup(NotFound):
    """There is no backup as early as that in the folder, or none at all."""

    code = "no_backup"
    resolution = "Name another folder, or a later moment; a backup is one of its moment, and nothing before it."


def name_of(moment: Instant) -> str:
    """What a backup of that moment is called: countersign-20261122T092623.123456Z.backup."""
    day, _, time = clock.rfc3339(moment).rstrip("Z").partition("T")
    whole = time.partition(".")[0].replace(":", "")
    return f"countersign-{day.replace('-', '')}T{whole}.{moment % SECOND:06d}Z.backup"


def found(folder: Path) -> Series:
    """What the folder holds; files with other names are no backups.

    Raises:
        Unavailable: the folder cannot be read.
    """
    with unfinished.refusals(folder):
        names = sorted((name[1], path) for path in folder.iterdir() if (name := _NAME.fullmatch(path.name)))
    latest = clock.now() + AHEAD
    series = Series(folder, [], [])
    for stamp, path in names:
        moment = _moment(stamp)
        if moment is None or moment > latest:
            series.passed_over.append(path)
        else:
            series.kept.append(Kept(moment, path))
    return series


def newest(series: Series, at: Instant | None) -> Kept:
    """The newest backup whose moment is not after `at` (None: the newest).

    Raises:
        NoBackup: there is none.
    """
    fitting = [each for each in series.kept if at is None or each.moment <= at]
    if not fitting:
        when = "" if at is None else f" of {clock.rfc3339(at)} or before"
        raise NoBackup(f"{series.folder} holds no backup{when}")
    return fitting[-1]


def expire(series: Series, keep: int, made: Path) -> list[Path]:
    """Remove all but the newest `keep`, of which the one just `made` is one; what was removed.

    Raises:
        Unavailable: one cannot be removed.
    """
    others = [each.path for each in series.kept if each.path.name != made.name]
    surplus = others[: max(len(others) - keep + 1, 0)]
    with unfinished.refusals(series.folder):
        for path in surplus:
            path.unlink(missing_ok=True)
    return surplus


def moment_of(text: str) -> Instant:
    """The moment that an RFC 3339 text names; with a part of a second as fine as a microsecond.

    Raises:
        ValueError: it names none, or has no time zone.
    """
    return clock.from_datetime(datetime.fromisoformat(text))


def _moment(stamp: str) -> Instant | None:
    try:
        return clock.from_datetime(datetime.strptime(f"{stamp[:-1]}+0000", "%Y%m%dT%H%M%S.%f%z"))
    except ValueError:
        return None
