"""`countersign codes`, `redeem` and `library`: issue redeem codes, redeem one, list what you own."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec

from countersign.cli import output
from countersign.cli.client import api_models, connection, credentials
from countersign.cli.client.connection import Reply, Server, segment
from countersign.cli.client.transport import Request
from countersign.cli.options import ProductName, parse_products, parse_time, server_option
from countersign.cli.output import Exit, Failure
from countersign.kernel.errors import NotFound, is_disk_full

FAILURE = "cannot issue codes"
MAX_PRINTED = 1_000

BATCH_SIZE = 50
"""The number of requests in one batch."""
CANNOT_LIST = "cannot list your library"


@click.group()
def codes() -> None:
    """Codes that customers redeem for products."""


@codes.command()
@click.argument("products", nargs=-1, required=True, callback=parse_products, metavar="PRODUCT...")
@click.option(
    "--kind",
    type=click.Choice(("license", "promo")),
    required=True,
    help="license: each code can be used once. promo: each code can be used up to --max-uses times.",
)
@click.option("--count", type=click.IntRange(1, 1_000_000), default=1, show_default=True, help="Number of codes.")
@click.option("--max-uses", type=click.IntRange(1, 1_000_000_000), help="Uses of each promo code.")
@click.option("--valid-from", callback=parse_time, help="Start: 2026-12-31, 2026-12-31T18:00:00Z, or 30d (from now).")
@click.option("--expires", callback=parse_time, help="When the codes expire; same format as --valid-from.")
@click.option("--org", help="Your organisation, when you act in several. Default: the one in ORG/PRODUCT.")
@click.option("--output", "target", type=click.Path(dir_okay=False, path_type=Path), help="CSV file to write.")
@server_option
@output.json_option
def issue(
    *,
    products: Sequence[ProductName],
    kind: str,
    count: int,
    max_uses: int | None,
    valid_from: str | None,
    expires: str | None,
    org: str | None,
    target: Path | None,
) -> None:
    """Issue codes that redeem every PRODUCT named (ORG/PRODUCT, slug or id).

    The codes are shown only once, because the server stores only their hashes: use --output for a file that only you
    can read.
    """
    body: dict[str, object] = {"kind": kind, "products": [product.slug for product in products], "count": count}
    optional = {"max_uses": max_uses, "valid_from": valid_from, "expires_at": expires}
    body |= {name: value for name, value in optional.items() if value is not None}
    org = org or next((product.org for product in products if product.org), None)
    path = "/codes" + (f"?org={connection.segment(org)}" if org else "")
    if target is None:
        _show(path, body, count)
    else:
        _write(path, body, count, target)


def _show(path: str, body: dict[str, object], count: int) -> None:
    if count > MAX_PRINTED and not output.wants_json():
        raise click.UsageError(f"more than {MAX_PRINTED} codes need --output FILE.csv or --json")
    batch = connection.decode(_issue(path, body, "application/json"), api_models.Batch, FAILURE)
    output.print_result({"batch_id": batch.batch_id, "codes": batch.codes}, "\n".join(batch.codes))
    if not output.wants_json():
        output.note(f"Batch {batch.batch_id}. To revoke it: countersign api POST codes/{batch.batch_id}/revoke")


def _issue(path: str, body: dict[str, object], accept: str) -> Reply:
    """Return the response with the codes.

    Raises:
        Failure: the server refuses the request or cannot be reached.
    """
    server = connection.selected_server()
    try:
        return server.post(path, body, FAILURE, accept=accept)
    except Failure as failure:
        if failure.problem == "insufficient_scope":
            failure.remedy = f"Owners issue codes at {server.root}/publisher?tab=codes. Here: {failure.remedy}"
        raise


def _write(path: str, body: dict[str, object], count: int, target: Path) -> None:
    if target.exists():
        raise Failure(FAILURE, why=f"{target} exists", remedy="Name another file.", exit_code=Exit.CONFLICT)
    reply = _issue(path, body, "text/csv, */*;q=0.1")
    batch_id = reply.headers.get("batch-id", "")
    try:
        credentials.write_private(target, reply.body)
    except OSError as error:
        reason = f"{target}: {error.strerror}; the codes of the batch {batch_id} are lost"
        remedy = "Revoke that batch, choose another file, and issue again."
        exit_code = Exit.STORAGE_FULL if is_disk_full(error) else Exit.FAILED
        raise Failure("the codes were issued, but not saved", why=reason, remedy=remedy, exit_code=exit_code) from error
    result = {"batch_id": batch_id, "count": count, "path": str(target)}
    output.print_result(result, f"{count} codes of the batch {batch_id} are in {target}.")


@click.command()
@click.argument("code")
@server_option
@output.json_option
def redeem(code: str) -> None:
    """Redeem CODE, which adds its products to your library. It is safe to repeat the command: it uses the code once."""
    server = connection.selected_server()
    failure = "cannot redeem the code"
    reply = server.post("/redeem", {"code": code}, failure)
    result = connection.decode(reply, api_models.Redemption, failure)
    is_repeated = reply.headers.get("already-redeemed") == "true"
    output.print_result({**msgspec.to_builtins(result), "redeemed_before": is_repeated})
    if output.wants_json():
        return
    message = "You own it already" if result.already_owned else "Redeemed"
    message = "You redeemed this code before" if is_repeated else message
    for product_id in result.products or [result.product_id]:
        product = server.get(
            f"/products/{segment(product_id)}", api_models.CatalogProduct, "redeemed, but cannot show the product"
        )
        output.say(f"{message}: {product.title} ({product.org}/{product.slug})")


@click.command()
@server_option
@output.json_option
def library() -> None:
    """List what you own, newest first, as ORG/PRODUCT."""
    server = connection.selected_server()
    products = list(_library_products(server))
    products_with_org = list(zip(products, _organizations(server, products), strict=True))
    if output.wants_json():
        output.print_result([{**msgspec.to_builtins(item), "organization": org} for item, org in products_with_org])
        return
    rows = [
        (str(ProductName(org, item.slug)), item.title, item.kind, " ".join(item.platforms))
        for item, org in products_with_org
    ]
    output.table(("product", "title", "kind", "platforms"), rows)
    if not rows:
        output.note("Your library is empty; `countersign redeem CODE` adds to it.")


def _organizations(server: Server, products: Sequence[api_models.LibraryProduct]) -> Iterator[str]:
    """Yield the slug of each product's publisher, because the list of the library does not contain it.

    The slug is empty if the product can no longer be shown."""
    for start in range(0, len(products), BATCH_SIZE):
        batch = products[start : start + BATCH_SIZE]
        operations = [{"method": "GET", "path": f"/products/{segment(code.id)}"} for code in batch]
        reply = server.post("/batch", {"operations": operations}, CANNOT_LIST)
        for result in connection.decode(reply, api_models.BatchResponse, CANNOT_LIST).results:
            if result.status not in (200, NotFound.status):
                raise Failure(CANNOT_LIST, why=str(result.body.get("detail", f"the server answers {result.status}")))
            yield str(result.body.get("org", ""))


def _library_products(server: Server) -> Iterator[api_models.LibraryProduct]:
    url: str | None = f"{server.base}/library?limit=100"
    while url is not None:
        reply = server.settle(Request("GET", url, server.headers(url)), CANNOT_LIST)
        yield from connection.decode(reply, list[api_models.LibraryProduct], CANNOT_LIST)
        url = server.next_page(reply)
