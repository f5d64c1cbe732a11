"""A connected database whose owners, triggers and rows are hostile: nothing is written without its audit entry, no
function of others is called by an operator, and no error quotes a row."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from countersign.declare import Grant, Model, Module, Table, Text, where
from countersign.declare.registry import Registry
from countersign.kernel.database import read_only
from countersign.kernel.errors import Refused
from countersign.records import base_models
from countersign.records.access.view import Caller
from countersign.records.adopted.store import AdoptedStore
from countersign.records.approvals import decisions
from tests.adopted.shop import MARK, Shop, make_postgres, open_shop
from tests.adopted.test_writing import ON_POSTGRES, Proposer, proposer, shop
from tests.servers.postgres import Cluster

__all__ = ["proposer", "shop"]

FIELDS = ("first_name", "email", "note", "born", "active", "country", "balance_minor", "rating", "status", "visits")


def _as_superuser(shop: Shop, *statements: str) -> list[tuple[Any, ...]]:
    """Run the statements, and return the rows of the last one."""
    name = shop.url.rpartition("/")[2]
    with psycopg.connect(shop.url.replace(f"reader_{name}@", "postgres@"), autocommit=True) as connection:
        *first, last = statements
        for statement in first:
            connection.execute(statement.encode())
        cursor = connection.execute(last.encode())
        return cursor.fetchall() if cursor.description else []


def _trigger(body: str) -> str:
    """Return the statement that makes the trigger of customers run this body."""
    return f"CREATE OR REPLACE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {body} END$$"


async def _first(shop: Shop, caller: Caller) -> dict[str, Any]:
    record: dict[str, Any] = (await shop.inside.value(caller, "customer", "list", limit=1))[0]
    return record


async def _refusal(shop: Shop, caller: Caller, command: str, **body: object) -> str:
    with pytest.raises(Refused) as caught:
        await shop.inside.value(caller, "customer", command, **body)
    return caught.value.detail


async def _limited(shop: Shop, *rows: Any) -> Caller:
    """Return a person who may read and write the customers that meet these conditions."""
    commands = ("get", "list", "search", "update", "create")
    grant = Grant(model="customer", clear=FIELDS, write=FIELDS, commands=commands, rows=rows)
    store = shop.inside.service.engine.adopted["customer"]
    return store.narrowed(shop.narrowed(await shop.inside.person(grant)))


@ON_POSTGRES
async def test_a_temporary_table_of_a_trigger_does_not_replace_one_of_ours(shop: Shop) -> None:
    root = shop.inside.administrator()
    record = await _first(shop, root)
    tables = "".join(
        f"CREATE TEMPORARY TABLE IF NOT EXISTS {each} (LIKE records.{each});" for each in ("audit_entry", "plan")
    )
    _as_superuser(shop, _trigger(f"{tables} RETURN new;"))

    for visits in range(20, 26):
        await shop.inside.value(root, "customer", "update", id=record["id"], visits=visits)

    query = "SELECT count(*) FROM records.audit_entry WHERE command = 'customer.update'"
    assert _as_superuser(shop, query) == [(6,)]
    assert [await shop.inside.value(root, "plan", "list") for _ in range(6)] == [[]] * 6


@ON_POSTGRES
async def test_writing_calls_no_operator_of_another_schema(shop: Shop) -> None:
    types = ("varchar", "text", "int2", "int4", "int8", "numeric", "interval", "timestamptz", "date", "bool")
    names = {"=": "equal", "<>": "unequal", "<": "less", ">=": "at_least", "*": "times", "+": "plus", "-": "minus"}
    shadows = [
        f"CREATE FUNCTION {name}({left}, {right}) RETURNS {left if sign in '*+-' else 'boolean'} LANGUAGE plpgsql AS "
        f"$$BEGIN RAISE 'called'; END$$; CREATE OPERATOR public.{sign} "
        f"(LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = public.{name})"
        for sign, name in names.items() for left in types for right in types
    ]  # fmt: skip
    _as_superuser(shop, ";".join(shadows))
    root = shop.inside.administrator()
    record = await _first(shop, root)

    fields = {
        "balance_minor": -7, "rating": "2.25", "status": "blocked", "seen": "2026-11-30T06:00:00.123Z",
        "born": "2001-02-03", "active": False, "note": "x", "visits": 3,
    }  # fmt: skip
    changed = await shop.inside.value(root, "customer", "update", id=record["id"], **fields)
    created = await shop.inside.value(root, "customer", "create", first_name="Mia", **fields)

    assert changed["seen"] == created["seen"] == fields["seen"]


@pytest.mark.parametrize("seen", ["0001-01-01T00:00:00.000Z", "2300-01-01T00:00:00.001Z", "9999-12-31T23:59:59.999Z"])
@ON_POSTGRES
async def test_an_instant_far_from_now_is_written_exactly(shop: Shop, seen: str) -> None:
    root = shop.inside.administrator()
    record = await _first(shop, root)

    assert (await shop.inside.value(root, "customer", "update", id=record["id"], seen=seen))["seen"] == seen


@pytest.mark.parametrize(
    ("before", "meanwhile"),
    [("status = 7", "status = 8"), ("seen = 'infinity'", "seen = '-infinity'"), ("visits = 7", "rating = 'NaN'")],
)
@ON_POSTGRES
async def test_a_plan_is_stale_when_a_value_that_is_not_shown_has_changed(
    shop: Shop, proposer: Proposer, before: str, meanwhile: str
) -> None:
    shop.change(f"UPDATE customer SET {before} WHERE customer_id = 1")
    plan_id = await proposer.propose(status="blocked", seen="2026-01-01T00:00:00Z")
    shop.change(f"UPDATE customer SET {meanwhile} WHERE customer_id = 1")

    with pytest.raises(decisions.NotPending, match="stale"):
        await proposer.approve(plan_id)


@ON_POSTGRES
async def test_a_record_whose_key_two_rows_have_is_not_written(shop: Shop, proposer: Proposer) -> None:
    root = shop.inside.administrator()
    record = await _first(shop, root)
    plan_id = await proposer.propose(visits=70)
    _as_superuser(
        shop, "CREATE TABLE vip () INHERITS (customer)", "INSERT INTO vip SELECT * FROM customer WHERE customer_id = 1"
    )

    detail = await _refusal(shop, root, "update", id=record["id"], visits=8)
    with pytest.raises(Refused, match="correct the key"):
        await proposer.approve(plan_id)

    assert detail == "customer: several rows of its table have this key: correct the key"
    assert _as_superuser(shop, "SELECT visits FROM customer WHERE customer_id = 1") == [(7,), (7,)]


@ON_POSTGRES
async def test_a_call_that_began_before_its_model_was_suspended_writes_nothing(shop: Shop) -> None:
    root = shop.inside.administrator()
    record = await _first(shop, root)
    _as_superuser(shop, "ALTER TABLE customer ALTER COLUMN born TYPE timestamp")
    await shop.suspensions.check()

    detail = await _refusal(shop, root, "update", id=record["id"], visits=8)

    assert detail == read_only.SUSPENDED
    assert _as_superuser(shop, "SELECT visits FROM customer WHERE customer_id = 1") == [(7,)]


@ON_POSTGRES
async def test_a_trigger_may_change_a_text_that_python_reads_as_no_number(shop: Shop) -> None:
    root = shop.inside.administrator()
    record = await _first(shop, root)
    _as_superuser(shop, _trigger("new.note := upper(new.note); RETURN new;"))

    changed = await shop.inside.value(root, "customer", "update", id=record["id"], visits=8, note="sNaN")

    assert changed["note"] == "SNAN"


@ON_POSTGRES
async def test_limits_of_rows_compare_decimal_numbers_as_numbers(shop: Shop) -> None:
    _as_superuser(shop, "UPDATE customer SET rating = 8 WHERE customer_id = 1")
    limited = await _limited(shop, where("rating", lt="9"), where("rating", gt="5"))
    record = await _first(shop, limited)

    changed = await shop.inside.value(limited, "customer", "update", id=record["id"], rating="8.50")
    refused = [await _refusal(shop, limited, "update", id=record["id"], rating=each) for each in ("10", "5.0", "-8")]

    assert changed["rating"] == "8.5000"
    assert refused == ["no such record"] * 3


@ON_POSTGRES
async def test_a_limited_writer_reaches_no_other_row(shop: Shop) -> None:
    records = await shop.inside.value(shop.inside.administrator(), "customer", "list")
    limited = await _limited(shop, where("status", eq="new"))
    (own,) = await shop.inside.value(limited, "customer", "list")
    hidden = next(each for each in records if each["status"] == "blocked")

    refused = [
        await _refusal(shop, limited, "update", id=hidden["id"], visits=1),
        await _refusal(shop, limited, "update", id=own["id"], status="blocked"),
        await _refusal(shop, limited, "create", first_name="Mia", status="blocked"),
        await _refusal(shop, limited, "create", first_name="Mia"),
    ]

    assert refused == ["no such record"] * 4


RAISED = (
    f"RAISE EXCEPTION 'bob{MARK}' USING DETAIL = 'bob{MARK}', HINT = 'bob{MARK}'",
    f"RAISE WARNING 'bob{MARK}'; RAISE NOTICE 'bob{MARK}'; RAISE INFO 'bob{MARK}'",
    *(
        f"RAISE EXCEPTION 'bob{MARK}' USING ERRCODE = '{state}', SCHEMA = 'public', TABLE = 'customer', "
        f"CONSTRAINT = 'bob{MARK}', COLUMN = 'bob{MARK}'"
        for state in ("23505", "23502", "23503", "23514", "42501", "42P01", "0A000", "25P02", "40001", "53200")
    ),
)


@pytest.mark.parametrize("body", RAISED)
@ON_POSTGRES
async def test_messages_of_a_trigger_reach_neither_the_caller_nor_the_log(
    shop: Shop, caplog: pytest.LogCaptureFixture, body: str
) -> None:
    root = shop.inside.administrator()
    record = await _first(shop, root)
    _as_superuser(shop, _trigger(f"{body}; RETURN new;"))
    caplog.set_level(0)

    detail = ""
    with capture_logs() as logs:
        try:
            await shop.inside.value(root, "customer", "update", id=record["id"], visits=8)
        except Refused as refused:
            detail = refused.detail

    assert f"bob{MARK}" not in f"{logs} {caplog.text} {detail}"


@ON_POSTGRES
async def test_a_trigger_that_fails_at_the_commit_is_refused_without_its_text(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    root = shop.inside.administrator()
    record = await _first(shop, root)
    # Later runs of the trigger are deferred again, to the end of the transaction.
    _as_superuser(
        shop,
        f"""CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
            IF new.customer_id = 3 THEN RAISE 'bob{MARK}'; END IF;
            SET CONSTRAINTS ALL DEFERRED;
            UPDATE public.customer SET rating = 1 WHERE customer_id = new.customer_id + 1;
            RETURN new;
        END$$""",
        "CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON customer DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
        "EXECUTE FUNCTION late()",
    )
    caplog.set_level(0)

    with capture_logs() as logs:
        detail = await _refusal(shop, root, "update", id=record["id"], rating="3")

    assert detail == "the connected database refused this"
    assert f"bob{MARK}" not in f"{logs} {caplog.text}"
    assert _as_superuser(shop, "SELECT rating::text FROM customer WHERE customer_id = 1") == [("4.5000",)]


class Summary(Model, table=Table("summary", key="customer_id", writable=True)):
    """A row of a view."""

    first_name = Text()


@pytest.fixture
async def view_shop(postgres_cluster: Cluster, postgres_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a view whose trigger returns a row that it has not written."""
    url = make_postgres(postgres_cluster, postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = postgres_url.rpartition("/")[2]
        connection.execute(b"CREATE VIEW summary AS SELECT customer_id, first_name FROM customer")
        connection.execute(_trigger("RETURN new;").encode())
        connection.execute(
            b"CREATE TRIGGER idle INSTEAD OF UPDATE ON summary FOR EACH ROW EXECUTE FUNCTION note_change()"
        )
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO reader_{name}".encode())
        connection.execute(f"GRANT SELECT, INSERT, UPDATE ON summary TO reader_{name}".encode())
    registry = Registry([base_models.MODULE, Module("views", version="1.0.0", models=(Summary,))])
    async with open_shop(url, tmp_path, registry, is_shared=True) as opened:
        yield opened


async def test_a_view_is_not_written(view_shop: Shop) -> None:
    store = view_shop.inside.service.engine.adopted["summary"]

    assert isinstance(store, AdoptedStore)
    assert "take writable out" in store.suspensions.reasons["summary"]
