"""People write a SQLite file of others, which has no types, no row locks and no rights: a write is whole and exact, or
it is refused in words."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from structlog.testing import capture_logs

from countersign.declare import (
    Bool,
    Date,
    Decimal,
    DeclarationError,
    LongText,
    Model,
    Module,
    Moment,
    Money,
    Number,
    Ref,
    Select,
    Table,
    Text,
)
from countersign.declare.registry import Registry
from countersign.kernel import clock
from countersign.kernel.database import sqlite_outside_tables
from countersign.kernel.database.sqlite_writer import SqliteWriter
from countersign.kernel.errors import Refused, Unavailable
from countersign.records import base_models
from countersign.records.access.view import Caller
from tests.adopted.shop import MARK, Shop, make_sqlite, open_shop, run_sqlite
from tests.adopted.writable import shop_registry
from tests.declare.sample_modules import model

LOCK_WAIT_MS = 100
AWAY = "The connected database cannot be reached now; try again."
REFUSED = "the connected database refused this"


@pytest.fixture(autouse=True)
def short_lock_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait a short time for locks."""
    monkeypatch.setattr(sqlite_outside_tables, "LOCK_WAIT_MS", LOCK_WAIT_MS)


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a shop in a SQLite file that it may write."""
    url = make_sqlite(tmp_path / "theirs.sqlite")
    async with open_shop(url, tmp_path, shop_registry(), is_shared=True) as opened:
        yield opened


async def _customer(shop: Shop) -> dict[str, Any]:
    return dict((await shop.inside.value(shop.inside.administrator(), "customer", "list"))[0])


async def _update(shop: Shop, **fields: object) -> dict[str, Any]:
    record = await _customer(shop)
    changed = await shop.inside.value(shop.inside.administrator(), "customer", "update", id=record["id"], **fields)
    return dict(changed)


async def _refusal(shop: Shop, person: Caller, model: str, command: str, **body: object) -> str:
    with pytest.raises(Refused) as caught:
        await shop.inside.value(person, model, command, **body)
    return caught.value.detail


async def _update_refused(shop: Shop, **fields: object) -> str:
    record = await _customer(shop)
    return await _refusal(shop, shop.inside.administrator(), "customer", "update", id=record["id"], **fields)


def _visits(shop: Shop) -> int:
    return int(shop.rows("SELECT visits FROM customer WHERE customer_id = 1")[0][0])


async def _entries(shop: Shop) -> int:
    return len(await shop.inside.rows("SELECT 1 FROM audit_entry WHERE model = 'customer'"))


def _other(shop: Shop, begin: str) -> apsw.Connection:
    """Return the connection of another application with an open transaction."""
    connection = apsw.Connection(str(shop.path))
    connection.execute(begin)
    return connection


async def test_a_file_that_another_application_writes_is_not_written_and_nothing_is_half_done(shop: Shop) -> None:
    other = _other(shop, "BEGIN IMMEDIATE; UPDATE customer SET visits = 50 WHERE customer_id = 1")
    refused = await _update_refused(shop, visits=8)
    other.execute("COMMIT")

    changed = await _update(shop, visits=51)

    assert refused == AWAY
    assert (changed["visits"], _visits(shop), await _entries(shop)) == (51, 51, 1)


async def test_a_file_that_another_application_reads_is_not_committed(shop: Shop) -> None:
    other = _other(shop, "BEGIN; SELECT * FROM customer")
    refused = await _update_refused(shop, visits=8)

    assert refused == AWAY
    assert (_visits(shop), await _entries(shop)) == (7, 0)
    other.execute("COMMIT")
    await _update(shop, visits=8)
    assert (_visits(shop), await _entries(shop)) == (8, 1)


async def test_a_refused_file_refuses_no_write_of_our_own_tables(shop: Shop) -> None:
    other = _other(shop, "BEGIN; SELECT * FROM customer")
    database = shop.inside.service.records.database

    async def write(name: str) -> None:
        async with database.transaction() as transaction:
            await transaction.run("INSERT INTO module_state (module, version, snapshot) VALUES ($1, '1', '{}')", name)

    outcomes = await asyncio.gather(
        write("a"), _update_refused(shop, visits=8), write("b"), _update_refused(shop, visits=9), write("c")
    )
    other.execute("COMMIT")

    assert outcomes == [None, AWAY, None, AWAY, None]
    assert len(await shop.inside.rows("SELECT 1 FROM module_state WHERE module IN ('a', 'b', 'c')")) == 3
    assert (_visits(shop), await _entries(shop)) == (7, 0)


async def test_only_the_first_write_waits_for_a_file_that_stays_locked(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_outside_tables, "LOCK_WAIT_MS", 2_000)
    other = _other(shop, "BEGIN; SELECT * FROM customer")
    started_s = clock.monotonic_s()

    assert {await _update_refused(shop, visits=8) for _ in range(4)} == {AWAY}
    assert clock.monotonic_s() - started_s < 4
    other.execute("COMMIT")
    await _update(shop, visits=8)


async def test_many_writes_at_a_time_are_all_whole(shop: Shop) -> None:
    people = [shop.inside.administrator() for _ in range(12)]

    async def create(person: Caller, number: int) -> None:
        await shop.inside.value(person, "customer", "create", first_name=f"New {number}", visits=number)

    await asyncio.gather(*(create(person, number) for number, person in enumerate(people)))

    assert shop.rows("SELECT count(*) FROM customer WHERE first_name LIKE 'New %'") == [(12,)]
    assert await _entries(shop) == 12


async def test_what_a_failed_commit_of_our_own_file_leaves_is_committed_by_the_next_transaction(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(writer: SqliteWriter, connection: apsw.Connection) -> Refused:
        connection.execute("ROLLBACK")
        return Unavailable("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(SqliteWriter, "_committed", fail)
        refused = await _update_refused(shop, visits=8)
    assert refused.endswith("Do not repeat it.")
    assert (_visits(shop), await _entries(shop)) == (8, 0)

    async with shop.inside.service.records.database.transaction() as transaction:
        found = await transaction.fetch("SELECT command FROM audit_entry WHERE model = 'customer'")

    assert found == [("customer.update",)]
    history = await shop.inside.value(
        shop.inside.administrator(), "customer", "history", id=(await _customer(shop))["id"]
    )
    assert [each["changes"] for each in history] == [{"visits": [7, 8]}]


async def test_a_cancelled_write_is_whole(shop: Shop) -> None:
    for turns in range(0, 60, 3):
        before = (_visits(shop), await _entries(shop))
        writing = asyncio.create_task(_update(shop, visits=100 + turns))
        for _ in range(turns):
            await asyncio.sleep(0.0005)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        after = (_visits(shop), await _entries(shop))
        assert after in (before, (100 + turns, before[1] + 1))


async def test_a_file_in_wal_mode_is_only_read(tmp_path: Path) -> None:
    url = make_sqlite(tmp_path / "theirs.sqlite")
    run_sqlite(tmp_path / "theirs.sqlite", "PRAGMA journal_mode = WAL")

    with capture_logs() as logs:
        async with open_shop(url, tmp_path, shop_registry(), is_shared=True) as shop:
            root = shop.inside.administrator()
            assert (await _customer(shop))["visits"] == 7
            store = shop.inside.service.engine.adopted["customer"]
            narrowed = store.narrowed(root)  # pyright: ignore[reportAttributeAccessIssue]
            assert "update" not in narrowed.view.models["customer"].commands

    assert [each["event"] for each in logs if "WAL mode" in each["event"]] == [sqlite_outside_tables.IN_WAL]


async def test_a_file_in_utf_16_is_refused(tmp_path: Path) -> None:
    run_sqlite(tmp_path / "utf_16.sqlite", f"PRAGMA encoding = 'UTF-16le'; {ODD}")
    registry = Registry([base_models.MODULE, Module("odd", version="1.0.0", models=MODELS)])

    with pytest.raises(DeclarationError, match="UTF-16"):
        async with open_shop(f"sqlite:///{tmp_path / 'utf_16.sqlite'}", tmp_path, registry, is_shared=True):
            pass


async def test_a_file_that_is_switched_to_wal_mode_is_no_longer_written(shop: Shop) -> None:
    await _update(shop, visits=8)
    shop.change("PRAGMA journal_mode = WAL")
    refused = await _update_refused(shop, visits=9)

    assert (refused, _visits(shop), await _entries(shop)) == (sqlite_outside_tables.IN_WAL, 8, 1)


async def test_a_file_that_takes_the_place_of_the_file_is_compared_before_it_is_written(
    shop: Shop, tmp_path: Path
) -> None:
    record = await _update(shop, visits=8)
    make_sqlite(tmp_path / "other.sqlite")
    run_sqlite(tmp_path / "other.sqlite", "ALTER TABLE customer RENAME COLUMN note TO remark")
    (tmp_path / "other.sqlite").rename(shop.path)
    root = shop.inside.administrator()

    first = await _refusal(shop, root, "customer", "update", id=record["id"], visits=9)
    second = await _refusal(shop, root, "customer", "update", id=record["id"], visits=9)

    assert first == "A table of the connected database has changed, or can no longer be read."
    assert second.startswith("A table of the connected database has changed since its review")
    assert _visits(shop) == 7


ODD = """
CREATE TABLE odd (
    id INTEGER PRIMARY KEY AUTOINCREMENT, count INTEGER, yes BOOLEAN, day DATE, at DATETIME, spaced DATETIME,
    seconds INTEGER, price NUMERIC, whole INTEGER, state, double AS (count * 2), free
);
INSERT INTO odd (count, yes, day, at, spaced, seconds, price, whole, state, free)
VALUES ('many', 'true', '2026-01-02', '2026-01-02T03:04:05+02:00', '2026-01-02 03:04:05', 1, 1.5, 2, 1, x'00ff'),
    (2, 1, '2026-01-02 00:00:00', NULL, NULL, NULL, NULL, NULL, 0, 'text');
