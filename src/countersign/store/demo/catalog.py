"""The products of the demonstration: their texts, from the TOML files beside this module."""

import re
import tomllib
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.store.catalog.schemas import Access, ChannelName, Kind, Platform

FILES = tuple(f"{kind}_{part + 1}.toml" for kind, n in (("games", 4), ("apps", 3), ("tools", 3)) for part in range(n))
DAYS_BEFORE_RELEASE = 5
RELEASE_HOURS = 10
"""The hour of the day (UTC) by which the releases of a day are published."""
_SLUG = re.compile(r"[^a-z0-9]+")


class DemoRelease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A release on a day of the past; `withdrawn` is the reason why it was withdrawn. A file has either the date or
    `days_ago`, the number of days before the current one, so that some releases are always of the last days."""

    version: str
    channel: ChannelName
    date: date
    notes: str
    withdrawn: str | None = None


class DemoScreenshot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A picture that is drawn like a placeholder cover, by its motif."""

    motif: str
    alt: str


class DemoCover(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The publisher's own cover: the product's motif in the palette of this number. If `turned` is true, the motif is
    mirrored."""

    palette: int
    alt: str
    turned: bool = False


class DemoProduct(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A product, with its releases from the first to the last."""

    title: str
    kind: Kind
    publisher: str
    platforms: list[Platform]
    tags: list[str]
    languages: list[str]
    access: Access
    summary: str
    description: str
    screenshots: list[DemoScreenshot] = msgspec.field(name="screenshot")
    releases: list[DemoRelease] = msgspec.field(name="release")
    cover: DemoCover | None = None
    components: list[str] = []
    """Name and version of each component that the builds list. The newest builds of such a product are processed."""
    trailer: str | None = None
    """The alternative text of the trailer. Its file in the folder `trailers` is named by the slug."""

    @property
    def slug(self) -> str:
        """The title in lower case, its words joined by dashes."""
        return _SLUG.sub("-", self.title.lower()).strip("-")

    @property
    def license(self) -> str:
        """The licence. Games, and products that require a code, are proprietary."""
        return "Apache-2.0" if self.access == "free" and self.kind != "game" else "proprietary"

    def read_trailer(self) -> bytes:
        """The product's trailer, a WebM of 640 × 360 pixels."""
        return Path(__file__).with_name("trailers").joinpath(f"{self.slug}.webm").read_bytes()


class _File(msgspec.Struct, forbid_unknown_fields=True):
    product: list[DemoProduct]


@cache
def products() -> tuple[DemoProduct, ...]:
    """All products, always in the same order: games, apps, tools."""
    folder = Path(__file__).with_name("products")
    files = [tomllib.loads((folder / name).read_text(encoding="utf-8")) for name in FILES]
    today = latest_day(clock.now())
    for release in _releases(files):
        if "days_ago" in release:
            release["date"] = today - timedelta(days=release.pop("days_ago"))
    return tuple(product for file in files for product in msgspec.convert(file, _File).product)


def latest_day(now: Instant) -> date:
    """The latest day whose releases are published."""
    return date.fromisoformat(clock.rfc3339(clock.later(now, seconds=-3_600 * RELEASE_HOURS))[:10])


def _releases(files: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (release for file in files for product in file["product"] for release in product["release"])


def moment(day: date, minutes: int = 0) -> Instant:
    """A time in the morning of the day, UTC."""
    return clock.later(clock.from_datetime(datetime.combine(day, time(9), UTC)), seconds=60 * minutes)
