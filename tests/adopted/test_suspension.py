"""A model whose table has changed since its review is hidden, because the changed table may show personal values."""

import psycopg
import pytest
from structlog.testing import capture_logs

from countersign.declare import text
from countersign.declare.registry import Registry
from countersign.kernel.database import table_fingerprints
from countersign.kernel.database.open import open_existing
from countersign.kernel.errors import Refused, Unavailable
from countersign.kernel.security.encryption import MemoryCipher
from countersign.records import base_models, management
from countersign.records.adopted import store
from countersign.records.adopted.suspension import Suspensions
from tests.adopted.shop import MARK, Shop

SWAP = (
    "ALTER TABLE line RENAME COLUMN title TO spare",
    "ALTER TABLE line RENAME COLUMN secret TO title",
    "ALTER TABLE line RENAME COLUMN spare TO secret",
)
"""Statements that exchange the names of two columns. Run twice, they restore the table."""

TEXT = '''"""A shop."""

from countersign.declare import Model, Module, Table, Text


class Line(Model, table=Table("line", key=("order_id", "number"), fingerprint="{fingerprint}")):
    """A line of an order."""

    title = Text(sortable=False)
{more}

module = Module("shop", version="1.0.0", models=(Line,), search_path=("public",))
'''


def add_secret(shop: Shop) -> None:
    """Add a personal column, which no model declares."""
    shop.change("ALTER TABLE line ADD COLUMN secret text")
    shop.change(f"UPDATE line SET secret = 'Ada {MARK}'")


def swap(shop: Shop) -> None:
    """Exchange the names of a clear column and a personal column."""
    for statement in SWAP:
        shop.change(statement)


def create_view(shop: Shop, title: str) -> None:
    """Create a view of the lines with this expression as the title."""
    shop.change(f"CREATE VIEW shown AS SELECT number AS order_id, number, {title} AS title FROM line")
    if not shop.url.startswith("sqlite"):
        shop.change("GRANT SELECT ON shown TO PUBLIC")


async def suspended_at_start(shop: Shop, fingerprint: str, more: str = "") -> tuple[frozenset[str], str]:
    """Return the models that a start with this fingerprint suspends, and the fingerprint that its log proposes. `more`
    declares more fields."""
    module = text.build(text.read(TEXT.format(fingerprint=fingerprint, more=more)), "shop.py")
    registry = Registry((base_models.MODULE, module))
    existing = await store.open_adopted(registry, shop.url, 5.0)
    try:
        with capture_logs() as logs:
            stores = await store.stores(registry, existing, b"x" * 32)
    finally:
        await existing.close()
    proposed = [str(each["fingerprint"]) for each in logs if each.get("model") == "line"]
    return stores["line"].suspensions.models, proposed[0] if proposed else ""


async def test_columns_that_exchange_their_names_show_no_personal_text(shop: Shop) -> None:
    add_secret(shop)
    headers = {"Authorization": f"Bearer {await shop.token_of(await shop.inside.member())}"}
    assert "Tea" in (await shop.http.post("/api/line/list", json={}, headers=headers)).text
    swap(shop)

    with capture_logs() as logs:
        await shop.suspensions.check()
    listed = await shop.http.post("/api/line/list", json={}, headers=headers)
    meta = await shop.http.get("/api/meta", headers=headers)
    others = await shop.http.post("/api/order/search", json={"expand": ["customer"]}, headers=headers)

    assert (listed.status_code, others.status_code) == (404, 200)
    assert MARK not in listed.text + meta.text
    assert '"line"' not in meta.text
    assert [(each["model"], each["log_level"]) for each in logs] == [("line", "error")]

    swap(shop)
    await shop.suspensions.check()
    assert "Tea" in (await shop.http.post("/api/line/list", json={}, headers=headers)).text


