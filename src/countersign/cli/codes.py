"""`countersign codes issue`: redeem codes for an organisation's products."""

from collections.abc import Sequence
from pathlib import Path

import click

from countersign.cli import connection, credentials, names, output, wire
from countersign.cli.connection import Reply
from countersign.cli.names import Product
from countersign.cli.output import Exit, Failure
from countersign.cli.target import server_option
from countersign.kernel.errors import is_disk_full

DOING = "cannot issue codes"
ON_A_SCREEN = 1_000


@click.group()
def codes() -> None:
    """Redeem codes."""


@codes.command()
@click.argument("products", nargs=-1, required=True, callback=names.products, metavar="PRODUCT...")
@click.option("--kind", type=click.Choice(("license", "promo")), required=True, help="license: one use each.")
@click.option("--count", type=click.IntRange(1, 1_000_000), default=1, show_default=True, help="How many codes.")
@click.option("--max-uses", type=click.IntRange(1, 1_000_000_000), help="Uses of each promo code.")
@click.option("--valid-from", callback=names.moment, help="2026-12-31, 2026-12-31T18:00:00Z, or 30d from now.")
@click.option("--expires", callback=names.moment, help="When the codes end; written as --valid-from.")
@click.option("--org", help="Your organisation, when you act in several. Default: the one in ORG/PRODUCT.")
@click.option("--output", "target", type=click.Path(dir_okay=False, path_type=Path), help="CSV file to write.")
@server_option
@output.json_option
def issue(
    *,
    products: Sequence[Product],
    kind: str,
    count: int,
    max_uses: int | None,
    valid_from: str | None,
    expires: str | None,
    org: str | None,
    target: Path | None,
) -> None:
    """Issue codes that redeem every PRODUCT named (ORG/PRODUCT, slug or id).

    The codes are shown this once and kept by the server as hashes only: use --output for a file that nobody else
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
    if count > ON_A_SCREEN and not output.wants_json():
        raise click.UsageError(f"more than {ON_A_SCREEN} codes need --output FILE.csv or --json")
    batch = connection.decoded(_issued(path, body, "application/json"), wire.Batch, DOING)
    output.answer({"batch_id": batch.batch_id, "codes": batch.codes}, "\n".join(batch.codes))
    if not output.wants_json():
        output.note(f"Batch {batch.batch_id}. To revoke it: countersign api POST codes/{batch.batch_id}/revoke")


def _issued(path: str, body: dict[str, object], accept: str) -> Reply:
    """The answer that holds the codes.

    Raises:
        Failure: refused or unreachable.
    """
    server = connection.chosen()
    try:
        return server.post(path, body, DOING, accept=accept)
    except Failure as failure:
        if failure.problem == "insufficient_scope":
            failure.remedy = f"Owners issue codes at {server.root}/publisher?tab=codes. Here: {failure.remedy}"
        raise


def _write(path: str, body: dict[str, object], count: int, target: Path) -> None:
    if target.exists():
        raise Failure(DOING, why=f"{target} exists", remedy="Name another file.", exit_code=Exit.CONFLICT)
    reply = _issued(path, body, "text/csv, */*;q=0.1")
    batch_id = reply.headers.get("batch-id", "")
    try:
        credentials.write_private(target, reply.body)
    except OSError as error:
        why = f"{target}: {error.strerror}; the codes of the batch {batch_id} are lost"
        remedy = "Revoke that batch, choose another file, and issue again."
        exit_code = Exit.STORAGE_FULL if is_disk_full(error) else Exit.FAILED
        raise Failure("the codes were issued, not kept", why=why, remedy=remedy, exit_code=exit_code) from error
    written = {"batch_id": batch_id, "count": count, "path": str(target)}
    output.answer(written, f"{count} codes of the batch {batch_id} are in {target}.")
