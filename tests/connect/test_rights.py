"""The rights of a role: the SQL for it grants what the models need, and nothing else."""

import asyncio
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from countersign.connect import draft, postgres, rights
from countersign.connect.draft import Draft
from countersign.connect.schema import Database
from countersign.declare import Declared, Table, Text, text
from countersign.declare.registry import Registry
from countersign.declare.table import quoted
from countersign.records import base_models
from tests.connect.conftest import SCHEMAS, DatabaseFactory, drafted
from tests.connect.test_try import serve_and_read
from tests.declare.sample_modules import model, registry
from tests.servers.postgres import Cluster

NAMES = sorted(path.stem for path in SCHEMAS.glob("*.sql"))


def places_of(module_draft: Draft) -> list[str]:
    """Return the tables of the draft as SQL names them."""
    return [".".join(map(quoted, relation)) for relation in rights.named_columns(models_of(module_draft).values())]


def models_of(module_draft: Draft) -> dict[str, Declared]:
    """Return the models of the draft."""
    registry = Registry((base_models.MODULE, text.build(module_draft.text, "module.py")))
    return {name: each for name, each in registry.models.items() if each.table is not None}


def granted(cluster: Cluster, url: str, module_draft: Draft, role: str) -> str:
    """Run the SQL for the role as the superuser, and return the address of the database with the role."""
    cluster.sql(rights.grants(models_of(module_draft).values(), role, "module.py"), database=url.rpartition("/")[2])
    return url.replace("postgres@", f"{role}@")


def role_of(url: str) -> str:
    """Return the name of a role that no other test uses."""
    return f"reader_of_{url.rpartition('/')[2]}"


@pytest.mark.parametrize("name", NAMES)
def test_the_role_can_serve_every_model(
    name: str, schema_url: DatabaseFactory, postgres_cluster: Cluster, tmp_path: Path
) -> None:
    url = schema_url(name)
    module_draft = drafted(url, name)

    serve_and_read(granted(postgres_cluster, url, module_draft, role_of(url)), module_draft, tmp_path)


