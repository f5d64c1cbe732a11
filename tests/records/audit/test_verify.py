"""Verification finds every change that an attacker without the key makes to the audit, and reports nothing else."""

import random
from collections.abc import Awaitable, Callable

import pytest

from countersign.kernel.database.port import Database
from countersign.records.audit.chain import COLUMNS, NO_HASH, TEXTS, Chain, HeadSigner, entry_hash
from countersign.records.audit.verify import MAX_DEFECTS, ChainDefect, verify
from tests.records.audit.conftest import SECRET, append_entries, change, counts, entry, faults, lanes

NUMBERS = [name for name in COLUMNS if name not in ("id", *TEXTS)]
Attack = Callable[[Database, random.Random], Awaitable[int]]
"""A function that attacks the audit and returns the lane in which verification must find a fault."""


async def random_entry(database: Database, rng: random.Random) -> tuple[int, int, str]:
    """Return the lane, the number and the id of a random entry."""
    rows = await database.fetch("SELECT lane, number, id FROM audit_entry ORDER BY lane, number")
    lane, number, entry_id = rng.choice(rows)
    return lane, number, entry_id


async def one_lane(database: Database, chain: Chain, entries: int) -> int:
    """Fill only one lane, and return its number."""
    async with database.transaction() as transaction:
        for number in range(entries):
            await chain.append(transaction, entry(number))
    ((lane, _),) = (await counts(database)).items()
    return lane


async def id_at(database: Database, lane: int, number: int) -> str:
    """Return the id of the entry with this number in the lane."""
    row = await database.fetch_one("SELECT id FROM audit_entry WHERE lane = $1 AND number = $2", lane, number)
    assert row is not None
    return row[0]


async def test_an_untouched_audit_is_intact(database: Database, chain: Chain):
    assert (await verify(database, SECRET)).entries == 0
    await append_entries(database, chain, 1_203, entries_at_once=50)

    report = await verify(database, SECRET)
    assert (report.entries, report.faults, report.is_intact) == (1_203, (), True)


async def test_another_secret_finds_every_lane_at_fault(database: Database, chain: Chain):
    await append_entries(database, chain, 3)

    report = await verify(database, b"t" * 32)
    assert [fault.what for fault in report.faults] == ["head"] * lanes(database)


@pytest.mark.parametrize("column", COLUMNS)
async def test_any_column_changed_is_found(database: Database, chain: Chain, column: str):
    lane = await one_lane(database, chain, 5)
    entry_id = await id_at(database, lane, 3)
    if column in NUMBERS:
        await change(database, f"UPDATE audit_entry SET {column} = {column} + 100 WHERE id = $1", entry_id)
    else:
        await change(
            database, f"UPDATE audit_entry SET {column} = coalesce({column}, '') || 'x' WHERE id = $1", entry_id
        )

    defects = await faults(database)
    reported_id = (entry_id + "x") if column == "id" else entry_id
    if column == "number":
        assert defects == (ChainDefect(lane, 3, await id_at(database, lane, 4), "missing"),)
    elif column == "lane":
        assert ChainDefect(lane, 3, await id_at(database, lane, 4), "missing") in defects
        assert ChainDefect(lane + 100, 1, entry_id, "missing") in defects
    else:
        assert defects == (ChainDefect(lane, 3, reported_id, "changed"),)


@pytest.mark.parametrize("column", [name for name in COLUMNS if name not in ("id", "revision", "changed")])
async def test_any_column_emptied_is_found(database: Database, chain: Chain, column: str):
    async with database.transaction() as transaction:
        for _ in range(5):
            await chain.append(transaction, entry(3, agent="scout"))
    entry_id = (await database.fetch("SELECT id FROM audit_entry WHERE number = 3"))[0][0]
    value = "''" if column == "plan_id" else "NULL"

    await change(database, f"UPDATE audit_entry SET {column} = {value} WHERE id = $1", entry_id)

    assert any(entry_id == fault.id or fault.number == 3 for fault in await faults(database))


