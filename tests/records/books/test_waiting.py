"""Writers wait only for transactions that change records that they need. Records that are only read are not locked."""

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
    """A product with a price."""

    title = Text(required=True)
    price = Number(required=True)


class Item(Model):
    """An item that copies the price of a product."""

    title = Text()
    ware = Ref("ware", fills={"price": "price"})
    price = Number(required=True)


async def is_lockable(shop: InProcessService, ware: str) -> bool:
    """Return whether another transaction can lock the record now."""
    async with shop.service.records.database.transaction() as other:
        return bool(await other.fetch(LOCKABLE, ware))


async def test_a_record_that_fills_another_one_is_not_locked(postgres_url: str, tmp_path: Path) -> None:
    async with inside.open_service(postgres_url, tmp_path, Ware, Item) as shop:
        root = shop.administrator()
        ware = (await shop.value(root, "ware", "create", title="Oak", price=5))["id"]
        async with shop.service.records.database.transaction() as transaction:
            run = shop.run(root).within(transaction)
            prepared = await crud.check_create(run, root.view.models["item"], {"ware": ware})
            assert prepared.given["price"].stored == 5
            assert await is_lockable(shop, ware)


@pytest.mark.parametrize("locks", [True, False])
async def test_an_effect_reads_with_a_lock_or_without(postgres_url: str, tmp_path: Path, *, locks: bool) -> None:
    async with inside.open_service(postgres_url, tmp_path, Ware, Item) as shop:
        root = shop.administrator()
        ware = (await shop.value(root, "ware", "create", title="Oak", price=5))["id"]
        async with shop.service.records.database.transaction() as transaction:
            run = shop.run(root).within(transaction)
            work = workflow.EffectContext(run, shop.models["item"], "0" * 24, {}, "item.create")
            found = await work.read("ware", ware, locks=locks)
            assert found is not None
            assert found["price"] == 5
            assert await is_lockable(shop, ware) is not locks


async def test_an_invoice_is_posted_while_the_one_before_is_being_edited(office: Office, rooms: OfficeSettings) -> None:
    if not rooms.settings.database_url:
        pytest.skip("SQLite has one writer at a time")
    first, second = await create_draft(office), await create_draft(office)
    await office.value("carol", "invoice.post", id=first)
    async with office.service.records.database.transaction() as other:
        await other.fetch("SELECT id FROM invoice WHERE id = $1 FOR UPDATE", first)
        # The test does not measure the time. The timeout only ends the test if posting waits forever.
        async with asyncio.timeout(60):
            await asyncio.create_task(office.value("carol", "invoice.post", id=second))
