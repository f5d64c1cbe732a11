"""Deferred constraints of connected tables are checked after the last statement of a command or plan."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import msgspec
import psycopg
import pytest

from countersign.declare import Model, Module, Number, Ref, Table, Text
from countersign.declare.registry import Registry
from countersign.kernel.errors import Refused
from countersign.records import base_models
from countersign.records.access.view import Caller
from countersign.records.approvals import decisions
from countersign.records.approvals.proposals import Proposal
from tests.adopted.shop import Shop, make_postgres, open_shop
from tests.servers.postgres import Cluster

# An invoice has at least one item at the end of each transaction, and each item a place of its own.
TABLES = """
CREATE TABLE invoice (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, title text NOT NULL);
CREATE TABLE item (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, title text, place int,
    invoice int NOT NULL REFERENCES invoice ON DELETE CASCADE,
    CONSTRAINT own_place UNIQUE (invoice, place) DEFERRABLE INITIALLY DEFERRED
);
CREATE FUNCTION has_items() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
    IF EXISTS (
        SELECT FROM invoice WHERE NOT EXISTS (SELECT FROM item WHERE item.invoice = invoice.id)
    ) THEN
        RAISE 'an invoice has no item' USING ERRCODE = '23514', CONSTRAINT = 'has_items', TABLE = 'invoice',
            SCHEMA = 'public';
    END IF;
    RETURN NULL;
END $$;
INSERT INTO invoice (title) VALUES ('tea');
INSERT INTO item (title, place, invoice) VALUES ('green', 1, 1), ('black', 2, 1);
CREATE CONSTRAINT TRIGGER has_items AFTER INSERT OR UPDATE OR DELETE ON invoice DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION has_items();
CREATE CONSTRAINT TRIGGER has_items AFTER INSERT OR UPDATE OR DELETE ON item DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION has_items();
"""


class Invoice(Model, table=Table("invoice", key="id", writable=True, deletes=True)):
    """An invoice."""

    title = Text(required=True)


class Item(Model, table=Table("item", key="id", writable=True, deletes=True)):
    """An item of an invoice."""

    title = Text()
    place = Number()
    invoice = Ref("invoice", required=True)


@pytest.fixture
async def shop(postgres_cluster: Cluster, postgres_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over invoices and their items."""
    url = make_postgres(postgres_cluster, postgres_url)
    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(TABLES.encode())
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO reader_{name}".encode())
        connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON invoice, item TO reader_{name}".encode())
    module = Module("invoices", version="1.0.0", models=(Invoice, Item), search_path=("public",))
    async with open_shop(url, tmp_path, Registry([base_models.MODULE, module]), is_shared=True) as opened:
        yield opened


@pytest.fixture
async def person(shop: Shop) -> Caller:
    """An administrator."""
    return await shop.inside.member()


async def _plan(shop: Shop, person: Caller, *steps: tuple[str, dict[str, object]]) -> str:
    """Propose the steps as an agent of the person, and return the id of the plan."""
    headers = {"Authorization": f"Bearer {await shop.token_of(person)}"}
    body = {"steps": [{"command": command, "input": input_} for command, input_ in steps]}
    answer: httpx.Response = await shop.http.post("/api/plan/propose", json=body, headers=headers)
    assert answer.status_code in (200, 202), answer.text
    return msgspec.convert(answer.json().get("value") or answer.json(), Proposal, strict=False).plan_id


async def _approve(shop: Shop, person: Caller, plan_id: str) -> decisions.Decision:
    return await decisions.approve(shop.inside.run(person), shop.inside.service.callers, plan_id)


async def _places(shop: Shop) -> dict[str, int]:
    items = await shop.inside.value(shop.inside.administrator(), "item", "list")
    return {each["title"]: each["place"] for each in items}


async def test_a_plan_may_violate_a_deferred_constraint_between_its_steps(shop: Shop, person: Caller) -> None:
    first, second = await shop.inside.value(person, "item", "list")
    places = {first["id"]: 2, second["id"]: 1}
    swap = await _plan(shop, person, *(("item.update", {"id": each, "place": place}) for each, place in places.items()))
    item = {"title": "cup", "invoice": {"$step": 0}}
    new = await _plan(shop, person, ("invoice.create", {"title": "cups"}), ("item.create", item))

    assert (await _approve(shop, person, swap)).state == "executed"
    assert (await _approve(shop, person, new)).state == "executed"
    assert await _places(shop) == {"green": 2, "black": 1, "cup": None}


async def test_a_plan_that_violates_a_deferred_constraint_at_its_end_fails(shop: Shop, person: Caller) -> None:
    (first, _) = await shop.inside.value(person, "item", "list")
    same_place = {"id": first["id"], "title": "white", "place": 2}
    plan_id = await _plan(shop, person, ("item.update", same_place), ("invoice.create", {"title": "x"}))

    with pytest.raises(decisions.NotPending, match="must be unique together"):
        await _approve(shop, person, plan_id)

    assert await _places(shop) == {"green": 1, "black": 2}
    assert len(await shop.inside.value(person, "invoice", "list")) == 1


async def test_a_cascade_may_violate_a_deferred_constraint_between_its_deletions(shop: Shop, person: Caller) -> None:
    (invoice,) = await shop.inside.value(person, "invoice", "list")

    await shop.inside.value(person, "invoice", "delete", id=invoice["id"], cascade=True)

    assert await shop.inside.value(person, "invoice", "list") == []
    assert await _places(shop) == {}


async def test_a_command_that_violates_a_deferred_constraint_writes_nothing(shop: Shop, person: Caller) -> None:
    with pytest.raises(Refused) as raised:
        await shop.inside.value(person, "invoice", "create", title="cups")

    assert raised.value.detail == "the connected database refused this"
    assert len(await shop.inside.value(person, "invoice", "list")) == 1
    assert await shop.inside.rows("SELECT id FROM audit_entry WHERE model = $1", "invoice") == []


async def test_a_transaction_that_a_trigger_has_made_read_only_is_refused(shop: Shop, person: Caller) -> None:
    shop.change(
        "CREATE FUNCTION close() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN PERFORM set_config(''transaction_read_only'', ''on'', true); RETURN NULL; END'"
    )
    shop.change("CREATE TRIGGER close AFTER UPDATE ON item FOR EACH ROW EXECUTE FUNCTION close()")
    (first, _) = await shop.inside.value(person, "item", "list")
    plan_id = await _plan(shop, person, ("item.update", {"id": first["id"], "title": "white"}))

    with pytest.raises(Refused) as raised:
        await shop.inside.value(person, "item", "update", id=first["id"], title="white")
    with pytest.raises(decisions.NotPending, match="plan is failed: the connected database refused this"):
        await _approve(shop, person, plan_id)

    assert raised.value.detail == "the connected database refused this"
    assert (await shop.inside.value(person, "item", "list"))[0] == first
