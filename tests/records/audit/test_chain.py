"""The entries of a lane follow each other without a gap, even with concurrent transactions and rollbacks."""

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from countersign.kernel.database.port import ConstraintViolation, Database
from countersign.records.audit.chain import COLUMNS, Chain, Head, HeadSigner, entry_hash
from countersign.records.audit.verify import verify
from tests.records.audit.conftest import SECRET, append_entries, counts, entry, faults, lanes, open_audit_database


class TransactionAborted(Exception):
    """The error with which a test makes a transaction fail."""


async def test_an_entry_is_stored_with_all_its_members(database: Database, chain: Chain):
    scout_entry = entry(7, agent="scout")

    async with database.transaction() as transaction:
        await chain.append(transaction, scout_entry)

    names = ", ".join(COLUMNS)
    (row,) = await database.fetch(f"SELECT {names} FROM audit_entry")
    stored_entry: dict[str, object] = dict(zip(COLUMNS, row, strict=True))
    assert len(str(stored_entry["id"])) == 24
    assert (stored_entry["revision"], stored_entry["changed"], stored_entry["number"]) == (1, 0, 1)
    assert {name: stored_entry[name] for name in scout_entry.__slots__} == {
        name: getattr(scout_entry, name) for name in scout_entry.__slots__
    }
    assert await faults(database) == ()


async def test_entries_of_one_transaction_are_appended_in_order_to_one_lane(database: Database, chain: Chain):
    async with database.transaction() as transaction:
        for number in range(5):
            await chain.append(transaction, entry(number))

    rows = await database.fetch("SELECT lane, number, at FROM audit_entry ORDER BY at")
    assert len({lane for lane, _, _ in rows}) == 1
    assert [number for _, number, _ in rows] == [1, 2, 3, 4, 5]
    assert await faults(database) == ()


async def test_the_writes_of_a_record_are_run_once_also_after_another_process_has_appended(
    database: Database, chain: Chain
):
    async with database.transaction() as transaction:
        await transaction.run("CREATE TABLE lead (id BIGINT PRIMARY KEY)")
    other_chain = Chain(database.dialect, SECRET)

    for number in range(6):
        # Each append makes the head that the other chain has cached outdated.
        async with database.transaction() as transaction:
            write = ("INSERT INTO lead (id) VALUES ($1)", (number,))
            await (chain, other_chain)[number % 2].append(transaction, entry(number), [write])

    assert await database.fetch("SELECT id FROM lead ORDER BY id") == [(number,) for number in range(6)]
    assert await database.fetch("SELECT at FROM audit_entry ORDER BY at") == [
        (entry(number).at,) for number in range(6)
    ]
    assert await faults(database) == ()


async def test_an_entry_whose_write_fails_is_not_appended(database: Database, chain: Chain):
    async with database.transaction() as transaction:
        await transaction.run("CREATE TABLE lead (id BIGINT PRIMARY KEY)")
    await append_entries(database, chain, 1)

    for _ in range(2):
        with suppress(ConstraintViolation):
            async with database.transaction() as transaction:
                await chain.append(transaction, entry(2), [("INSERT INTO lead (id) VALUES ($1)", (7,))])

    assert await database.fetch("SELECT id FROM lead") == [(7,)]
    assert (await verify(database, SECRET)).entries == 2
    assert await faults(database) == ()


async def test_a_rolled_back_entry_leaves_no_gap(database: Database, chain: Chain):
    await append_entries(database, chain, 2)

    with suppress(TransactionAborted):
        async with database.transaction() as transaction:
            await chain.append(transaction, entry(3))
            raise TransactionAborted
    await append_entries(database, chain, 2)

    report = await verify(database, SECRET)
    assert (report.entries, report.is_intact) == (4, True)


async def test_a_savepoint_rolled_back_leaves_no_gap(database: Database, chain: Chain):
    async with database.transaction() as transaction:
        with suppress(TransactionAborted):
            async with transaction.savepoint():
                await chain.append(transaction, entry(1))
                raise TransactionAborted
        await chain.append(transaction, entry(2))
        with suppress(TransactionAborted):
            async with transaction.savepoint():
                await chain.append(transaction, entry(3))
                raise TransactionAborted
        await chain.append(transaction, entry(4))
    await append_entries(database, chain, 3)

    report = await verify(database, SECRET)
    assert (report.entries, report.is_intact) == (5, True)


async def test_another_process_may_append_to_the_same_lanes(database: Database, chain: Chain):
    chains = [chain, Chain(database.dialect, SECRET), Chain(database.dialect, SECRET)]

    for turn in range(12):
        await append_entries(database, chains[turn % 3], 7)

    report = await verify(database, SECRET)
    assert (report.entries, report.is_intact) == (84, True)


