"""Totals and computed numbers stay within the range that every JSON client represents exactly, and never overflow in
the database."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from countersign.declare import Model, Money, Number, Ref
from countersign.kernel import ids
from countersign.records.audit.chain import LANES
from countersign.records.commands.errors import BadInput
from tests.records import inside
from tests.records.inside import InProcessService
from tests.records.office import Office

LARGEST = 2**53 - 1


def doubled(sum_minor: int) -> int:
    """Return twice the total."""
    return 2 * sum_minor


class Box(Model):
    """A box with the total of its coins."""

    sum_minor = Money(sum_of="coin.amount_minor")
    twice_minor = Money(computed=doubled)


class Purse(Model):
    """A purse with the total of its coins."""

    sum_minor = Money(sum_of="coin.amount_minor")


def product(factor: int, amount_minor: int) -> int:
    """Return the product of two numbers."""
    return factor * amount_minor


class Coin(Model):
    """A coin in a box or in a purse."""

    box = Ref("box")
    purse = Ref("purse", on_delete="cascade")
    factor = Number(default=0)
    amount_minor = Money(required=True)
    product_minor = Money(computed=product)


@pytest.fixture
async def safe(database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """A service without coins, once on SQLite and once on PostgreSQL."""
    async with inside.open_service(database_url, tmp_path, Box, Purse, Coin) as service:
        yield service


async def test_a_total_beyond_the_largest_number_is_refused_and_nothing_is_written(safe: InProcessService) -> None:
    root = safe.administrator()
    purse = (await safe.value(root, "purse", "create"))["id"]
    first_coin = await safe.value(root, "coin", "create", purse=purse, amount_minor=LARGEST)

    for amount in (1, LARGEST):
        with pytest.raises(BadInput, match=r"purse\.sum_minor would lie outside"):
            await safe.value(root, "coin", "create", purse=purse, amount_minor=amount)
    await safe.value(root, "coin", "create", purse=purse, amount_minor=-LARGEST)
    with pytest.raises(BadInput, match=r"purse\.sum_minor would lie outside"):
        await safe.value(root, "coin", "update", id=first_coin["id"], amount_minor=-1)

    assert (await safe.value(root, "purse", "get", id=purse))["sum_minor"] == 0
    assert await safe.rows("SELECT count(*) FROM coin") == [(2,)]


async def test_a_number_computed_from_a_total_is_checked_too(safe: InProcessService) -> None:
    root = safe.administrator()
    box = (await safe.value(root, "box", "create"))["id"]
    await safe.value(root, "coin", "create", box=box, amount_minor=LARGEST // 2)

    with pytest.raises(BadInput, match=r"box\.twice_minor would lie outside"):
        await safe.value(root, "coin", "create", box=box, amount_minor=1)

    assert (await safe.value(root, "box", "get", id=box))["twice_minor"] == LARGEST - 1


@pytest.mark.parametrize("factor", [2, -2, LARGEST, -LARGEST])
async def test_a_computed_number_beyond_the_largest_is_refused(safe: InProcessService, factor: int) -> None:
    root = safe.administrator()
    coin = await safe.value(root, "coin", "create", amount_minor=LARGEST, factor=1)

    for command, values in (("create", {"amount_minor": LARGEST}), ("update", {"id": coin["id"]})):
        with pytest.raises(BadInput, match=r"coin\.product_minor would lie outside"):
            await safe.value(root, "coin", command, factor=factor, **values)

    assert (await safe.value(root, "coin", "get", id=coin["id"]))["product_minor"] == LARGEST


async def test_intermediate_sums_of_a_small_total_overflow_in_neither_database(safe: InProcessService) -> None:
    root = safe.administrator()
    purse = (await safe.value(root, "purse", "create"))["id"]
    async with safe.service.records.database.transaction() as transaction:
        for amount in [LARGEST] * 1_100 + [-LARGEST] * 1_100:
            await transaction.run(
                "INSERT INTO coin (id, revision, changed, purse, factor, amount_minor) VALUES ($1, 1, 0, $2, 0, $3)",
                ids.new_record_id(), purse, amount,
            )  # fmt: skip

    await safe.value(root, "coin", "create", purse=purse, amount_minor=-7)

    assert (await safe.value(root, "purse", "get", id=purse))["sum_minor"] == -7


async def test_payments_are_refused_if_the_total_would_exceed_the_largest_amount(office: Office) -> None:
    invoice = await office.first_record("invoice", state="posted", paid_minor=0)
    await office.value("carol", "payment.create", invoice=invoice["id"], amount_minor=LARGEST)
    for who in ("carol", await office.agent("carol", "*")):
        reason = await office.refusal_of(who, "payment.create", invoice=invoice["id"], amount_minor=LARGEST)
        assert reason.startswith("invoice.paid_minor would lie outside")
    rows = f"invoice,amount_minor\n{invoice['id']},{LARGEST}\n"
    imported = await office.value("carol", "payment.import", csv=rows)
    assert "invoice.paid_minor" in imported["errors"][0]["error"]

    assert (await office.value("carol", "invoice.get", id=invoice["id"]))["paid_minor"] == LARGEST


async def test_a_write_that_waits_for_a_record_locks_no_lane_of_the_audit(postgres_url: str, tmp_path: Path) -> None:
    async with inside.open_service(postgres_url, tmp_path, Box, Purse, Coin) as safe:
        root = safe.administrator()
        purse = (await safe.value(root, "purse", "create"))["id"]
        # From now on, the head of a lane is known.
        coin = await safe.value(root, "coin", "create", amount_minor=1)
        calls = [("create", {"amount_minor": 1, "purse": purse}), ("update", {"id": coin["id"], "purse": purse})]

        for command, values in calls:
            async with safe.service.records.database.transaction() as transaction:
                await transaction.run("SELECT id FROM purse WHERE id = $1 FOR UPDATE", purse)
                call = asyncio.create_task(safe.value(root, "coin", command, **values))
                while await safe.rows("SELECT 1 FROM pg_locks WHERE NOT granted") == []:
                    await asyncio.sleep(0.005)

                free_lanes = await transaction.fetch("SELECT lane FROM audit_lane FOR UPDATE SKIP LOCKED")
            await call

            assert len(free_lanes) == LANES["postgres"]
