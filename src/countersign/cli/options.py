"""Options and arguments that several commands share: server, data directory, products, times."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click

if TYPE_CHECKING:
    from countersign.kernel.clock import Instant

COMMAND = TypeVar("COMMAND", bound=Callable[..., Any])
DEFAULT_SERVER = "http://127.0.0.1:8480"
SERVER_VARIABLE = "COUNTERSIGN_SERVER"

_SERVER = "countersign.server"

CHANNELS = ("stable", "beta", "nightly", "alpha")
PLATFORMS = ("windows", "macos", "linux", "android", "ios", "web")

_SLUG = re.compile(r"[a-z0-9-]{1,64}")
_DAY_S = 86_400
_DAYS = re.compile(r"([0-9]{1,5})d")

data_option = click.option("--data", metavar="DIR", help="Data directory. Default: COUNTERSIGN_DATA or ./data.")


def server_option(command: COMMAND) -> COMMAND:
    """Give a command the option --server, which may stand before or after the command's name."""
    text = f"Address of the store (or {SERVER_VARIABLE}). Default: {DEFAULT_SERVER}"
    decorate = click.option("--server", metavar="URL", expose_value=False, callback=_remember_server, help=text)
    return decorate(command)


def _remember_server(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta[_SERVER] = parse_server_url(value)


def selected_server_url() -> str:
    """Return the root URL of the server, without a trailing slash, from --server, the environment or the default.

    Raises:
        UsageError: the address in the environment is invalid.
    """
    context = click.get_current_context(silent=True)
    server_option: object = None if context is None else context.meta.get(_SERVER)
    return str(server_option) if server_option else parse_server_url(os.environ.get(SERVER_VARIABLE) or DEFAULT_SERVER)


def parse_server_url(address: str) -> str:
    """Return the root URL in the address, without a trailing slash and without the path of the API.

    Raises:
        UsageError: the address is not an http:// or https:// URL, or has a password, query or fragment.
    """
    try:
        url_parts = urlsplit(address.strip())
        is_address = url_parts.scheme in ("http", "https") and bool(url_parts.hostname) and url_parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise click.UsageError(f"{address!r} is not a server address; write it like {DEFAULT_SERVER}")
    url_parts = urlsplit(address.strip())
    if url_parts.username is not None or url_parts.query or url_parts.fragment:
        raise click.UsageError("a server address has no user, query or fragment; use `countersign login` for tokens")
    path = url_parts.path.rstrip("/").removesuffix("/api/v1")
    return f"{url_parts.scheme}://{url_parts.netloc}{path}"


@dataclass(frozen=True, slots=True)
class ProductName:
    """The slug of a product, and the slug of the organisation that the product must belong to."""

    org: str
    slug: str

    def __str__(self) -> str:
        return f"{self.org}/{self.slug}" if self.org else self.slug


def parse_product(ctx: click.Context, param: click.Parameter, value: str) -> ProductName:
    """Parse ORG/PRODUCT.

    Raises:
        BadParameter: the value does not have this form.
    """
    if "/" not in value:
        text = f"{value!r} names no organisation; write ORG/PRODUCT, for example toolsmith/{value}"
        raise click.BadParameter(text, ctx, param)
    return _product(ctx, param, value)


def parse_products(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> list[ProductName]:
    """Parse several products, each as ORG/PRODUCT, a slug or an id.

    Raises:
        BadParameter: a value does not have one of these forms.
    """
    return [_product(ctx, param, text) for text in value]


def parse_org(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Parse the slug of an organisation.

    Raises:
        BadParameter: the value is not a slug.
    """
    if _SLUG.fullmatch(value) is None:
        raise click.BadParameter(f"{value!r} is not the slug of an organisation: 1 to 64 of a-z, 0-9 and -", ctx, param)
    return value


def _product(ctx: click.Context, param: click.Parameter, value: str) -> ProductName:
    org, separator, slug = value.rpartition("/")
    if _SLUG.fullmatch(slug) is None or (separator and _SLUG.fullmatch(org) is None):
        text = f"{value!r} is not ORG/PRODUCT; both parts are 1 to 64 of a-z, 0-9 and -"
        raise click.BadParameter(text, ctx, param)
    return ProductName(org, slug)


def parse_time(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Parse a time in RFC 3339, a date (which means its beginning in UTC), or a number of days from now like 30d.

    Raises:
        BadParameter: the value does not have one of these forms.
    """
    from countersign.kernel import clock

    instant = _instant(ctx, param, value, day_s=_DAY_S)
    return None if instant is None else clock.rfc3339(instant)


def parse_past_time(ctx: click.Context, param: click.Parameter, value: str | None) -> "Instant | None":
    """Parse a time like `parse_time`, but a number of days like 3d means that many days ago.

    Raises:
        BadParameter: the value does not have one of these forms.
    """
    return _instant(ctx, param, value, day_s=-_DAY_S)


def _instant(ctx: click.Context, param: click.Parameter, value: str | None, *, day_s: int) -> "Instant | None":
    if value is None:
        return None
    from countersign.kernel import clock

    try:
        if days := _DAYS.fullmatch(value):
            return clock.later(clock.now(), seconds=int(days[1]) * day_s)
        parsed_time = datetime.fromisoformat(value)
        return clock.from_datetime(parsed_time if parsed_time.tzinfo else parsed_time.replace(tzinfo=UTC))
    except (ValueError, OverflowError) as error:
        direction = "from now" if day_s > 0 else "ago"
        text = (
            f"{value!r} is not a time; write it by ISO 8601 (RFC 3339) as 2026-12-31T18:00:00Z, a date as 2026-12-31 "
            f"(its beginning in UTC), or days {direction} as 30d"
        )
        raise click.BadParameter(text, ctx, param) from error