async def test_many_transactions_at_once_some_rolled_back_leave_no_gap(database: Database, chain: Chain):
    chains = [chain, Chain(database.dialect, SECRET)]
    rng = random.Random(11)
    kept_count = 0

    async def work(number: int, entries: int, fails: bool) -> None:
        nonlocal kept_count
        with suppress(TransactionAborted):
            async with database.transaction() as transaction:
                for entry_number in range(entries):
                    await chains[number % 2].append(transaction, entry(number * 10 + entry_number))
                if fails:
                    raise TransactionAborted
            kept_count += entries

    for _ in range(4):
        await asyncio.gather(*(work(n, rng.randint(1, 4), rng.random() < 0.3) for n in range(64)))

    report = await verify(database, SECRET)
    assert report.faults == ()
    assert report.entries == kept_count == sum((await counts(database)).values())


@pytest.fixture
async def wide(postgres_url: str) -> AsyncIterator[Database]:
    """A PostgreSQL database with more connections than lanes."""
    async with open_audit_database(postgres_url, pool=80) as database:
        yield database


async def test_more_transactions_than_lanes_wait_and_leave_no_gap(wide: Database):
    chain = Chain("postgres", SECRET)
    everyone = asyncio.Barrier(lanes(wide))

    async def hold(number: int) -> None:
        async with wide.transaction() as transaction:
            await chain.append(transaction, entry(number))
            # All lanes are locked now, and the other transactions wait for one.
            async with asyncio.timeout(60):
                await everyone.wait()

    async def follow(number: int) -> None:
        async with wide.transaction() as transaction:
            await chain.append(transaction, entry(number))
            await chain.append(transaction, entry(number))

    holders = [asyncio.create_task(hold(number)) for number in range(lanes(wide) - 1)]
    followers = []
    async with wide.transaction() as transaction:
        await chain.append(transaction, entry(99))
        while everyone.n_waiting < lanes(wide) - 1:
            await asyncio.sleep(0)
        followers = [asyncio.create_task(follow(100 + number)) for number in range(32)]
        while (await count_lock_waits(wide)) < 16:
            await asyncio.sleep(0.005)
        await everyone.wait()
    await asyncio.gather(*holders, *followers)

    report = await verify(wide, SECRET)
    assert (report.entries, report.faults) == (lanes(wide) + 64, ())
    assert len(await counts(wide)) == lanes(wide)


async def count_lock_waits(database: Database) -> int:
    """Return the number of statements that wait for a lock."""
    row = await database.fetch_one("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    return 0 if row is None else int(row[0])


async def test_ten_transactions_at_once_take_ten_lanes(postgres_url: str):
    async with open_audit_database(postgres_url) as database:
        chain = Chain("postgres", SECRET)
        everyone = asyncio.Barrier(10)

        async def append(number: int) -> None:
            async with database.transaction() as transaction:
                await chain.append(transaction, entry(number))
                async with asyncio.timeout(60):
                    await everyone.wait()

        for _ in range(3):
            await asyncio.gather(*(append(number) for number in range(10)))

        # The transactions locked the same lanes again that they had released.
        assert await counts(database) == dict.fromkeys(await counts(database), 3)
        assert len(await counts(database)) == 10


async def test_lanes_begin_once(database: Database, chain: Chain):
    with pytest.raises(ConstraintViolation):
        async with database.transaction() as transaction:
            await chain.create_lanes(transaction)


async def test_without_lanes_nothing_can_be_written(database: Database, chain: Chain):
    async with database.transaction() as transaction:
        await transaction.run("DELETE FROM audit_lane")

    with pytest.raises(RuntimeError, match="no lanes"):
        async with database.transaction() as transaction:
            await chain.append(transaction, entry())


def test_the_hash_is_computed_as_documented():
    columns = ("ab", 1, None, "Zoë", -5, "")
    hashed_bytes = bytes(32) + b"2:ab1:1-4:Zo\xc3\xab2:-50:"

    assert entry_hash(bytes(32), columns) == hashlib.sha256(hashed_bytes).digest()
    assert entry_hash(bytes(32), ("Zoë".encode(),)) == entry_hash(bytes(32), ("Zoë",))


def test_columns_cannot_be_shifted_into_each_other():
    hashes = [
        entry_hash(bytes(32), columns)
        for columns in [("a", "bc"), ("ab", "c"), ("abc", ""), ("abc", None), (None, "abc"), ("", "abc"), ("-", "abc")]
    ]

    assert len(set(hashes)) == len(hashes)


def test_a_head_is_sound_only_with_its_own_mac():
    signer = HeadSigner(SECRET)
    head = Head(3, 7, b"h" * 32)
    head_mac = signer.mac(head)

    assert signer.verified_head(3, 7, b"h" * 32, head_mac).is_sound
    assert not signer.verified_head(4, 7, b"h" * 32, head_mac).is_sound
    assert not signer.verified_head(3, 6, b"h" * 32, head_mac).is_sound
    assert not signer.verified_head(3, 7, b"i" * 32, head_mac).is_sound
    assert not signer.verified_head(3, 7, b"h" * 33, head_mac).is_sound
    assert not signer.verified_head(3, 7, b"h" * 32, b"").is_sound
    assert not HeadSigner(b"t" * 32).verified_head(3, 7, b"h" * 32, head_mac).is_sound
    assert signer.mac(signer.verified_head(3, 7, b"h" * 32, b"")) == b""