async def test_a_caller_from_before_the_change_reads_nothing(shop: Shop) -> None:
    add_secret(shop)
    caller = shop.inside.administrator()
    swap(shop)
    await shop.suspensions.check()

    for command in ("list", "search", "export"):
        with pytest.raises(Unavailable, match="changed since its review"):
            await shop.inside.value(caller, "line", command)
    with pytest.raises(Unavailable, match="changed since its review"):
        await shop.inside.value(caller, "line", "count_by", field="order")


async def test_refs_to_a_suspended_model_are_hidden(shop: Shop) -> None:
    headers = {"Authorization": f"Bearer {await shop.token_of(await shop.inside.member())}"}
    shop.change("ALTER TABLE customer RENAME COLUMN email TO mail")
    shop.change("ALTER TABLE customer RENAME COLUMN note TO email")

    await shop.suspensions.check()
    listed = await shop.http.post("/api/order/list", json={}, headers=headers)
    expanded = await shop.http.post("/api/order/search", json={"expand": ["customer"]}, headers=headers)
    meta = await shop.http.get("/api/meta", headers=headers)

    assert listed.status_code == 200
    assert all("customer" not in each for each in listed.json()["value"])
    assert expanded.status_code == 400
    assert meta.status_code == 200


async def test_a_field_of_a_column_that_the_fingerprint_does_not_cover_suspends_its_model(shop: Shop) -> None:
    _, fingerprint = await suspended_at_start(shop, "0" * 16)
    add_secret(shop)
    more = "    secret = Text()\n"

    suspended, proposed = await suspended_at_start(shop, fingerprint, more)

    assert suspended == {"line"}
    assert (await suspended_at_start(shop, proposed, more))[0] == frozenset()


async def test_an_error_of_a_changed_table_suspends_its_model_at_once(shop: Shop) -> None:
    shop.change("ALTER TABLE line RENAME COLUMN title TO name")

    with pytest.raises(Refused):
        await shop.inside.value(shop.inside.administrator(), "line", "list")

    assert shop.suspensions.models == {"line"}


async def test_a_start_leaves_out_a_model_whose_columns_have_exchanged_their_names(shop: Shop) -> None:
    add_secret(shop)
    _, fingerprint = await suspended_at_start(shop, "0" * 16)
    assert (await suspended_at_start(shop, fingerprint))[0] == frozenset()
    swap(shop)

    suspended, proposed = await suspended_at_start(shop, fingerprint)

    assert suspended == {"line"}
    assert proposed != fingerprint
    assert (await suspended_at_start(shop, proposed))[0] == frozenset()


async def test_a_column_that_is_added_suspends_nothing(shop: Shop) -> None:
    _, fingerprint = await suspended_at_start(shop, "0" * 16)
    add_secret(shop)

    await shop.suspensions.check()

    assert shop.suspensions.models == frozenset()
    assert (await suspended_at_start(shop, fingerprint))[0] == frozenset()


async def test_another_type_or_key_of_a_table_suspends_its_model(shop: Shop) -> None:
    if shop.url.startswith("sqlite"):
        pytest.skip("SQLite changes neither the type nor the key of a table")
    shop.change("ALTER TABLE line ALTER COLUMN title TYPE bytea USING title::bytea")
    shop.change("ALTER TABLE country ENABLE ROW LEVEL SECURITY")
    shop.change('ALTER TABLE "Orders" DROP CONSTRAINT "Orders_customer_id_fkey"')

    await shop.suspensions.check()

    assert shop.suspensions.models == {"line", "country", "order"}


async def test_longer_texts_and_empty_values_suspend_nothing(shop: Shop) -> None:
    if shop.url.startswith("sqlite"):
        pytest.skip("SQLite changes neither the type nor the key of a table")
    shop.change("ALTER TABLE line ALTER COLUMN title TYPE varchar(200)")
    shop.change("ALTER TABLE country ALTER COLUMN title DROP NOT NULL")
    await shop.suspensions.check()
    assert shop.suspensions.models == {"line"}, "text and varchar are different types"
    shop.change("ALTER TABLE line ALTER COLUMN title TYPE text")
    await shop.suspensions.check()

    assert shop.suspensions.models == frozenset()


