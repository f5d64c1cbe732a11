"""A role with wide rights reads the catalogs alone, because functions of the database would run with its rights."""

from pathlib import Path

import pytest

from countersign.cli.output import Exit
from tests.cli.conftest import Run
from tests.cli.test_connect import shop_url
from tests.servers.postgres import Cluster

TRAP = (
    "CREATE FUNCTION shift() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1'",
    "CREATE TABLE trap (id int PRIMARY KEY, title text)",
    "INSERT INTO trap VALUES (1, 'Oak')",
    "CREATE INDEX ON trap ((id + shift()))",
    "CREATE FUNCTION spring() RETURNS void LANGUAGE plpgsql AS "
    "$$ BEGIN COPY (SELECT 1) TO PROGRAM 'touch {name}'; END $$",
    "CREATE OR REPLACE FUNCTION shift() RETURNS int LANGUAGE plpgsql IMMUTABLE AS "
    "$$ BEGIN PERFORM public.spring(); RETURN 1; END $$",
)
"""A table whose owner sets a trap for superusers: planning a statement on it runs a program."""


def is_sprung(cluster: Cluster, name: str) -> bool:
    """Return whether the program of the trap has run."""
    return cluster.sql(f"SELECT (pg_stat_file('{name}', true)).size IS NOT NULL").strip() == "t"


def test_a_superuser_runs_no_function_of_the_database(
    run: Run, tmp_path: Path, postgres_url: str, postgres_cluster: Cluster
) -> None:
    database = postgres_url.rpartition("/")[2]
    name = f"ran_{database}"
    postgres_cluster.sql(*(each.replace("{name}", name) for each in TRAP), database=database)

    connected = run("connect", postgres_url, "--name", "shop")
    postgres_cluster.sql("ALTER TABLE trap ADD COLUMN label text", database=database)
    shown = run("connect", "diff", "shop.py", postgres_url)
    checked = run("connect", "check", "shop.py", postgres_url)
    accepted = run("connect", "accept", "shop.py", postgres_url, "--yes")

    assert (connected.returncode, shown.returncode) == (Exit.OK, Exit.OK), connected.stderr + shown.stderr
    assert (checked.returncode, accepted.returncode) == (Exit.REFUSED, Exit.REFUSED)
    for noted in (connected, shown):
        assert "No values are looked at: the role postgres is a superuser" in noted.stderr
    assert not is_sprung(postgres_cluster, name)
    assert "label" not in (tmp_path / "shop.py").read_text()
    run("connect", "check", "shop.py", postgres_url, "--accept-wide-rights")
    assert is_sprung(postgres_cluster, name)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("ALTER TABLE customer OWNER TO {role}", "owns tables"),
        ("ALTER ROLE {role} BYPASSRLS", "bypasses row-level security"),
        ("GRANT pg_read_server_files TO {role}", "may run programs or use files of the server"),
        ("GRANT postgres TO {role}", "may become a superuser"),
    ],
)
def test_a_role_with_wide_rights_is_refused_with_a_remedy(
    run: Run, postgres_url: str, postgres_cluster: Cluster, statement: str, reason: str
) -> None:
    url = shop_url(postgres_url, postgres_cluster)
    assert run("connect", url, "--name", "shop").returncode == Exit.OK
    database = postgres_url.rpartition("/")[2]
    assert run("connect", "check", "shop.py", url).returncode == Exit.OK
    postgres_cluster.sql(statement.format(role=f"reader_{database}"), database=database)

    refused = run("connect", "check", "shop.py", url)
    accepted = run("connect", "check", "shop.py", url, "--accept-wide-rights")

    assert refused.returncode == Exit.REFUSED
    error, why, remedy = refused.stderr.splitlines()[-3:]
    assert error == "Error: cannot read rows with this role"
    assert f"the role reader_{database}" in why
    assert reason in why
    assert "countersign connect rights MODULE" in remedy
    assert accepted.returncode == Exit.OK, accepted.stderr
