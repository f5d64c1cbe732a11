"""A writer locks only the records that it changes, so that it does not wait for writers of other records."""

import asyncio
from pathlib import Path

import pytest

from countersign.declare import Model, Number, Ref, Text
from countersign.records.commands import crud, workflow
from tests.records import inside
from tests.records.books.test_posting import create_draft
from tests.records.conftest import OfficeSettings
from tests.records.inside import InProcessService
from tests.records.office import Office

LOCKABLE = "SELECT id FROM ware WHERE id = $1 FOR UPDATE SKIP LOCKED"


class Ware(Model):
    """A ware with a price."""

    title = Text(required=True)
    price = Number(required=True)


class Item(Model):
    """An item. Its price is copied from a ware when the item is created."""

    title = Text()
    ware = Ref("ware", fills={"price": "price"})
    price = Number(required=True)


async def is_lockable(shop: InProcessService, ware: str) -> bool:
    """Return whether another transaction can lock the record now."""
    async with shop.service.records.database.transaction() as transaction:
        return bool(await transaction.fetch(LOCKABLE, ware))


async def test_a_record_that_is_only_copied_from_is_not_locked(postgres_url: str, tmp_path: Path) -> None:
    async with inside.open_service(postgres_url, tmp_path, Ware, Item) as shop:
        root = shop.administrator()
        ware = (await shop.value(root, "ware", "create", title="Oak", price=5))["id"]
        async with shop.service.records.database.transaction() as transaction:
            run = shop.run(root).within(transaction)
            prepared_item = await crud.check_create(run, root.view.models["item"], {"ware": ware})
            assert prepared_item.given["price"].stored == 5
            assert await is_lockable(shop, ware)


@pytest.mark.parametrize("locks", [True, False])
async def test_an_effect_locks_the_record_that_it_reads_only_on_request(
    postgres_url: str, tmp_path: Path, *, locks: bool
) -> None:
    async with inside.open_service(postgres_url, tmp_path, Ware, Item) as shop:
        root = shop.administrator()
        ware = (await shop.value(root, "ware", "create", title="Oak", price=5))["id"]
        async with shop.service.records.database.transaction() as transaction:
            run = shop.run(root).within(transaction)
            effect = workflow.EffectContext(run, shop.models["item"], "0" * 24, {}, "item.create")
            read_ware = await effect.read("ware", ware, locks=locks)
            assert read_ware is not None
            assert read_ware["price"] == 5
            assert await is_lockable(shop, ware) is not locks


async def test_an_invoice_is_posted_while_the_previous_invoice_is_locked(
    office: Office, office_settings: OfficeSettings
) -> None:
    if not office_settings.settings.database_url:
        pytest.skip("SQLite has one writer at a time")
    posted_invoice, draft_invoice = await create_draft(office), await create_draft(office)
    await office.value("carol", "invoice.post", id=posted_invoice)
    async with office.service.records.database.transaction() as transaction:
        await transaction.fetch("SELECT id FROM invoice WHERE id = $1 FOR UPDATE", posted_invoice)
        # The test does not measure the time. The timeout only ends the test if posting waits forever.
        async with asyncio.timeout(60):
            await asyncio.create_task(office.value("carol", "invoice.post", id=draft_invoice))