async def test_a_view_with_another_text_suspends_its_model(shop: Shop) -> None:
    create_view(shop, "title")
    shop_text = TEXT.replace('"line"', '"shown"').format(fingerprint="", more="")
    registry = Registry((base_models.MODULE, text.build(text.read(shop_text), "shop.py")))
    existing = await store.open_adopted(registry, shop.url, 5.0)
    try:
        suspensions: Suspensions = (await store.stores(registry, existing, b"x" * 32))["line"].suspensions
        await suspensions.check()
        assert suspensions.models == frozenset()
        shop.change("DROP VIEW shown")
        create_view(shop, "'Ada'")
        await suspensions.check()
        assert suspensions.models == {"line"}
    finally:
        await existing.close()


async def test_a_key_that_is_no_longer_unique_suspends_its_model(shop: Shop) -> None:
    shop.change("CREATE TABLE badge (code varchar(10) NOT NULL, title text)")
    shop.change("CREATE UNIQUE INDEX badge_code ON badge (code)")
    if not shop.url.startswith("sqlite"):
        shop.change("GRANT SELECT ON badge TO PUBLIC")
    badge_text = TEXT.replace('"line"', '"badge"').replace('("order_id", "number")', '"code"')
    module = text.build(text.read(badge_text.format(fingerprint="", more="")), "shop.py")
    registry = Registry((base_models.MODULE, module))
    existing = await store.open_adopted(registry, shop.url, 5.0)
    try:
        suspensions: Suspensions = (await store.stores(registry, existing, b"x" * 32))["line"].suspensions
        shop.change("CREATE INDEX badge_title ON badge (title)")
        await suspensions.check()
        assert suspensions.models == frozenset()
        shop.change("DROP INDEX badge_code")
        await suspensions.check()
        assert suspensions.models == {"line"}
        shop.change("CREATE UNIQUE INDEX badge_code ON badge (code)")
        await suspensions.check()
        assert suspensions.models == frozenset()
    finally:
        await existing.close()


async def test_the_readiness_and_the_metrics_name_suspended_models(shop: Shop) -> None:
    checks = management.service_checks(shop.inside.service)
    (check,) = (each for each in checks.checks if each.name == "records connected tables")
    assert await check.run() == "4 models, none suspended"
    shop.change("ALTER TABLE line RENAME COLUMN title TO name")

    await shop.suspensions.check()

    assert "1 of 4 models suspended: line: " in await check.run()
    assert {each.value for each in await checks.measure() if each.family is management.SUSPENDED} == {1}


async def test_a_view_over_a_view_with_another_text_suspends_its_model(shop: Shop) -> None:
    shop.change("CREATE VIEW inner_view AS SELECT number AS order_id, number, title FROM line")
    shop.change("CREATE VIEW shown AS SELECT order_id, number, title FROM inner_view")
    if not shop.url.startswith("sqlite"):
        shop.change("GRANT SELECT ON shown TO PUBLIC")
    shop_text = TEXT.replace('"line"', '"shown"').format(fingerprint="", more="")
    registry = Registry((base_models.MODULE, text.build(text.read(shop_text), "shop.py")))
    existing = await store.open_adopted(registry, shop.url, 5.0)
    try:
        suspensions: Suspensions = (await store.stores(registry, existing, b"x" * 32))["line"].suspensions
        assert suspensions.models == frozenset()
        if shop.url.startswith("sqlite"):
            shop.change("DROP VIEW inner_view")
            shop.change("CREATE VIEW inner_view AS SELECT number AS order_id, number, order_id AS title FROM line")
        else:
            title = "order_id::text AS title"
            shop.change(f"CREATE OR REPLACE VIEW inner_view AS SELECT number AS order_id, number, {title} FROM line")
        await suspensions.check()
        assert suspensions.models == {"line"}
    finally:
        await existing.close()