async def test_text_that_is_no_unicode_is_a_changed_entry(database: Database, chain: Chain):
    if database.dialect == "postgres":
        pytest.skip("PostgreSQL refuses such text")
    lane = await one_lane(database, chain, 3)
    entry_id = await id_at(database, lane, 2)

    await change(database, "UPDATE audit_entry SET changes = CAST(x'ff00fe' AS TEXT) WHERE id = $1", entry_id)

    assert await faults(database) == (ChainDefect(lane, 2, entry_id, "changed"),)


async def test_a_changed_hash_is_found(database: Database, chain: Chain):
    lane = await one_lane(database, chain, 4)
    entry_id = await id_at(database, lane, 2)

    await change(database, "UPDATE audit_entry SET hash = $2 WHERE id = $1", entry_id, bytes(32))

    assert await faults(database) == (ChainDefect(lane, 2, entry_id, "changed"),)


async def test_a_deleted_entry_is_found(database: Database, chain: Chain):
    lane = await one_lane(database, chain, 4)
    next_id = await id_at(database, lane, 3)

    await change(database, "DELETE FROM audit_entry WHERE number = 2")

    assert await faults(database) == (ChainDefect(lane, 2, next_id, "missing"),)


async def test_swapped_entries_are_found(database: Database, chain: Chain):
    lane = await one_lane(database, chain, 4)
    second_id, third_id = await id_at(database, lane, 2), await id_at(database, lane, 3)

    await change(database, "UPDATE audit_entry SET number = 5 - number WHERE id IN ($1, $2)", second_id, third_id)

    assert await faults(database) == (ChainDefect(lane, 2, third_id, "changed"),)


async def test_an_added_entry_is_found(database: Database, chain: Chain):
    lane = await one_lane(database, chain, 4)

    for number in (0, -1, 2, 5):
        await forge(database, lane, number)
        (fault,) = await faults(database)
        assert (fault.lane, fault.what) == (lane, "added" if number != 2 else fault.what)
        assert fault.number == number or (number == 2 and fault.number in (2, 3))
        await change(database, "DELETE FROM audit_entry WHERE id = 'forged'")

    assert await faults(database) == ()


async def forge(database: Database, lane: int, number: int) -> None:
    """Add an entry whose hash follows from the previous entry, which needs no key."""
    row = await database.fetch_one("SELECT hash FROM audit_entry WHERE lane = $1 AND number = $2", lane, number - 1)
    columns = ("forged", 1, 0, 5, lane, number, "u", None, None, "c", "m", None, "", "{}", None, "r")
    placeholders = ", ".join(f"${number}" for number in range(2, len(columns) + 2))
    await change(
        database,
        f"INSERT INTO audit_entry (hash, {', '.join(COLUMNS)}) VALUES ($1, {placeholders})",
        entry_hash(NO_HASH if row is None else row[0], columns),
        *columns,
    )


async def test_a_cut_tail_is_found(database: Database, chain: Chain):
    lane = await one_lane(database, chain, 5)

    await change(database, "DELETE FROM audit_entry WHERE number > 3")

    assert await faults(database) == (ChainDefect(lane, 4, None, "cut"),)


async def test_a_cut_tail_with_the_head_put_back_by_hand_is_found(database: Database, chain: Chain):
    lane = await one_lane(database, chain, 5)

    await cut_lane(database, lane, 3)

    assert await faults(database) == (ChainDefect(lane, 3, None, "head"),)


