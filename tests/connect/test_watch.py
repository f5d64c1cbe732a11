"""The SQL of `countersign connect watch` creates triggers in databases with any names, and in all partitions."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

import psycopg
import pytest

from countersign.connect import postgres, rights, watch
from countersign.connect.draft import Draft
from countersign.declare import Declared, Model, Table, Text
from countersign.declare.table import quoted
from tests.connect.conftest import SCHEMAS, DatabaseFactory, drafted
from tests.connect.test_rights import granted, models_of, role_of
from tests.servers.postgres import Cluster, PostgresFactory

RECORDS = "SELECT relation, operation, key, columns, row_count FROM countersign_watch.outside_change ORDER BY id"
PARTITIONED = """
CREATE TABLE visit (day date NOT NULL, number integer NOT NULL, guest text, PRIMARY KEY (day, number))
    PARTITION BY RANGE (day);
CREATE TABLE visit_of_2026 PARTITION OF visit FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE TABLE visit_of_2027 (guest text, number integer NOT NULL, day date NOT NULL);
ALTER TABLE visit ATTACH PARTITION visit_of_2027 FOR VALUES FROM ('2027-01-01') TO ('2028-01-01');
"""


class Visit(Model, table=Table("visit", key=("day", "number"))):
    """A visit."""

    guest = Text()


def watched(cluster: Cluster, url: str, models: Mapping[str, Declared]) -> None:
    """Run the SQL for the role of the database as the superuser."""
    name = url.rpartition("/")[2]
    cluster.sql(f"CREATE ROLE {role_of(url)} LOGIN", database=name)
    cluster.sql(watch.script(models.values(), role_of(url), "module.py"), database=name)


@pytest.mark.parametrize("name", sorted(path.stem for path in SCHEMAS.glob("*.sql")))
def test_every_table_of_a_schema_is_watched(
    name: str, schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url(name)
    models = models_of(drafted(url, name))

    watched(postgres_cluster, url, models)

    tables = watch.watched_tables(models.values())
    with psycopg.connect(url, autocommit=True) as connection:
        for table in tables:
            connection.execute(f"DELETE FROM {quoted(table.schema)}.{quoted(table.name)} WHERE false".encode())
            with suppress(psycopg.errors.RaiseException):  # a trigger of the schema refuses it
                connection.execute(f"TRUNCATE {quoted(table.schema)}.{quoted(table.name)} CASCADE".encode())
        relations = {row[0] for row in connection.execute(RECORDS).fetchall()}
    assert relations | {'"public"."account"'} >= {each.relation for each in tables}


def test_a_table_with_hostile_names_is_watched(schema_url: DatabaseFactory, postgres_cluster: Cluster) -> None:
    url = schema_url("hostile_names")
    models = models_of(drafted(url, "hostile_names"))
    watched(postgres_cluster, url, models)
    (table,) = [each for each in watch.watched_tables(models.values()) if each.name.startswith('")')]

    with psycopg.connect(url, autocommit=True) as connection:
        for column in table.columns:
            if column not in table.key:
                place = f"{quoted(table.schema)}.{quoted(table.name)}"
                connection.execute(f"UPDATE {place} SET {quoted(column)} = 'x'".replace("%", "%%").encode())
        rows = connection.execute(RECORDS).fetchall()

    columns = [column for column in table.columns if column not in table.key]
    assert rows == [(table.relation, "update", ["1"], [column], None) for column in columns]
    assert asyncio.run(watch.unwatched(url, models.values(), role_of(url))) == []


def test_writes_to_a_partition_are_recorded_once(
    new_postgres_url: PostgresFactory, postgres_cluster: Cluster
) -> None:
    url = new_postgres_url()
    postgres_cluster.sql(PARTITIONED, database=url.rpartition("/")[2])
    models = {"visit": Visit.declared}
    watched(postgres_cluster, url, models)

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO visit VALUES ('2026-05-01', 1, 'Ada'), ('2027-05-01', 2, 'Bob')")
        connection.execute("INSERT INTO visit_of_2027 VALUES ('Mia', 3, '2027-06-01')")
        connection.execute("UPDATE visit SET day = day + 365 WHERE number = 1")
        connection.execute("UPDATE visit_of_2027 SET guest = 'Eve' WHERE number = 3")
        rows = [row[:4] for row in connection.execute(RECORDS).fetchall()]
        connection.execute(
            "CREATE TABLE visit_of_2028 PARTITION OF visit FOR VALUES FROM ('2028-01-01') TO ('2029-01-01')"
        )
    relation = '"public"."visit"'
    assert sorted(rows[:3]) == [
        (relation, "insert", ["2026-05-01", "1"], None),
        (relation, "insert", ["2027-05-01", "2"], None),
        (relation, "insert", ["2027-06-01", "3"], None),
    ]
    assert sorted(rows[3:5]) == [
        (relation, "delete", ["2026-05-01", "1"], None), (relation, "insert", ["2027-05-01", "1"], None)
    ]  # fmt: skip
    assert rows[5:] == [(relation, "update", ["2027-06-01", "3"], ["guest"])]
    assert asyncio.run(watch.unwatched(url, models.values(), role_of(url))) == ["public.visit"]


def test_the_sql_refuses_a_schema_of_another_role_and_a_role_that_does_not_exist(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    models, name = models_of(drafted(url, "shop")), url.rpartition("/")[2]
    script = watch.script(models.values(), role_of(url), "module.py")

    with pytest.raises(RuntimeError, match="run the SQL of countersign connect rights first"):
        postgres_cluster.sql(script, database=name)
    postgres_cluster.sql(f"CREATE ROLE {role_of(url)} LOGIN", database=name)
    postgres_cluster.sql(f"CREATE SCHEMA countersign_watch AUTHORIZATION {role_of(url)}", database=name)
    with pytest.raises(RuntimeError, match="belongs to another role"):
        postgres_cluster.sql(script, database=name)


def test_a_role_that_does_not_own_the_tables_creates_nothing(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    models, name = models_of(drafted(url, "shop")), url.rpartition("/")[2]
    clerk = f"clerk_of_{name}"
    postgres_cluster.sql(f"CREATE ROLE {role_of(url)} LOGIN", f"CREATE ROLE {clerk} LOGIN", database=name)
    postgres_cluster.sql(f"GRANT CREATE ON DATABASE {name} TO {clerk}", database=name)

    with (
        psycopg.connect(url.replace("postgres@", f"{clerk}@"), autocommit=True) as connection,
        pytest.raises(psycopg.errors.RaiseException, match="belongs to another role"),
    ):
        connection.execute(watch.script(models.values(), role_of(url), "module.py").encode())

    assert not postgres_cluster.sql("SELECT 1 FROM pg_namespace WHERE nspname = 'countersign_watch'", database=name)


def test_a_superuser_does_not_lend_its_rights_to_the_owner_of_a_table(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    models, name = models_of(drafted(url, "shop")), url.rpartition("/")[2]
    table = watch.watched_tables(models.values())[0]
    place = f"{quoted(table.schema)}.{quoted(table.name)}"
    postgres_cluster.sql(f"CREATE ROLE {role_of(url)} LOGIN", f"CREATE ROLE app_of_{name} LOGIN", database=name)
    postgres_cluster.sql(f"ALTER TABLE {place} OWNER TO app_of_{name}", database=name)

    # A cast of the key to text would run a function of this owner.
    with pytest.raises(RuntimeError, match=r"the table .* belongs to another role"):
        postgres_cluster.sql(watch.script(models.values(), role_of(url), "module.py"), database=name)


@pytest.mark.parametrize("key", ["kind", "kind_domain"])
def test_a_key_whose_type_belongs_to_a_third_role_is_refused(
    key: str, new_postgres_url: PostgresFactory, postgres_cluster: Cluster
) -> None:
    url = new_postgres_url()
    name = url.rpartition("/")[2]
    postgres_cluster.sql(
        f"CREATE ROLE third_of_{name}; CREATE TYPE kind AS ENUM ('a'); CREATE DOMAIN kind_domain AS kind; "
        f"CREATE TABLE visit (day {key}, number integer, guest text, PRIMARY KEY (day, number))",
        database=name,
    )
    watched(postgres_cluster, url, {"visit": Visit.declared})
    postgres_cluster.sql(f"ALTER TYPE kind OWNER TO third_of_{name}", database=name)

    with pytest.raises(RuntimeError, match="the type of the key"):
        postgres_cluster.sql(watch.script([Visit.declared], role_of(url), "module.py"), database=name)


def test_a_table_with_a_foreign_partition_is_not_watched_and_is_still_written(
    new_postgres_url: PostgresFactory, postgres_cluster: Cluster
) -> None:
    url = new_postgres_url()
    name = url.rpartition("/")[2]
    # A foreign table has no unique index.
    postgres_cluster.sql(PARTITIONED.replace(", PRIMARY KEY (day, number)", ""), database=name)
    watched(postgres_cluster, url, {"visit": Visit.declared})
    postgres_cluster.sql(
        "CREATE FOREIGN DATA WRAPPER none; CREATE SERVER elsewhere FOREIGN DATA WRAPPER none; "
        "CREATE FOREIGN TABLE visit_of_2028 PARTITION OF visit FOR VALUES FROM ('2028-01-01') TO ('2029-01-01') "
        "SERVER elsewhere",
        database=name,
    )
    postgres_cluster.sql(watch.script([Visit.declared], role_of(url), "module.py"), database=name)

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO visit VALUES ('2026-05-01', 1, 'Ada')")
        assert connection.execute(RECORDS).fetchall() == []
        triggers = connection.execute("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'changes%'").fetchone()
    assert triggers == (0,)
    assert asyncio.run(watch.unwatched(url, [Visit.declared], role_of(url))) == ["public.visit"]


def test_a_table_that_the_files_name_no_more_is_no_longer_watched(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    models, name = models_of(drafted(url, "shop")), url.rpartition("/")[2]
    watched(postgres_cluster, url, models)
    fewer = dict(list(models.items())[1:])

    postgres_cluster.sql(watch.script(fewer.values(), role_of(url), "module.py"), database=name)

    count = "SELECT count(DISTINCT tgrelid) FROM pg_trigger WHERE tgname LIKE 'changes%'"
    assert int(postgres_cluster.sql(count, database=name)) >= len(fewer)
    assert int(postgres_cluster.sql(count, database=name)) < len(models) + 1


def test_connect_check_counts_the_rights_on_the_records_as_no_more_than_needed(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    found = drafted(url, "shop")
    theirs, models = granted(postgres_cluster, url, found, role_of(url)), models_of(found)
    postgres_cluster.sql(
        watch.script(models.values(), role_of(url), "module.py"), database=url.rpartition("/")[2]
    )

    database = asyncio.run(postgres.read(theirs, []))

    assert asyncio.run(rights.excess(theirs, models, database)) == rights.Excess()
    assert asyncio.run(watch.unwatched(theirs, models.values(), role_of(url))) == []


def test_the_comparison_of_schemas_and_rights_leaves_the_watch_out(
    schema_url: DatabaseFactory, postgres_cluster: Cluster
) -> None:
    url = schema_url("shop")
    before: Draft = drafted(url, "shop")
    watched(postgres_cluster, url, models_of(before))

    after = drafted(url, "shop")

    assert after.text == before.text
    assert "countersign_watch" not in str(rights.named_columns(models_of(after).values()))