async def test_a_domain_over_another_type_suspends_its_model(shop: Shop) -> None:
    if shop.url.startswith("sqlite"):
        pytest.skip("SQLite has no domains")
    shop.change("CREATE DOMAIN word AS text; CREATE DOMAIN spare AS integer")
    shop.change("CREATE TABLE badge (code int PRIMARY KEY, title word); GRANT SELECT ON badge TO PUBLIC")
    badge = TEXT.replace('"line"', '"badge"').replace('("order_id", "number")', '"code"')
    registry = Registry((base_models.MODULE, text.build(text.read(badge.format(fingerprint="", more="")), "shop.py")))
    existing = await store.open_adopted(registry, shop.url, 5.0)
    try:
        suspensions: Suspensions = (await store.stores(registry, existing, b"x" * 32))["line"].suspensions
        assert suspensions.models == frozenset()
        shop.change("ALTER DOMAIN word RENAME TO old; ALTER DOMAIN spare RENAME TO word")
        shop.change("ALTER TABLE badge ALTER COLUMN title TYPE word USING NULL")
        await suspensions.check()
        assert suspensions.models == {"line"}
    finally:
        await existing.close()


async def test_a_foreign_table_with_another_source_has_another_fingerprint(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION postgres_fdw")
        connection.execute("CREATE SERVER theirs FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1')")
        connection.execute("CREATE FOREIGN TABLE far (id int, label text) SERVER theirs OPTIONS (table_name 'near')")
        connection.execute("CREATE VIEW shown AS SELECT id, label FROM far")
    fingerprints_by_change: list[list[str]] = []
    for statement in (
        "SELECT 1",
        "ALTER FOREIGN TABLE far ALTER COLUMN label OPTIONS (ADD column_name 'email')",
        "ALTER FOREIGN TABLE far OPTIONS (SET table_name 'person')",
        "ALTER SERVER theirs OPTIONS (SET host '127.0.0.2')",
    ):
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(statement)
        existing = await open_existing(postgres_url, pool=1, read_deadline_s=5.0, new_cipher=MemoryCipher)
        try:
            tables = [("public", "far"), ("public", "shown")]
            definitions = await table_fingerprints.read("postgres", existing.scan, tables)
            fingerprints_by_change.append([definitions[table].fingerprint(()) for table in tables])
        finally:
            await existing.close()

    for fingerprints in zip(*fingerprints_by_change, strict=True):
        assert len(set(fingerprints)) == len(fingerprints_by_change)


async def test_functions_of_a_view_and_children_of_a_table_change_fingerprints(postgres_url: str) -> None:
    function = "FUNCTION shade_of(int) RETURNS text LANGUAGE sql BEGIN ATOMIC"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE item (id int PRIMARY KEY, colour text, diagnosis text)")
        connection.execute(f"CREATE {function} SELECT colour FROM item WHERE id = $1; END".encode())
        connection.execute("CREATE VIEW shown AS SELECT id, shade_of(id) AS shade FROM item")
    fingerprints_by_change: list[list[str]] = []
    for statement in (
        "SELECT 1",
        f"CREATE OR REPLACE {function} SELECT diagnosis FROM item WHERE id = $1; END",
        "CREATE TABLE child () INHERITS (item)",
    ):
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(statement.encode())
        existing = await open_existing(postgres_url, pool=1, read_deadline_s=5.0, new_cipher=MemoryCipher)
        try:
            tables = [("public", "item"), ("public", "shown")]
            definitions = await table_fingerprints.read("postgres", existing.scan, tables)
            fingerprints_by_change.append([definitions[table].fingerprint(()) for table in tables])
        finally:
            await existing.close()

    items, views = zip(*fingerprints_by_change, strict=True)
    assert (items[0] == items[1], items[1] == items[2]) == (True, False)
    assert (views[0] == views[1], views[1] == views[2]) == (False, True)