async def cut_lane(database: Database, lane: int, count: int) -> None:
    """Delete the last entries and move the head to the new end. Only the MAC of the head needs the key."""
    await change(database, "DELETE FROM audit_entry WHERE lane = $1 AND number > $2", lane, count)
    await change(
        database,
        "UPDATE audit_lane SET count = $2, hash = coalesce("
        "(SELECT hash FROM audit_entry WHERE lane = $1 AND number = $2), $3) WHERE lane = $1",
        lane,
        count,
        NO_HASH,
    )


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("is_remembered", [True, False])
async def test_appending_after_a_head_was_reset_does_not_make_the_chain_valid(
    database: Database, chain: Chain, count: int, is_remembered: bool
):
    lane = await one_lane(database, chain, 5)
    await cut_lane(database, lane, count)

    for _ in range(3):
        await fill_every_lane(database, chain if is_remembered else Chain(database.dialect, SECRET))

    (fault,) = await faults(database)
    assert (fault.lane, fault.what) == (lane, "head")
    assert (fault.number or 0) > count


async def fill_every_lane(database: Database, chain: Chain) -> None:
    """Append at least one entry to each lane. This needs concurrent transactions."""
    if lanes(database) == 1:
        await append_entries(database, chain, 1)
        return
    for free in range(lanes(database)):
        async with database.transaction() as transaction:
            await transaction.run("SELECT lane FROM audit_lane WHERE lane <> $1 FOR UPDATE", free)
            async with database.transaction() as another:
                await chain.append(another, entry(free))


async def test_a_lane_emptied_with_its_head_is_found(database: Database, chain: Chain):
    lane = await one_lane(database, chain, 5)

    await change(database, "DELETE FROM audit_entry WHERE lane = $1", lane)
    await change(database, "DELETE FROM audit_lane WHERE lane = $1", lane)

    assert await faults(database) == (ChainDefect(lane, 0, None, "head"),)


async def test_a_missing_head_is_found(database: Database, chain: Chain):
    lane = await one_lane(database, chain, 5)

    await change(database, "DELETE FROM audit_lane WHERE lane = $1", lane)

    assert await faults(database) == (ChainDefect(lane, 0, None, "head"),)


async def test_a_chain_rewritten_from_an_entry_to_its_end_is_detected(database: Database, chain: Chain):
    lane = await one_lane(database, chain, 6)

    await rewrite(database, lane, 3, "UPDATE audit_entry SET command = 'lead.get' WHERE id = $1")

    assert await faults(database) == (ChainDefect(lane, 6, None, "head"),)


async def rewrite(database: Database, lane: int, number: int, statement: str) -> None:
    """Change an entry, compute all later hashes and the head again, and sign the head with another key."""
    await change(database, statement, await id_at(database, lane, number))
    last_hash, count = NO_HASH, 0
    names = ", ".join(COLUMNS)
    for row in await database.fetch(f"SELECT {names} FROM audit_entry WHERE lane = $1 ORDER BY number", lane):
        last_hash, count = entry_hash(last_hash, row), count + 1
        await change(database, "UPDATE audit_entry SET hash = $2 WHERE id = $1", row[0], last_hash)
    head_mac = HeadSigner(b"m" * 32).mac(
        HeadSigner(b"m" * 32).verified_head(lane, count, last_hash, b"")._replace(is_sound=True)
    )
    await change(database, "UPDATE audit_lane SET hash = $2, mac = $3 WHERE lane = $1", lane, last_hash, head_mac)


async def test_unknown_lanes_are_reported_and_a_limited_number_of_them_is_named(database: Database, chain: Chain):
    await append_entries(database, chain, 3)
    async with database.transaction() as transaction:
        for lane in range(MAX_DEFECTS + 5):
            await transaction.run(
                "INSERT INTO audit_lane (lane, count, hash, mac) VALUES ($1, 0, $2, $2)", 1_000 + lane, NO_HASH
            )

    defects = await faults(database)
    assert len(defects) == MAX_DEFECTS
    assert defects[0] == ChainDefect(1_000, 0, None, "head")


async def change_column(database: Database, rng: random.Random) -> int:
    lane, _, entry_id = await random_entry(database, rng)
    column = rng.choice(COLUMNS)
    if column in NUMBERS:
        by = rng.choice([-1, 1, 7, -(2**40)])
        await change(database, f"UPDATE audit_entry SET {column} = {column} + $2 WHERE id = $1", entry_id, by)
    else:
        text = rng.choice(["", "x", "0", "-", "Zoë", "\u2028"])
        tail = f"coalesce({column}, '') || $2 || '!'"
        await change(database, f"UPDATE audit_entry SET {column} = {tail} WHERE id = $1", entry_id, text)
    return lane


