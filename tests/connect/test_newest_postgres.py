"""Tables with what PostgreSQL 18 brings are read: virtual columns, keys of version 7, constraints without enforcement.
Older servers skip these tests."""

from pathlib import Path

import pytest

from countersign.declare import text
from tests.connect.conftest import drafted
from tests.connect.test_try import serve_and_read
from tests.servers.postgres import Cluster, PostgresFactory

SCHEMA = (
    "CREATE EXTENSION btree_gist",
    """
    CREATE TABLE visit (
        id uuid PRIMARY KEY DEFAULT uuidv7(),
        net numeric(10, 2) NOT NULL,
        gross numeric(10, 2) GENERATED ALWAYS AS (net * 1.2) VIRTUAL,
        guest_name text NOT NULL,
        CONSTRAINT positive CHECK (net > 0) NOT ENFORCED
    )
    """,
    """
    CREATE TABLE room_price (
        room integer NOT NULL, during daterange NOT NULL, price numeric(10, 2),
        PRIMARY KEY (room, during WITHOUT OVERLAPS)
    )
    """,
    "INSERT INTO visit (net, guest_name) VALUES (10, 'xMARKx Lovelace'), (20, 'xMARKx Hopper')",
    "INSERT INTO room_price VALUES (1, daterange('2026-01-01', '2026-02-01'), 90)",
)


@pytest.fixture
def newest_url(postgres_cluster: Cluster, new_postgres_url: PostgresFactory) -> str:
    """The address of a database with these tables."""
    version = int(postgres_cluster.sql("SHOW server_version_num"))
    if version < 180_000:
        pytest.skip(f"needs PostgreSQL 18, and this is {version // 10_000}: see `make newest-postgres`")
    url = new_postgres_url()
    postgres_cluster.sql(*SCHEMA, database=url.rpartition("/")[2])
    return url


def test_a_table_with_a_virtual_column_and_a_key_of_version_7_is_read(newest_url: str, tmp_path: Path) -> None:
    module_draft = drafted(newest_url, "newest")

    serve_and_read(newest_url, module_draft, tmp_path)

    written = text.write(module_draft.text)
    assert 'Table("public.visit", key="id"' in written
    assert "gross = Decimal()" in written


def test_a_key_over_periods_is_no_key(newest_url: str) -> None:
    assert [place for place, _ in drafted(newest_url, "newest").report.left_out] == ["public.room_price"]
