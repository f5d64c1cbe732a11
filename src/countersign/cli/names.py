"""The names that the command line takes: ORG/PRODUCT, channels, platforms, moments."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

import click

from countersign.kernel import clock
from countersign.kernel.clock import Instant

CHANNELS = ("stable", "beta", "nightly", "alpha")
PLATFORMS = ("windows", "macos", "linux", "android", "ios", "web")

_SLUG = re.compile(r"[a-z0-9-]{1,64}")
_DAY_S = 86_400
_DAYS = re.compile(r"([0-9]{1,5})d")


@dataclass(frozen=True, slots=True)
class Product:
    """A product by its slug, and the organisation that it must belong to."""

    org: str
    slug: str

    def __str__(self) -> str:
        return f"{self.org}/{self.slug}" if self.org else self.slug


def product(ctx: click.Context, param: click.Parameter, value: str) -> Product:
    """Reads ORG/PRODUCT.

    Raises:
        BadParameter: it is something else.
    """
    if "/" not in value:
        text = f"{value!r} names no organisation; write ORG/PRODUCT, for example toolsmith/{value}"
        raise click.BadParameter(text, ctx, param)
    return _product(ctx, param, value)


def products(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> list[Product]:
    """Reads several of ORG/PRODUCT, slug or id.

    Raises:
        BadParameter: one is something else.
    """
    return [_product(ctx, param, each) for each in value]


def _product(ctx: click.Context, param: click.Parameter, value: str) -> Product:
    org, separator, slug = value.rpartition("/")
    if _SLUG.fullmatch(slug) is None or (separator and _SLUG.fullmatch(org) is None):
        text = f"{value!r} is not ORG/PRODUCT; both parts are 1 to 64 of a-z, 0-9 and -"
        raise click.BadParameter(text, ctx, param)
    return Product(org, slug)


def moment(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Reads a moment: RFC 3339, a date (its first moment in UTC), or a number of days from now like 30d.

    Raises:
        BadParameter: it is something else.
    """
    found = _instant(ctx, param, value, day_s=_DAY_S)
    return None if found is None else clock.rfc3339(found)


def past(ctx: click.Context, param: click.Parameter, value: str | None) -> Instant | None:
    """Reads a moment as `moment` does; a number of days like 3d is so long ago.

    Raises:
        BadParameter: it is something else.
    """
    return _instant(ctx, param, value, day_s=-_DAY_S)


def _instant(ctx: click.Context, param: click.Parameter, value: str | None, *, day_s: int) -> Instant | None:
    if value is None:
        return None
    try:
        if days := _DAYS.fullmatch(value):
            return clock.later(clock.now(), seconds=int(days[1]) * day_s)
        parsed = datetime.fromisoformat(value)
        return clock.from_datetime(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))
    except (ValueError, OverflowError) as error:
        way = "from now" if day_s > 0 else "ago"
        text = (
            f"{value!r} is no moment; write it by ISO 8601 (RFC 3339) as 2026-12-31T18:00:00Z, a date as 2026-12-31 "
            f"(its beginning in UTC), or days {way} as 30d"
        )
        raise click.BadParameter(text, ctx, param) from error
