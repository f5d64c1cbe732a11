"""Roles, encodings and settings of an existing database, and files of other users."""

import sqlite3
from pathlib import Path

import psycopg
import pytest
from structlog.testing import capture_logs

from countersign.kernel.database import sqlite_read_only
from countersign.kernel.database.open import open_existing
from countersign.kernel.errors import InvalidRequest, Unavailable
from countersign.kernel.security.encryption import MemoryCipher
from countersign.records.adopted import store
from countersign.records.adopted.privileges import WideRights
from tests.adopted.shop import REGISTRY, Shop, make_postgres, open_shop
from tests.adopted.test_odd_values import NOTE, registry_of
from tests.servers.postgres import Cluster

WARNING = "the role of the connected database may do more than read; use a role that has SELECT only"


async def warnings_of(url: str, *, accepts_wide: bool) -> list[object]:
    """Return the warnings about the role of this address."""
    existing = await store.open_adopted(REGISTRY, url, 5.0)
    try:
        with capture_logs() as logs:
            await store.require_narrow_rights(REGISTRY, existing, accepts_wide=accepts_wide)
    finally:
        await existing.close()
    return [each["role"] for each in logs if each["event"] == WARNING]


async def test_a_role_that_reads_rows_hidden_from_others_is_refused_unless_it_is_accepted(
    postgres_cluster: Cluster, postgres_url: str
) -> None:
    reader = make_postgres(postgres_cluster, postgres_url)
    name = postgres_url.rpartition("/")[2]

    def grant(statement: str) -> None:
        postgres_cluster.sql(statement, database=name)

    async def refused(url: str, reason: str, warning: str) -> None:
        with pytest.raises(WideRights, match=f"the role of the connected database {reason}, so") as caught:
            await warnings_of(url, accepts_wide=False)
        assert "--accept-wide-rights" in caught.value.resolution
        assert await warnings_of(url, accepts_wide=True) == [warning]

    assert await warnings_of(reader, accepts_wide=False) == []
    await refused(postgres_url, "is a superuser", "is a superuser")
    grant(f"ALTER ROLE reader_{name} BYPASSRLS")
    await refused(reader, "bypasses row-level security", "bypasses row-level security")
    grant(f"ALTER ROLE reader_{name} NOBYPASSRLS")
    grant(f"GRANT INSERT ON line TO reader_{name}")
    assert await warnings_of(reader, accepts_wide=False) == ["may change tables"]
    grant(f"ALTER TABLE line OWNER TO reader_{name}")
    await refused(reader, "owns tables", "owns tables, may change tables")


async def test_a_wal_file_of_another_user_is_refused_and_no_file_is_left_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "theirs.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE note (k INTEGER PRIMARY KEY, title TEXT)")
    connection.close()
    own_user = path.stat().st_uid
    monkeypatch.setattr(sqlite_read_only, "effective_user", lambda: own_user + 1)

    with pytest.raises(Unavailable, match="belongs to another user"):
        await open_existing(f"sqlite:///{path}", pool=1, read_deadline_s=1.0, new_cipher=MemoryCipher)

    assert [each.name for each in tmp_path.iterdir()] == ["theirs.sqlite"]
    monkeypatch.undo()
    existing = await open_existing(f"sqlite:///{path}", pool=1, read_deadline_s=1.0, new_cipher=MemoryCipher)
    assert await existing.scan("SELECT title FROM note") == []
    await existing.close()


@pytest.mark.parametrize("encoding", ["LATIN1", "UTF8"])
async def test_texts_of_a_database_with_another_encoding_are_found(
    postgres_cluster: Cluster, postgres_url: str, tmp_path: Path, encoding: str
) -> None:
    name = f"{postgres_url.rpartition('/')[2]}_{encoding.lower()}"
    options = "TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    postgres_cluster.sql(f"CREATE DATABASE {name} ENCODING '{encoding}' {options}")
    url = f"{postgres_url.rpartition('/')[0]}/{name}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE note (k int PRIMARY KEY, title text)")
        connection.execute("INSERT INTO note VALUES (1, 'Zoë'), (2, 'b')")
    async with open_shop(url, tmp_path, registry_of(NOTE)) as shop:
        notes = await shop.inside.value(
            shop.inside.administrator(), "note", "list", filter=[{"field": "title", "op": "contains", "value": "OË"}]
        )
    postgres_cluster.sql(f"DROP DATABASE {name}")

    assert [each["title"] for each in notes] == ["Zoë"]


async def test_backslashes_in_a_statement_are_no_escapes(postgres_url: str) -> None:
    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET standard_conforming_strings = off".encode())
    existing = await open_existing(postgres_url, pool=1, read_deadline_s=5.0, new_cipher=MemoryCipher)
    try:
        assert [tuple(row) for row in await existing.scan(r"SELECT 'a\'")] == [("a\\",)]
    finally:
        await existing.close()


async def test_too_many_values_are_a_fault_of_the_request(shop: Shop) -> None:
    existing = await store.open_adopted(REGISTRY, shop.url, 5.0)
    try:
        with pytest.raises(InvalidRequest, match="more than 32000 values"):
            await existing.scan("SELECT 1", *range(40_000))
    finally:
        await existing.close()