async def delete_entry(database: Database, rng: random.Random) -> int:
    lane, _, entry_id = await random_entry(database, rng)
    await change(database, "DELETE FROM audit_entry WHERE id = $1", entry_id)
    return lane


async def swap_entries(database: Database, rng: random.Random) -> int:
    lane, number, entry_id = await random_entry(database, rng)
    other_lane, other_number, other_id = await random_entry(database, rng)
    if entry_id == other_id:
        return await delete_entry(database, rng)
    await change(
        database, "UPDATE audit_entry SET lane = $2, number = $3 WHERE id = $1", entry_id, other_lane, other_number
    )
    await change(database, "UPDATE audit_entry SET lane = $2, number = $3 WHERE id = $1", other_id, lane, number)
    return lane


async def cut_tail(database: Database, rng: random.Random) -> int:
    lane, number, _ = await random_entry(database, rng)
    await change(database, "DELETE FROM audit_entry WHERE lane = $1 AND number >= $2", lane, number)
    return lane


async def cut_tail_and_head(database: Database, rng: random.Random) -> int:
    lane, number, _ = await random_entry(database, rng)
    await cut_lane(database, lane, number - 1)
    return lane


async def add_entry(database: Database, rng: random.Random) -> int:
    lane, number, _ = await random_entry(database, rng)
    await forge(database, lane, number + rng.randint(-3, 3))
    return lane


async def write_anew(database: Database, rng: random.Random) -> int:
    lane, number, _ = await random_entry(database, rng)
    await rewrite(database, lane, number, "UPDATE audit_entry SET at = at - 1 WHERE id = $1")
    return lane


async def copy_entry(database: Database, rng: random.Random) -> int:
    lane, number, _ = await random_entry(database, rng)
    other_columns = ", ".join(("hash", *(name for name in COLUMNS if name != "id")))
    await change(
        database,
        f"INSERT INTO audit_entry (id, {other_columns}) "
        f"SELECT 'copy', {other_columns} FROM audit_entry WHERE lane = $1 AND number = $2",
        lane,
        number,
    )
    return lane


ATTACKS: list[Attack] = [
    change_column,
    change_column,
    delete_entry,
    swap_entries,
    cut_tail,
    cut_tail_and_head,
    add_entry,
    write_anew,
    copy_entry,
]


async def snapshot(database: Database) -> list[tuple[str, list[tuple[None | int | str | bytes, ...]]]]:
    """Return the rows of both tables as statements that insert them."""
    statements: list[tuple[str, list[tuple[None | int | str | bytes, ...]]]] = []
    for table, names in (("audit_lane", ("lane", "count", "hash", "mac")), ("audit_entry", ("hash", *COLUMNS))):
        placeholders = ", ".join(f"${number}" for number, _ in enumerate(names, 1))
        rows = await database.fetch(f"SELECT {', '.join(names)} FROM {table}")
        statements.append(
            (f"INSERT INTO {table} ({', '.join(names)}) VALUES ({placeholders})", [tuple(row) for row in rows])
        )
    return statements


async def test_a_hundred_random_tamperings_of_each_engine_are_found(database: Database, chain: Chain):
    rng = random.Random(5)
    await append_entries(database, chain, 24, entries_at_once=2)
    rows_before = await snapshot(database)

    for turn in range(100):
        attack = ATTACKS[turn % len(ATTACKS)]
        lane = await attack(database, rng)
        assert lane in [fault.lane for fault in await faults(database)], (turn, attack.__name__)
        async with database.transaction() as transaction:
            await transaction.run("DELETE FROM audit_entry; DELETE FROM audit_lane")
            for statement, rows in rows_before:
                await transaction.run_many(statement, rows)

    assert await faults(database) == ()
