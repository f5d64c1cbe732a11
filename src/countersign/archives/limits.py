"""How much of an archive is read before it is refused."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from countersign.settings import Settings

Profile: TypeAlias = Literal["strict", "compatible"]
MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one archive with everything it holds. `ratio` is unpacked to packed bytes, counted once
    `ratio_after_bytes` have been unpacked."""

    entries: int = 250_000
    depth: int = 64
    name_bytes: int = 255
    path_bytes: int = 1024
    total_bytes: int = 200 << 30
    ratio: int = 200
    ratio_after_bytes: int = 64 << 20
    seconds: int = 3600
    profile: Profile = "strict"


def limits_of(settings: Settings) -> Limits:
    """The operator's limits."""
    return Limits(
        entries=settings.archive_entries,
        depth=settings.archive_depth,
        name_bytes=settings.archive_name_bytes,
        path_bytes=settings.archive_path_bytes,
        total_bytes=settings.archive_total_mib * MEBIBYTE,
        ratio=settings.archive_ratio,
        ratio_after_bytes=settings.archive_ratio_after_mib * MEBIBYTE,
        seconds=settings.archive_seconds,
        profile="compatible" if settings.archive_profile == "compatible" else "strict",
    )
