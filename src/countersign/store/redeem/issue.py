"""Issuing a batch of codes: the hashes go in piece by piece, and the batch becomes valid in one step at the end.

A million codes take seconds to write, and no other writer may wait for that. So the batch is first `preparing`,
unknown to redeem and to lists; activating it is the one small transaction that also records the answer.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.database.port import Database, Transaction
from countersign.kernel.errors import invalid_member
from countersign.store.auth.callers import Caller
from countersign.store.auth.organisations import organisation_of
from countersign.store.catalog import queries as catalog
from countersign.store.context import Store
from countersign.store.redeem import codes
from countersign.store.redeem.schemas import NewBatch

AT_ONCE = 5_000
ABANDONED_AFTER_S = 3600


class Prepared(msgspec.Struct):
    """A batch whose codes are written but not valid yet."""

    batch_id: str
    seed: bytes
    count: int


async def prepare(store: Store, caller: Caller, org_slug: str | None, body: NewBatch) -> Prepared:
    """Write a batch and its codes, not yet valid.

    Raises:
        InsufficientScope: the caller does not administer the organisation.
        InvalidRequest: a product is not the organisation's own, a licence has several uses, or the window is empty
            or beyond what can be written as a date.
    """
    org = await organisation_of(store.database, caller, org_slug, "admin:org")
    products = await _own_products(store.database, org.id, body.products)
    uses = _uses(body)
    starts = _instant("/valid_from", body.valid_from)
    ends = _instant("/expires_at", body.expires_at)
    if starts is not None and ends is not None and ends <= starts:
        raise invalid_member("/expires_at", "must be after valid_from")
    if ends is not None and ends <= clock.now():
        raise invalid_member("/expires_at", "must be in the future")
    batch_id = ids.new_uuid()
    members = (batch_id, org.id, body.kind, msgspec.json.encode(products).decode(), body.count, uses, starts, ends)
    async with store.database.transaction() as transaction:
        await transaction.run(codes.INSERT_BATCH, *members, caller.key, clock.now())
    seed = ids.random_bytes(codes.SEED_BYTES)
    for start in range(0, body.count, AT_ONCE):
        stop = min(start + AT_ONCE, body.count)
        rows = await asyncio.to_thread(_rows, seed, batch_id, start, stop)
        async with store.database.transaction() as transaction:
            await transaction.run_many(codes.INSERT_CODE, rows)
    return Prepared(batch_id, seed, body.count)


async def add_known(
    transaction: Transaction,
    org_id: str,
    kind: Literal["license", "promo"],
    products: list[str],
    known: Sequence[str],
    uses: int,
) -> None:
    """A valid batch of codes whose texts are chosen beforehand; for demonstration data."""
    batch_id = ids.new_uuid()
    encoded = msgspec.json.encode(products).decode()
    members = (batch_id, org_id, kind, encoded, len(known), uses, None, None, "demo", clock.now())
    await transaction.run(codes.INSERT_BATCH, *members)
    await transaction.run_many(codes.INSERT_CODE, [(codes.digest(code), batch_id) for code in known])
    await transaction.run(codes.ACTIVATE_BATCH, batch_id, None)


def _rows(seed: bytes, batch_id: str, start: int, stop: int) -> list[tuple[bytes, str]]:
    return [(codes.digest(code), batch_id) for code in codes.derived(seed, start, stop)]


def _instant(pointer: str, moment: datetime | None) -> clock.Instant | None:
    try:
        return None if moment is None else clock.from_datetime(moment)
    except ValueError as error:
        raise invalid_member(pointer, str(error)) from error


def _uses(body: NewBatch) -> int:
    if body.kind == "promo":
        if body.max_uses is None:
            raise invalid_member("/max_uses", "is required for promo codes")
        return body.max_uses
    if body.max_uses not in (None, 1):
        raise invalid_member("/max_uses", "is 1 for licence codes")
    return 1


async def _own_products(database: Database, org_id: str, names: list[str]) -> list[str]:
    """The ids of the named products, each the organisation's own."""
    found: list[str] = []
    for place, name in enumerate(names):
        entry = await catalog.entry(database, name, is_id=ids.is_uuid(name))
        if entry is None or entry.org_id != org_id:
            raise invalid_member(f"/products/{place}", "is no product of the organisation")
        if entry.status == "archived":
            raise invalid_member(f"/products/{place}", "is archived")
        found.append(entry.product_id)
    if len(set(found)) != len(found):
        raise invalid_member("/products", "names a product twice")
    return found


async def shown(prepared: Prepared) -> AsyncIterator[bytes]:
    """The codes of a batch as they are shown, in pieces of several thousand lines."""
    for start in range(0, prepared.count, AT_ONCE):
        stop = min(start + AT_ONCE, prepared.count)
        yield await asyncio.to_thread(_lines, prepared.seed, start, stop)


def _lines(seed: bytes, start: int, stop: int) -> bytes:
    return "".join(f"{code}\n" for code in codes.derived(seed, start, stop)).encode()


async def collect_abandoned(store: Store) -> int:
    """Remove batches whose issuing was cut off more than an hour ago; how many there were."""
    oldest = clock.later(clock.now(), seconds=-ABANDONED_AFTER_S)
    rows = await store.database.fetch(codes.ABANDONED, oldest)
    for (batch_id,) in rows:
        async with store.database.transaction() as transaction:
            await codes.delete_batch(transaction, batch_id)
    return len(rows)
