"""`countersign publish`, `redeem` and `library`."""

from collections.abc import Iterator, Sequence

import click
import msgspec

from countersign.cli import connection, names, output, wire
from countersign.cli.choice import owned_by
from countersign.cli.connection import Server, segment
from countersign.cli.names import Product
from countersign.cli.output import Exit, Failure
from countersign.cli.target import server_option
from countersign.cli.transport import Request
from countersign.kernel.errors import NotFound

A_BATCH = 50
"""Calls of one batch."""
LISTING = "cannot list your library"
OLDER = "Publish a version that is lower than the one the channel is at."


def require_newest(channels: Sequence[wire.Channel], channel: str, version: str, doing: str) -> None:
    """Check that publishing the version does not move the channel back; `channels` are those of the product.

    Raises:
        Failure: the newest release of the channel has a higher version.
    """
    from countersign.store.catalog.versions import is_lower

    current = next((each.version for each in channels if each.channel == channel), None)
    if current is None or not is_lower(version, current):
        return
    why = f"the channel {channel} is at {current}, and {version} is lower: the channel would go back"
    remedy = "Publish a higher version, or pass --older to move the channel back."
    raise Failure(doing, why=why, remedy=remedy, exit_code=Exit.CONFLICT)


@click.command()
@click.argument("product", callback=names.product, metavar="ORG/PRODUCT")
@click.argument("version")
@click.option("--older", is_flag=True, help=OLDER)
@server_option
@output.json_option
def publish(product: Product, version: str, *, older: bool) -> None:
    """Make the draft release VERSION of ORG/PRODUCT public; with its first release the product becomes public."""
    server = connection.chosen()
    doing = f"cannot publish {product} {version}"
    found = owned_by(server, product, doing)
    path = f"/products/{segment(found.slug)}"
    if not older:
        drafts = server.get(f"{path}/drafts", list[wire.Release], doing)
        for channel in (each.channel for each in drafts if each.version == version):
            require_newest(found.channels, channel, version, doing)
    reply = server.post(f"{path}/releases/{segment(version)}/publish", None, doing)
    release = connection.decoded(reply, wire.Release, doing)
    value = {"product": product.slug, "version": release.version, "channel": release.channel}
    words = f"{product} {release.version} is public on the channel {release.channel}."
    output.answer({**value, "published_at": release.published_at}, words)


@click.command()
@click.argument("code")
@server_option
@output.json_option
def redeem(code: str) -> None:
    """Redeem CODE into your library. Repeating it is safe: a code is used up once for each person."""
    server = connection.chosen()
    doing = "cannot redeem the code"
    reply = server.post("/redeem", {"code": code}, doing)
    result = connection.decoded(reply, wire.Redeemed, doing)
    is_repeated = reply.headers.get("already-redeemed") == "true"
    output.answer({**msgspec.to_builtins(result), "redeemed_before": is_repeated})
    if output.wants_json():
        return
    said = "You own it already" if result.already_owned else "Redeemed"
    said = "You redeemed this code before" if is_repeated else said
    for product_id in result.products or [result.product_id]:
        found = server.get(f"/products/{segment(product_id)}", wire.Product, "redeemed, but cannot show the product")
        output.say(f"{said}: {found.title} ({found.org}/{found.slug})")


@click.command()
@server_option
@output.json_option
def library() -> None:
    """List what you own, newest first, as ORG/PRODUCT."""
    server = connection.chosen()
    products = list(_owned(server))
    owned = list(zip(products, _organizations(server, products), strict=True))
    if output.wants_json():
        output.answer([{**msgspec.to_builtins(each), "organization": org} for each, org in owned])
        return
    rows = [(str(Product(org, each.slug)), each.title, each.kind, " ".join(each.platforms)) for each, org in owned]
    output.table(("product", "title", "kind", "platforms"), rows)
    if not rows:
        output.note("Your library is empty; `countersign redeem CODE` adds to it.")


def _organizations(server: Server, owned: Sequence[wire.Owned]) -> Iterator[str]:
    """The slugs of the organisations that publish the products, which the list of the library lacks; empty where a
    product cannot be shown any more."""
    for start in range(0, len(owned), A_BATCH):
        some = owned[start : start + A_BATCH]
        operations = [{"method": "GET", "path": f"/products/{segment(each.id)}"} for each in some]
        reply = server.post("/batch", {"operations": operations}, LISTING)
        for result in connection.decoded(reply, wire.BatchResponse, LISTING).results:
            if result.status not in (200, NotFound.status):
                raise Failure(LISTING, why=str(result.body.get("detail", f"the server answers {result.status}")))
            yield str(result.body.get("org", ""))


def _owned(server: Server) -> Iterator[wire.Owned]:
    url: str | None = f"{server.base}/library?limit=100"
    while url is not None:
        reply = server.settle(Request("GET", url, server.headers(url)), LISTING)
        yield from connection.decoded(reply, list[wire.Owned], LISTING)
        url = server.next_page(reply)