CREATE TABLE strict_one (id INTEGER PRIMARY KEY, count INTEGER, name TEXT) STRICT;
INSERT INTO strict_one VALUES (1, 2, 'a');
CREATE TABLE plain (code TEXT, number INTEGER, title TEXT UNIQUE, PRIMARY KEY (code, number)) WITHOUT ROWID;
INSERT INTO plain VALUES ('a', 1, 'one'), ('b', 1, 'two');
CREATE TABLE replacing (id INTEGER PRIMARY KEY, name TEXT UNIQUE ON CONFLICT REPLACE);
INSERT INTO replacing VALUES (1, 'a'), (2, 'b');
CREATE TABLE ignoring (id INTEGER PRIMARY KEY, name TEXT UNIQUE ON CONFLICT IGNORE);
INSERT INTO ignoring VALUES (1, 'a'), (2, 'b');
CREATE VIEW seen AS SELECT id, name FROM replacing;
CREATE TABLE raising (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO raising VALUES (1, 'a');
CREATE TABLE bytes (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO bytes VALUES (1, 'a' || char(0) || 'b'), (2, CAST(x'67e96e' AS TEXT)), (3, x'00ff'), (4, NULL), (5, x'61');
CREATE TRIGGER raises BEFORE UPDATE ON raising WHEN new.name LIKE 'x%'
    BEGIN SELECT RAISE(ABORT, 'secret xMARKx'); END;
CREATE TRIGGER ends BEFORE UPDATE ON raising WHEN new.name LIKE 'y%'
    BEGIN SELECT RAISE(ROLLBACK, 'secret xMARKx'); END;
CREATE TABLE later (id INTEGER PRIMARY KEY, name TEXT, plain_code TEXT, plain_number INTEGER,
    FOREIGN KEY (plain_code, plain_number) REFERENCES plain DEFERRABLE INITIALLY DEFERRED);
INSERT INTO later VALUES (1, 'a', 'a', 1);
CREATE TABLE "we""ird; --" ("a ""b"" $1" TEXT, "id'" INTEGER PRIMARY KEY, "UNIQUE, x.y" TEXT UNIQUE);
INSERT INTO "we""ird; --" VALUES ('x', 1, 'u'), ('y', 2, 'v');
"""


class Odd(Model, table=Table("odd", key="id", writable=True)):
    """A row whose columns have values of other types."""

    count = Number()
    yes = Bool()
    day = Date()
    at = Moment()
    spaced = Moment()
    seconds = Moment()
    price_minor = Money(column="price")
    whole_minor = Money(column="whole")
    state = Select(values={0: "new", 1: "paid"})
    double = Number()
    free = LongText()


class StrictOne(Model, table=Table("strict_one", key="id", writable=True)):
    """A row of a table with types."""

    count = Decimal()
    name = Text()


class Plain(Model, table=Table("plain", key=("code", "number"), writable=True, deletes=True)):
    """A row without a number of its own."""

    code = Text(required=True)
    number = Number(required=True)
    title = Text()


class Replacing(Model, table=Table("replacing", key="id", writable=True)):
    """A row that deletes others."""

    name = Text()


class Ignoring(Model, table=Table("ignoring", key="id", writable=True)):
    """A row that is not written."""

    name = Text()


class Seen(Model, table=Table("seen", key="id", writable=True)):
    """A row of a view."""

    name = Text()


class Raising(Model, table=Table("raising", key="id", writable=True)):
    """A row whose triggers raise errors."""

    name = Text()


class Bytes(Model, table=Table("bytes", key="id", writable=True)):
    """A row with bytes that are no text."""

    name = Text()


class Later(Model, table=Table("later", key="id", writable=True)):
    """A row with a foreign key that is checked at the end."""

    name = Text()
    plain = Ref("plain", columns=("plain_code", "plain_number"))


class Weird(Model, table=Table('"we""ird; --"', key="id'", writable=True, deletes=True)):
    """A row of a table with odd names."""

    name = Text(column='a "b" $1')
    other = Text(column="UNIQUE, x.y")


MODELS = (Odd, StrictOne, Plain, Replacing, Ignoring, Seen, Raising, Bytes, Later, Weird)


@asynccontextmanager
async def _open_odd(folder: Path) -> AsyncIterator[Shop]:
    run_sqlite(folder / "odd.sqlite", ODD)
    registry = Registry([base_models.MODULE, Module("odd", version="1.0.0", models=MODELS)])
    async with open_shop(f"sqlite:///{folder / 'odd.sqlite'}", folder, registry, is_shared=True) as shop:
        yield shop


@pytest.fixture
async def odd(tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a file with odd tables."""
    async with _open_odd(tmp_path) as shop:
        yield shop


async def _first(shop: Shop, model: str, place: int = 0) -> dict[str, Any]:
    return dict((await shop.inside.value(shop.inside.administrator(), model, "list"))[place])


@pytest.mark.parametrize(
    ("model", "place", "fields", "detail"),
    [
        ("odd", 0, {"count": 5}, "odd.count has a value that the field does not show"),
        ("odd", 0, {"yes": False}, "odd.yes cannot be set: its column has texts"),
        ("odd", 1, {"day": "2026-05-06"}, "odd.day cannot be set: its column has a time of day"),
        ("odd", 1, {"seconds": "2026-05-06T07:08:09.000Z"}, "odd.seconds cannot be set: its column has numbers"),
        ("odd", 0, {"whole_minor": 250}, "odd.whole_minor must have 0 decimals at most"),
        ("odd", 1, {"double": 8}, REFUSED),
        ("strict_one", 0, {"count": "2.5"}, "strict_one.count must have 0 decimals at most"),
        ("plain", 0, {"title": "two"}, "plain.title must be unique: another record has this value"),
        ("ignoring", 0, {"name": "b"}, REFUSED),
        ("raising", 0, {"name": "xa"}, REFUSED),
        ("raising", 0, {"name": "ya"}, REFUSED),
        ("weird", 0, {"other": "v"}, REFUSED),
        *(("bytes", place, {"name": "b"}, "bytes.name has bytes that are no text") for place in range(3)),
    ],
)
async def test_a_value_that_the_file_or_its_column_does_not_take_is_refused(
    odd: Shop, model: str, place: int, fields: dict[str, Any], detail: str
) -> None:
    root, record = odd.inside.administrator(), await _first(odd, model, place)

    with capture_logs() as logs:
        refused = await _refusal(odd, root, model, "update", id=record["id"], **fields)

    assert refused.startswith(detail)
    assert MARK not in str(logs) + refused
    assert await _first(odd, model, place) == record
    assert await odd.inside.rows("SELECT 1 FROM audit_entry WHERE model = $1", model) == []


@pytest.mark.parametrize(
    ("model", "place", "fields", "query", "stored"),
    [
        ("odd", 1, {"count": 5}, "count, double FROM odd WHERE id = 2", (5, 10)),
        ("odd", 0, {"at": "2026-05-06T07:08:09.000Z"}, "at FROM odd WHERE id = 1", ("2026-05-06T07:08:09+00:00",)),
        ("odd", 1, {"spaced": "2026-05-06T07:08:09.120Z"}, "spaced FROM odd WHERE id = 2",
            ("2026-05-06 07:08:09.120",)),
        ("odd", 1, {"price_minor": -7, "yes": False}, "price, yes FROM odd WHERE id = 2", (-0.07, 0)),
        ("odd", 0, {"whole_minor": 300, "state": "new"}, "whole, state, typeof(state) FROM odd WHERE id = 1",
            (3, 0, "integer")),
        ("strict_one", 0, {"name": "b", "count": "7"}, "count, name FROM strict_one", (7, "b")),
        ("plain", 0, {"title": "three"}, "title FROM plain WHERE code = 'a'", ("three",)),
        ("later", 0, {"name": "b"}, "name, plain_code FROM later", ("b", "a")),
        *(("bytes", place, {"name": "b"}, f"name FROM bytes WHERE id = {place + 1}", ("b",)) for place in (3, 4)),
        ("weird", 0, {"name": "n", "other": "o"}, '* FROM "we""ird; --" WHERE "id\'" = 1', ("n", 1, "o")),
    ],
)  # fmt: skip
async def test_a_value_is_written_as_the_file_has_it(
    odd: Shop, model: str, place: int, fields: dict[str, Any], query: str, stored: tuple[Any, ...]
) -> None:
    root, record = odd.inside.administrator(), await _first(odd, model, place)

    changed = await odd.inside.value(root, model, "update", id=record["id"], **fields)

    assert {name: changed[name] for name in fields} == fields
    assert odd.rows(f"SELECT {query}") == [stored]


async def test_a_table_whose_constraint_deletes_other_rows_and_a_view_are_not_writable(odd: Shop) -> None:
    reasons = odd.inside.service.suspensions.reasons if odd.inside.service.suspensions else {}

    assert {"replacing", "seen"} == set(reasons)
    assert "ON CONFLICT REPLACE" in reasons["replacing"]


async def test_rows_of_a_table_without_row_numbers_are_created_and_deleted(odd: Shop) -> None:
    root = odd.inside.administrator()

    created = await odd.inside.value(root, "plain", "create", code="c", number=3, title="three")
    await odd.inside.value(root, "plain", "delete", id=created["id"])

    assert odd.rows("SELECT count(*) FROM plain") == [(2,)]
    commands = await odd.inside.rows("SELECT command FROM audit_entry WHERE model = 'plain' ORDER BY number")
    assert commands == [("plain.create",), ("plain.delete",)]


async def test_a_row_that_a_deferred_foreign_key_refers_to_is_not_deleted(odd: Shop) -> None:
    root, record = odd.inside.administrator(), await _first(odd, "plain")
    odd.change("CREATE TABLE elsewhere (plain_code TEXT, plain_number INTEGER, "
        "FOREIGN KEY (plain_code, plain_number) REFERENCES plain DEFERRABLE INITIALLY DEFERRED)")
    odd.change("DELETE FROM later")
    odd.change("INSERT INTO elsewhere VALUES ('a', 1)")

    detail = await _refusal(odd, root, "plain", "delete", id=record["id"])

    assert detail == "other rows refer to this record: delete them, or change what they refer to, first"
    assert odd.rows("SELECT count(*) FROM plain") == [(2,)]


MARKED = """
CREATE TABLE marked (id INTEGER PRIMARY KEY, name TEXT, gone {column}, version INTEGER NOT NULL DEFAULT 1);
INSERT INTO marked (id, name, gone) VALUES (1, 'a', NULL), (2, 'b', {value});
"""


class Marked(Model, table=Table("marked", key="id", writable=True, deletes=True, deleted="gone", version="version")):
    """A row that is marked when it is deleted."""

    name = Text()


@pytest.mark.parametrize(
    ("column", "value", "pattern"),
    [
        ("BOOLEAN", "NULL", "1"),
        ("INTEGER", "1700000000", "[12]#########"),
        ("INTEGER", "1700000000000", "[12]############"),
        ("DATE", "NULL", "2###-##-##"),
        ("DATETIME", "NULL", "2###-##-## ##:##:##*"),
        ("TEXT", "'2026-01-02T03:04:05.678Z'", "2###-##-##T##:##:##.###Z"),
    ],
)
async def test_a_row_is_marked_as_other_rows_are(tmp_path: Path, column: str, value: str, pattern: str) -> None:
    run_sqlite(tmp_path / "theirs.sqlite", MARKED.format(column=column, value=value))
    registry = Registry([base_models.MODULE, Module("marked", version="1.0.0", models=(Marked,))])
    async with open_shop(f"sqlite:///{tmp_path / 'theirs.sqlite'}", tmp_path, registry, is_shared=True) as shop:
        root = shop.inside.administrator()
        record = await _first(shop, "marked")

        await shop.inside.value(root, "marked", "delete", id=record["id"])

        assert record["id"] not in [each["id"] for each in await shop.inside.value(root, "marked", "list")]
        glob = pattern.replace("#", "[0-9]")
        query = f"SELECT gone GLOB '{glob}', version FROM marked WHERE id = 1"
        assert shop.rows(query) == [(1, 2)]
        assert await shop.inside.rows("SELECT command FROM audit_entry WHERE model = 'marked'") == [("marked.delete",)]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("BOOLEAN NOT NULL", 0),
        ("BOOLEAN NOT NULL DEFAULT FALSE", 0),
        ("BOOLEAN", None),
        ("BOOLEAN NOT NULL AS (name IS NULL) STORED", 0),
    ],
)
async def test_a_new_row_is_not_marked(tmp_path: Path, column: str, value: int | None) -> None:
    counted = "version INTEGER NOT NULL DEFAULT 1"
    table = f"CREATE TABLE marked (id INTEGER PRIMARY KEY, name TEXT, gone {column}, {counted})"
    run_sqlite(tmp_path / "theirs.sqlite", table)
    registry = Registry([base_models.MODULE, Module("marked", version="1.0.0", models=(Marked,))])
    async with open_shop(f"sqlite:///{tmp_path / 'theirs.sqlite'}", tmp_path, registry, is_shared=True) as shop:
        root = shop.inside.administrator()

        created = await shop.inside.value(root, "marked", "create", name="a")

        assert [each["id"] for each in await shop.inside.value(root, "marked", "list")] == [created["id"]]
        assert shop.rows("SELECT gone FROM marked") == [(value,)]


async def test_two_models_do_not_write_one_table_under_names_in_different_case(tmp_path: Path) -> None:
    url = make_sqlite(tmp_path / "theirs.sqlite")
    table = Table("Customer", key="customer_id", writable=True)
    other = Module("more", version="1.0.0", models=(model("Buyer", {"visits": Number()}, table=table),))
    registry = Registry([*shop_registry().modules, other])

    with pytest.raises(DeclarationError, match="customer and buyer write one table, Customer: take writable out"):
        async with open_shop(url, tmp_path, registry, is_shared=True):
            pass