def test_the_role_reads_the_columns_of_the_file_and_nothing_else(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    module_draft = drafted(url, "shop")
    role_url = granted(postgres_cluster, url, module_draft, role_of(url))

    with psycopg.connect(role_url, autocommit=True) as connection:
        connection.execute("SELECT customer_id, store_id, email FROM customer")
        connection.execute("SET default_transaction_read_only = off")
        for refused in (
            "SELECT password_hash FROM customer",
            "SELECT email FROM customer WHERE date_of_birth IS NULL",
            "SELECT message FROM log",
            "UPDATE customer SET email = ''",
            "DELETE FROM store",
            "TRUNCATE store",
            "CREATE TABLE records_of_ours (id integer)",
            "CREATE SCHEMA records_of_ours",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(refused.encode())


def test_the_sql_can_be_run_again_and_takes_back_what_the_file_names_no_more(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    module_draft = drafted(url, "shop")
    role_url = granted(postgres_cluster, url, module_draft, role_of(url))
    without_email = text.write(module_draft.text).replace("    email = Text", "    # email = Text")
    fewer = Draft(text.read(without_email), module_draft.report)

    granted(postgres_cluster, url, fewer, role_of(url))

    with psycopg.connect(role_url, autocommit=True) as connection:
        connection.execute("SELECT first_name FROM customer")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT email FROM customer")


@pytest.mark.parametrize("role", ['ro"le', "it's", "$$", "Käthe %I", "; DROP TABLE store; --"])
def test_a_role_can_have_any_name(role: str, schema_url: DatabaseFactory, postgres_cluster: Cluster) -> None:
    url = schema_url("codes")
    name = f"{role}{url.rpartition('_')[2]}"
    assert rights.is_role_name(name)

    module_draft = drafted(url, "codes")
    grants = rights.grants(models_of(module_draft).values(), name, "module.py")
    postgres_cluster.sql(grants, database=url.rpartition("/")[2])

    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT rolcanlogin, rolsuper FROM pg_roles WHERE rolname = %s", [name]).fetchall()
    assert rows == [(True, False)]


def test_a_table_that_the_file_names_no_more_is_taken_back(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    module_draft = drafted(url, "shop")
    role, database = role_of(url), url.rpartition("/")[2]
    role_url = granted(postgres_cluster, url, module_draft, role)
    more = f"CREATE SCHEMA other; CREATE TABLE other.t (a int); GRANT USAGE ON SCHEMA other TO {role}"
    postgres_cluster.sql(f"{more}; GRANT SELECT (a) ON other.t TO {role}", database=database)

    granted(postgres_cluster, url, drafted(url, "shop", tables=("store",)), role)

    with psycopg.connect(role_url, autocommit=True) as connection:
        connection.execute("SELECT store_id FROM store")
        for refused in (b"SELECT customer_id FROM customer", b"SELECT a FROM other.t"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(refused)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT has_schema_privilege(%s, 'other', 'USAGE')", [role]).fetchall() == [(False,)]


def test_the_settings_of_the_role_hold_in_its_database_alone(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("codes")
    role = role_of(url)
    role_url = granted(postgres_cluster, url, drafted(url, "codes"), role)

    shown = []
    for address in (role_url, f"{role_url.rpartition('/')[0]}/postgres"):
        with psycopg.connect(address) as connection:
            shown += connection.execute("SHOW default_transaction_read_only").fetchall()

    assert shown == [("on",), ("off",)]


@pytest.mark.parametrize("more", ["SUPERUSER", "CREATEDB", "owner", "records", "member"])
def test_a_role_that_may_do_more_than_read_is_not_changed(
    more: str, schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("codes")
    role, database = role_of(url), url.rpartition("/")[2]
    postgres_cluster.sql(f"CREATE ROLE {role} LOGIN {more if more.isupper() else ''}", database=database)
    if more == "owner":
        postgres_cluster.sql(f"CREATE TABLE theirs (a int); ALTER TABLE theirs OWNER TO {role}", database=database)
    if more == "records":
        # A schema of another application, with the name of the one of our tables.
        postgres_cluster.sql(f"CREATE SCHEMA records AUTHORIZATION {role}", database=database)
    if more == "member":
        postgres_cluster.sql(f"GRANT pg_read_all_data TO {role}", database=database)

    with pytest.raises(RuntimeError, match="name another one"):
        granted(postgres_cluster, url, drafted(url, "codes"), role)

    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT FROM pg_db_role_setting JOIN pg_roles ON pg_roles.oid = setrole WHERE rolname = %s", [role]
        ).fetchall()
    assert rows == []


def test_the_owner_of_the_tables_can_run_the_sql_again(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("codes")
    module_draft = drafted(url, "codes")
    role, database = role_of(url), url.rpartition("/")[2]
    granted(postgres_cluster, url, module_draft, role)
    owner = f"owner_of_{database}"
    places = places_of(module_draft)
    tables = " ".join(f"ALTER TABLE {place} OWNER TO {owner};" for place in places)
    postgres_cluster.sql(
        f"CREATE ROLE {owner} LOGIN; ALTER SCHEMA public OWNER TO {owner}; {tables}", database=database
    )

    with psycopg.connect(url.replace("postgres@", f"{owner}@"), autocommit=True) as connection:
        connection.execute(rights.grants(models_of(module_draft).values(), role, "module.py").encode())

    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT has_any_column_privilege(%s, %s, 'SELECT')", [role, places[0]]
        ).fetchall()
    assert rows == [(True,)]


def test_what_a_role_has_through_other_roles_is_named(schema_url: DatabaseFactory, postgres_cluster: Cluster) -> None:
    url = schema_url("codes")
    module_draft = drafted(url, "codes")
    role, database = role_of(url), url.rpartition("/")[2]
    role_url = granted(postgres_cluster, url, module_draft, role)
    function = "CREATE FUNCTION reveal() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'"
    postgres_cluster.sql(f"GRANT postgres TO {role}; CREATE TABLE other (a int)", database=database)
    postgres_cluster.sql(f"GRANT INSERT ON other TO {role}; {function}", database=database)
    postgres_cluster.sql(f"GRANT CREATE ON SCHEMA public TO {role}", database=database)

    assert excess_of(role_url, module_draft).reasons == (
        "it is a member of other roles",
        "it may change tables",
        "it may create tables or schemas",
        "it may run functions with the rights of their owner",
    )


@pytest.mark.parametrize("role", ["public", "none", "", "a\\b", "a\nb", "pg_reader", "é" * 32])
def test_other_names_are_refused(role: str) -> None:
    assert not rights.is_role_name(role)


def excess_of(url: str, module_draft: Draft) -> rights.Excess:
    """Return what the role of the address has beyond the draft."""
    return excess_of_models(url, models_of(module_draft))


def test_a_table_whose_deleted_rows_are_marked_needs_no_right_to_delete() -> None:
    table = Table("public.plant", key="id", writable=True, deletes=True, deleted="deleted_at")
    models = registry(model("Plant", {"title": Text()}, table=table)).models.values()

    assert rights.deletable_tables(models) == []
    assert rights.named_columns(models) == {("public", "plant"): ("id", "deleted_at", "title")}
    assert rights.writable_columns(models) == {("public", "plant"): ("deleted_at", "title")}


def test_a_new_row_may_have_a_value_in_the_column_that_marks_deleted_rows() -> None:
    table = Table("public.plant", key="id", writable=True, deleted="is_deleted")
    models = registry(model("Plant", {"title": Text()}, table=table)).models.values()

    granted_text = rights.grants(models, "reader", "plants.py")

    assert 'GRANT INSERT ("title", "is_deleted"), UPDATE ("title") ON TABLE' in granted_text


def excess_of_models(url: str, models: Mapping[str, Declared]) -> rights.Excess:
    """Return what the role of the address has beyond the models."""

    async def read() -> rights.Excess:
        database: Database = await postgres.read(url, [])
        return await rights.excess(url, models, database)

    return asyncio.run(read())


def test_what_a_role_has_beyond_the_file_is_named(schema_url: DatabaseFactory, postgres_cluster: Cluster) -> None:
    url = schema_url("shop")
    module_draft = drafted(url, "shop")
    role = role_of(url)
    role_url = granted(postgres_cluster, url, module_draft, role)
    assert excess_of(role_url, module_draft) == rights.Excess()

    database = url.rpartition("/")[2]
    postgres_cluster.sql(f"GRANT SELECT (password_hash), UPDATE (note) ON customer TO {role}", database=database)

    assert excess_of(role_url, module_draft) == rights.Excess(
        ("it may change tables",), ("public.customer.password_hash",)
    )
    assert excess_of(url, module_draft).reasons == ("it is a superuser",)


def test_a_view_is_granted_like_a_table(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    written = text.write(drafted(url, "shop", tables=("store",)).text)
    for old, new in (("public.store", "customer_list"), ("store_id", "customer_id"), ("title = ", "first_name = ")):
        written = written.replace(old, new)
    module_draft = Draft(text.read(written), draft.Report())

    role_url = granted(postgres_cluster, url, module_draft, role_of(url))

    with psycopg.connect(role_url) as connection:
        assert connection.execute("SELECT count(first_name) FROM customer_list").fetchall() == [(40,)]


def noticed(url: str, module_draft: Draft, role: str) -> list[str]:
    """Run the SQL for the role as the superuser, and return the notices and warnings of the server."""
    notices: list[str] = []
    with psycopg.connect(url, autocommit=True) as connection:
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        connection.execute(rights.grants(models_of(module_draft).values(), role, "module.py").encode())
    return notices


def test_what_policies_and_views_need_besides_is_named(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    module_draft = drafted(url, "shop", tables=("store", "customer"))
    role, database = role_of(url), url.rpartition("/")[2]
    assert noticed(url, module_draft, role) == []

    for statement in (
        "CREATE TABLE member (store_id integer, usr name)",
        "CREATE FUNCTION is_open() RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "REVOKE EXECUTE ON FUNCTION is_open() FROM PUBLIC",
        "ALTER TABLE store ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY own ON store USING (is_open() AND store_id IN (SELECT m.store_id FROM member AS m))",
        "ALTER TABLE customer ENABLE ROW LEVEL SECURITY",
    ):
        postgres_cluster.sql(statement, database=database)

    remedy = "grant them by hand after each run"
    assert sorted(noticed(url, module_draft, role)) == [
        f"public.customer has row-level security and no policy for {role}, which reads no row of it",
        f"public.store uses function public.is_open(), on which {role} has no rights: {remedy}",
        f"public.store uses table public.member, on which {role} has no rights: {remedy}",
    ]


def test_a_database_does_not_silence_the_notices(schema_url: DatabaseFactory, postgres_cluster: Cluster) -> None:
    url = schema_url("codes")
    module_draft = drafted(url, "codes")
    role, database = role_of(url), url.rpartition("/")[2]
    place = min(places_of(module_draft))
    postgres_cluster.sql(
        f"ALTER DATABASE {database} SET client_min_messages = error; ALTER TABLE {place} ENABLE ROW LEVEL SECURITY",
        database=database,
    )

    said = noticed(url, module_draft, role)

    hidden = f"has row-level security and no policy for {role}, which reads no row of it"
    assert any(each.endswith(hidden) for each in said)


def test_rights_that_another_owner_gave_do_not_stop_the_owner_of_the_tables(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("codes")
    module_draft = drafted(url, "codes")
    role, database = role_of(url), url.rpartition("/")[2]
    granted(postgres_cluster, url, module_draft, role)
    owner = f"owner_of_{database}"
    places = places_of(module_draft)
    tables = " ".join(f"ALTER TABLE {place} OWNER TO {owner};" for place in places)
    postgres_cluster.sql(
        f"CREATE ROLE {owner} LOGIN; ALTER SCHEMA public OWNER TO {owner}; {tables}",
        f"CREATE TABLE of_another (a int); GRANT SELECT ON of_another TO {role}",
        database=database,
    )

    said = noticed(url.replace("postgres@", f"{owner}@"), module_draft, role)

    assert f"the rights of {role} on public.of_another stay: postgres gave them, and has to revoke them" in said
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT has_any_column_privilege(%s, %s, 'SELECT')", [role, places[0]]).fetchall()
    assert rows == [(True,)]


def test_rights_of_other_roles_stay(schema_url: DatabaseFactory, postgres_cluster: Cluster) -> None:
    url = schema_url("codes")
    module_draft = drafted(url, "codes")
    database = url.rpartition("/")[2]
    other = f"other_of_{database}"
    place = ".".join(map(quoted, next(iter(rights.named_columns(models_of(module_draft).values())))))
    postgres_cluster.sql(f"CREATE ROLE {other} LOGIN; GRANT SELECT, INSERT ON {place} TO {other}", database=database)

    for _ in range(2):
        granted(postgres_cluster, url, module_draft, role_of(url))

    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT has_table_privilege(%s, %s, 'INSERT')", [other, place]).fetchall()
    assert rows == [(True,)]


def test_columns_that_public_may_read_are_counted(schema_url: DatabaseFactory, postgres_cluster: Cluster) -> None:
    url = schema_url("shop")
    module_draft = drafted(url, "shop")
    role_url = granted(postgres_cluster, url, module_draft, role_of(url))
    postgres_cluster.sql("GRANT SELECT (password_hash) ON customer TO PUBLIC", database=url.rpartition("/")[2])

    excess = excess_of(role_url, module_draft)

    assert (excess.columns, excess.public_count) == (("public.customer.password_hash",), 1)


@pytest.mark.parametrize("right", ["INSERT", "SELECT"])
@pytest.mark.parametrize("option", ["ON_ERROR_STOP=off", "ON_ERROR_ROLLBACK=on", "AUTOCOMMIT=off"])
@pytest.mark.parametrize("is_in_transactions", [True, False])
def test_a_role_that_others_use_keeps_its_rights_also_if_errors_are_ignored(
    right: str, option: str, is_in_transactions: bool, schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    module_draft = drafted(url, "shop", tables=("store",))
    role, database = role_of(url), url.rpartition("/")[2]
    postgres_cluster.sql(f"CREATE ROLE {role} LOGIN; GRANT {right} ON log TO {role}", database=database)

    sql = rights.grants(models_of(module_draft).values(), role, "module.py")
    if not is_in_transactions:
        # As programs do that run each statement alone.
        sql = re.sub(r"^(BEGIN|COMMIT);$", "", sql, flags=re.MULTILINE) + "COMMIT;"
    ended = subprocess.run(
        [postgres_cluster.programs / "psql", "-Xq", "-v", option, "-d", postgres_cluster.url(database)],
        input=sql, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ended.stderr.count("has a comment or rights of others, which it keeps: name another one") >= 1
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT has_table_privilege(%s, 'log', %s), has_any_column_privilege(%s, 'store', 'SELECT')",
            [role, right, role],
        ).fetchall()
    assert rows == [(True, False)]


def test_a_role_without_rights_is_taken_over(schema_url: DatabaseFactory, postgres_cluster: Cluster) -> None:
    url = schema_url("codes")
    module_draft = drafted(url, "codes")
    role = role_of(url)
    postgres_cluster.sql(f"CREATE ROLE {role} LOGIN")

    for _ in range(2):
        role_url = granted(postgres_cluster, url, module_draft, role)

    assert excess_of(role_url, module_draft) == rights.Excess()


@pytest.mark.parametrize("arguments", ["text, name, text", "text, name, name, text", "text, text, name, text, text"])
def test_a_function_of_the_database_is_not_called(
    arguments: str, schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    module_draft = drafted(url, "shop")
    role, database = role_of(url), url.rpartition("/")[2]
    function = f"public.format({arguments}) RETURNS text LANGUAGE sql AS $$ SELECT 'CREATE TABLE called ()' $$"
    postgres_cluster.sql(f"CREATE FUNCTION {function}", database=database)

    for _ in range(2):
        granted(postgres_cluster, url, module_draft, role)

    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT to_regclass('public.called')").fetchall()
    assert rows == [(None,)]


def test_a_function_of_the_database_does_not_decide_what_a_role_has(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    module_draft = drafted(url, "shop")
    role_url = granted(postgres_cluster, url, module_draft, role_of(url))
    function = "public.has_column_privilege(text, oid, smallint, text) RETURNS boolean LANGUAGE sql"
    postgres_cluster.sql(
        f"CREATE FUNCTION {function} AS 'SELECT true'",
        f"GRANT SELECT (password_hash) ON customer TO {role_of(url)}",
        database=url.rpartition("/")[2],
    )

    excess = excess_of(role_url, module_draft)

    assert (excess.columns, excess.public_count) == (("public.customer.password_hash",), 0)


def test_a_role_that_others_use_in_another_database_is_not_changed(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url, other = schema_url("codes"), schema_url("shop")
    role = role_of(url)
    postgres_cluster.sql(f"CREATE ROLE {role} LOGIN; GRANT SELECT ON log TO {role}", database=other.rpartition("/")[2])

    with pytest.raises(RuntimeError, match="has a comment or rights of others"):
        granted(postgres_cluster, url, drafted(url, "codes"), role)


def test_rights_that_neither_the_owner_nor_this_role_gave_are_named(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    module_draft = drafted(url, "shop", tables=("store",))
    role, database = role_of(url), url.rpartition("/")[2]
    granted(postgres_cluster, url, module_draft, role)
    giver = f"giver_of_{database}"
    postgres_cluster.sql(f"CREATE ROLE {giver}; GRANT SELECT ON log TO {giver} WITH GRANT OPTION", database=database)
    postgres_cluster.sql(f"SET ROLE {giver}; GRANT SELECT ON log TO {role}", database=database)

    said = noticed(url, module_draft, role)

    assert said == [f"the rights of {role} on public.log stay: {giver} gave them, and has to revoke them"]


@pytest.mark.parametrize("kind", ["NOLOGIN", "LOGIN"])
def test_a_role_with_members_is_not_changed(kind: str, schema_url: DatabaseFactory, postgres_cluster: Cluster) -> None:
    url = schema_url("codes")
    role = role_of(url)
    member = f"member_of_{role}"
    postgres_cluster.sql(f"CREATE ROLE {role} {kind}; CREATE ROLE {member} LOGIN; GRANT {role} TO {member}")

    with pytest.raises(RuntimeError, match="cannot log in, or others are members of it"):
        granted(postgres_cluster, url, drafted(url, "codes"), role)


def test_a_schema_of_another_owner_is_named(schema_url: DatabaseFactory, postgres_cluster: Cluster) -> None:
    url = schema_url("codes")
    module_draft = drafted(url, "codes")
    role, database = role_of(url), url.rpartition("/")[2]
    granted(postgres_cluster, url, module_draft, role)
    owner = f"owner_of_{database}"
    places = places_of(module_draft)
    tables = " ".join(f"ALTER TABLE {place} OWNER TO {owner};" for place in places)
    postgres_cluster.sql(
        f"CREATE ROLE {owner} LOGIN; GRANT USAGE ON SCHEMA public TO {owner}; {tables}",
        f"REVOKE ALL ON SCHEMA public FROM {role}, PUBLIC; ALTER SCHEMA public OWNER TO postgres",
        database=database,
    )

    said = noticed(url.replace("postgres@", f"{owner}@"), module_draft, role)

    assert f"{role} reads no table of the schema public: postgres has to grant USAGE on it" in said


def test_functions_of_the_database_are_not_called_by_reading_it(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    database = url.rpartition("/")[2]
    columns = "oid, smallint, text"
    postgres_cluster.sql(
        "CREATE SEQUENCE calls",
        "CREATE FUNCTION public.format(text, text, text, text) RETURNS text LANGUAGE sql AS "
        "$$ SELECT setval('public.calls', 7)::text $$",
        f"CREATE FUNCTION public.has_column_privilege({columns}) RETURNS boolean LANGUAGE sql AS "
        "$$ SELECT setval('public.calls', 7) > 0 $$",
        f"ALTER DATABASE {database} SET search_path = public, pg_catalog",
        database=database,
    )

    module_draft = drafted(url, "shop")

    assert module_draft.report.models
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT is_called FROM public.calls").fetchall() == [(False,)]


def test_a_role_for_writable_tables_writes_their_fields_and_owns_the_schema_of_our_tables(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    database, role = url.rpartition("/")[2], role_of(url)
    declared = models_of(drafted(url, "shop"))
    table, store = declared["customer"].table, declared["store"].table
    assert table is not None
    assert store is not None
    models = {
        **declared,
        "customer": replace(declared["customer"], table=replace(table, writable=True)),
        "store": replace(declared["store"], table=replace(store, writable=True, deletes=True)),
    }
    sql = rights.grants(models.values(), role, "module.py")

    for _ in range(2):
        postgres_cluster.sql(sql, database=database)
        with psycopg.connect(url.replace("postgres@", f"{role}@"), autocommit=True) as connection:
            connection.execute(b"SET default_transaction_read_only = off")
            connection.execute(b"CREATE TABLE IF NOT EXISTS records.own (a int)")
        # An entry for another role lists the rights of the owner, too.
        postgres_cluster.sql(
            "GRANT USAGE ON SCHEMA records TO pg_monitor",
            "GRANT SELECT ON records.own TO pg_monitor",
            database=database,
        )
    with psycopg.connect(url.replace("postgres@", f"{role}@")) as connection:
        connection.execute(b"SELECT a FROM records.own")
    held = excess_of_models(url.replace("postgres@", f"{role}@"), models)
    only_read = excess_of_models(url.replace("postgres@", f"{role}@"), {**models, "store": declared["store"]})

    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT relname::text, has_any_column_privilege(%s, oid, 'UPDATE'), has_table_privilege(%s, oid, 'DELETE') "
            "FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'", [role, role]
        ).fetchall()  # fmt: skip
    assert sorted(name for name, is_written, _ in rows if is_written) == ["customer", "store"]
    assert [name for name, _, is_deleted in rows if is_deleted] == ["store"]
    assert (held.reasons, only_read.reasons) == ((), ("it may change tables",))
