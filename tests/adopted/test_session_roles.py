"""Statements on tables of a PostgreSQL database of others run with the role of the person who calls, and no other
statement does."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from countersign.declare import DeclarationError, Module
from countersign.declare.registry import Registry
from countersign.kernel.errors import Refused
from countersign.records import base_models
from countersign.records.access.view import Caller
from countersign.records.adopted import store
from countersign.records.adopted.privileges import WideRights
from countersign.records.adopted.store import AdoptedStore
from tests.adopted.shop import MARK, Shop, make_postgres, make_sqlite, open_shop
from tests.adopted.writable import shop_registry
from tests.servers.postgres import Cluster

TABLES = """
ALTER TABLE customer ADD COLUMN written_by text DEFAULT current_user;
ALTER TABLE customer ENABLE ROW LEVEL SECURITY;
CREATE ROLE north_{name}; CREATE ROLE south_{name};
GRANT USAGE ON SCHEMA public TO north_{name}, south_{name};
GRANT SELECT, INSERT, UPDATE ON customer, country, "Orders", line TO north_{name}, south_{name};
GRANT USAGE ON SEQUENCE customer_customer_id_seq TO north_{name}, south_{name};
CREATE POLICY north ON customer TO north_{name} USING (customer_id <> 3);
CREATE POLICY south ON customer TO south_{name} USING (customer_id = 3);
GRANT north_{name}, south_{name} TO reader_{name};
GRANT CREATE ON DATABASE {name} TO reader_{name};
SELECT setval('customer_customer_id_seq', 3);
"""
NORTH, SOUTH = [f"Ada {MARK}", f"Bob {MARK}"], [f"Zoë {MARK}"]


def _roles(name: str) -> dict[str, str]:
    return {"north": f"north_{name}", "south": f"south_{name}"}


@pytest.fixture(params=["own tables in a file", "own tables in the same database"])
async def shop(
    request: pytest.FixtureRequest,
    postgres_cluster: Cluster,
    postgres_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Shop]:
    """The service over a shop with two roles, which reads over one connection."""
    monkeypatch.setattr(store, "MAX_STATEMENTS", 1)
    url = make_postgres(postgres_cluster, postgres_url)
    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(TABLES.format(name=name).encode())
    is_shared = request.param == "own tables in the same database"
    registry = shop_registry(session_roles=_roles(name))
    async with open_shop(url, tmp_path, registry, is_shared=is_shared) as opened:
        yield opened


WRITABLE = pytest.mark.parametrize("shop", ["own tables in the same database"], indirect=True)


def _with_roles(shop: Shop, *roles: str) -> Caller:
    person = replace(shop.inside.administrator(), roles=frozenset(roles))
    adopted = shop.inside.service.engine.adopted["customer"]
    assert isinstance(adopted, AdoptedStore)
    return adopted.narrowed(person)


async def _names(shop: Shop, caller: Caller) -> list[str]:
    return sorted(record["first_name"] for record in await shop.inside.value(caller, "customer", "list"))


async def test_each_caller_reads_what_its_role_may_read(shop: Shop) -> None:
    north, south = _with_roles(shop, "north"), _with_roles(shop, "south", "other")

    assert await _names(shop, north) == NORTH
    assert await _names(shop, south) == SOUTH
    (zoe,) = await shop.inside.value(south, "customer", "list")
    with pytest.raises(Refused, match="no such record"):
        await shop.inside.value(north, "customer", "get", id=zoe["id"])


async def test_the_next_user_of_the_connection_does_not_have_the_role(shop: Shop) -> None:
    callers = [_with_roles(shop, "north"), _with_roles(shop, "south")] * 8

    assert await asyncio.gather(*(_names(shop, caller) for caller in callers)) == [NORTH, SOUTH] * 8
    adopted = shop.inside.service.engine.adopted["customer"]
    assert isinstance(adopted, AdoptedStore)
    ((user,),) = await adopted.database.scan("SELECT current_user")
    assert user == f"reader_{shop.url.rpartition('/')[2]}"


async def test_a_refused_statement_leaves_no_role_to_the_next_caller(shop: Shop) -> None:
    shop.change(f"REVOKE SELECT ON customer FROM north_{shop.url.rpartition('/')[2]}")

    with pytest.raises(Refused):
        await _names(shop, _with_roles(shop, "north"))

    assert await _names(shop, _with_roles(shop, "south")) == SOUTH


@WRITABLE
async def test_rows_are_written_with_the_role_and_the_audit_is_not(shop: Shop) -> None:
    north = _with_roles(shop, "north")

    created = await shop.inside.value(north, "customer", "create", first_name="Mia", visits=1)
    await shop.inside.value(north, "customer", "update", id=created["id"], visits=2)

    name = shop.url.rpartition("/")[2]
    assert shop.rows("SELECT written_by, visits FROM customer WHERE customer_id = 4") == [(f"north_{name}", 2)]
    entries = await shop.inside.rows("SELECT command FROM audit_entry WHERE model = 'customer' ORDER BY at, number")
    assert [each[0] for each in entries] == ["customer.create", "customer.update"]


@WRITABLE
async def test_a_refused_write_leaves_no_role_to_our_own_statements(shop: Shop) -> None:
    south = _with_roles(shop, "south")

    with pytest.raises(Refused):
        await shop.inside.value(south, "customer", "create", first_name="Mia")

    assert [tuple(each) for each in await shop.inside.rows("SELECT current_user")] == [
        (f"reader_{shop.url.rpartition('/')[2]}",)
    ]


@pytest.mark.parametrize("roles", [(), ("other",), ("north", "south")], ids=["none", "another", "two"])
async def test_a_caller_without_exactly_one_of_the_roles_sees_no_table(shop: Shop, roles: tuple[str, ...]) -> None:
    caller = _with_roles(shop, *roles)

    assert "customer" not in caller.view.models
    assert caller.withheld["customer"].startswith("the connected database needs exactly one of the roles north, south")


async def test_the_start_is_refused_with_a_role_that_passes_over_policies(shop: Shop) -> None:
    name = shop.url.rpartition("/")[2]
    adopted = shop.inside.service.engine.adopted["customer"]
    assert isinstance(adopted, AdoptedStore)
    registry = shop.inside.service.engine.registry
    await store.require_narrow_rights(registry, adopted.database, accepts_wide=False)

    shop.change(f"ALTER ROLE south_{name} BYPASSRLS")
    with pytest.raises(WideRights, match=f"the role south_{name} of the connected database bypasses"):
        await store.require_narrow_rights(registry, adopted.database, accepts_wide=False)

    shop.change(f"ALTER ROLE south_{name} NOBYPASSRLS; REVOKE south_{name} FROM reader_{name}")
    with pytest.raises(DeclarationError, match=f"the connected database has no role south_{name}, or"):
        await store.require_narrow_rights(registry, adopted.database, accepts_wide=False)


async def test_a_sqlite_file_has_no_roles(tmp_path: Path) -> None:
    url = make_sqlite(tmp_path / "theirs.sqlite")

    with pytest.raises(DeclarationError, match="take session_roles out"):
        async with open_shop(url, tmp_path, shop_registry(session_roles=_roles("x")), is_shared=True):
            pass


def test_two_modules_agree_on_the_role_of_the_database() -> None:
    modules = [Module(name, version="1", session_roles={"sales": f"role_{name}"}) for name in ("one", "two")]

    with pytest.raises(DeclarationError, match="another module maps sales to role_one: map it to one role"):
        Registry([base_models.MODULE, *modules])
