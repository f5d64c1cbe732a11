"""Putting catalog.json into a store, by the functions that publishers' requests come to."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from countersign.kernel import clock
from countersign.kernel.database.port import Transaction
from countersign.store.auth import organisations
from countersign.store.catalog import projection
from countersign.store.context import Store
from countersign.store.releases import lifecycle
from countersign.store.releases.permissions import OwnedProduct
from countersign.store.releases.schemas import NewRelease, ProductWrite

FILE = Path(__file__).with_name("catalog.json")
MEMBERS = ("slug", "title", "description", "kind", "platforms", "tags", "license", "access", "status", "homepage")
YANK = "UPDATE release SET status = 'yanked' WHERE id = $1"


async def stock(store: Store) -> None:
    """Every organisation, product and release of the file, drafts, archived and withdrawn ones as such."""
    found = json.loads(FILE.read_text())
    async with store.database.transaction() as transaction:
        ids = {
            each["slug"]: (await organisations.create_organisation(transaction, each["slug"], each["name"])).id
            for each in found["organisations"]
        }
        for product in found["products"]:
            await _product(transaction, ids[product["org"]], product)


async def _product(transaction: Transaction, org_id: str, product: dict[str, Any]) -> None:
    given = {name: product[name] for name in MEMBERS if name in product}
    body = ProductWrite(**given)
    moments = [_moment(each["published_at"]) for each in product["releases"] if each.get("published_at")]
    with clock.fixed(min(moments, default=clock.now())):
        product_id = await lifecycle.create(transaction, org_id, body)
    owned = OwnedProduct(product_id, org_id, product["org"], body.slug, "public", body.access, clock.now())
    for release in product["releases"]:
        await _release(transaction, owned, release)
    await projection.refresh(transaction, product_id)


async def _release(transaction: Transaction, product: OwnedProduct, release: dict[str, Any]) -> None:
    is_draft = release["status"] == "draft"
    with clock.fixed(clock.now() if is_draft else _moment(release["published_at"])):
        drafted = NewRelease(release["version"], release["channel"], release.get("notes"))
        release_id = await lifecycle.draft(transaction, product, drafted)
        if not is_draft:
            await lifecycle.mark_published(transaction, release_id)
    if release["status"] == "yanked":
        await transaction.run(YANK, release_id)


def _moment(text: str) -> clock.Instant:
    return clock.from_datetime(datetime.fromisoformat(text))
