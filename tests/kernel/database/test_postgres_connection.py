"""Each reason why PostgreSQL cannot be connected to has its own text and remedy, without a password."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator

import pytest

from countersign.backup.postgres_snapshot import open_snapshot as snapshot_held
from countersign.kernel.database.open import open_database
from countersign.kernel.database.postgres_admin import advisory_lock
from countersign.kernel.database.postgres_connection import connect
from countersign.kernel.errors import Unavailable
from tests.servers.postgres import Cluster
from tests.servers.process import free_port

HBA = (
    "host all scrammed 127.0.0.1/32 scram-sha-256\n"
    "hostssl all tls_only 127.0.0.1/32 trust\n"
    "host all tls_only 127.0.0.1/32 reject\n"
)


@pytest.fixture(scope="module")
def strict_cluster(postgres_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with a user who needs a password, a user who needs TLS, and a database with restricted access."""
    hba = postgres_cluster.data / "pg_hba.conf"
    original_hba = hba.read_text()
    hba.write_text(HBA + original_hba)
    roles = ("scrammed LOGIN PASSWORD 'right'", "tls_only LOGIN", "no_login", "plain LOGIN")
    create_roles = [f"CREATE ROLE {role}" for role in roles]
    close_database = ("CREATE DATABASE closed", "REVOKE CONNECT ON DATABASE closed FROM PUBLIC")
    postgres_cluster.sql(*create_roles, *close_database, "SELECT pg_reload_conf()")
    yield postgres_cluster
    hba.write_text(original_hba)
    dropped = [f"DROP ROLE {role.partition(' ')[0]}" for role in roles]
    postgres_cluster.sql("SELECT pg_reload_conf()", "DROP DATABASE closed", *dropped)


async def connection_error(url: str) -> Unavailable:
    """Return the error of opening the database."""
    with pytest.raises(Unavailable) as refusal:
        await open_database(url, schema="s")
    return refusal.value


@pytest.mark.parametrize(
    ("login", "url_end", "why", "remedy"),
    [
        ("scrammed:wr0ng", "postgres", 'password authentication failed for user "scrammed"', "Correct user"),
        ("nobody_here:wr0ng", "postgres", 'role "nobody_here" does not exist', "CREATE ROLE"),
        ("no_login:wr0ng", "postgres", "not permitted to log in", "ALTER ROLE"),
        ("tls_only:wr0ng", "postgres", "no encryption", "sslmode=require"),
        ("plain:wr0ng", "closed", "permission denied for database", "GRANT CONNECT"),
        ("plain:wr0ng", "missing", 'database "missing" does not exist', "CREATE DATABASE"),
        ("plain:wr0ng", "postgres?sslmode=require", "does not support TLS", "sslmode"),
        ("plain:wr0ng", "postgres?sslmode=sometimes", "`sslmode` parameter", "TLS mode"),
    ],
)
async def test_a_server_that_refuses_is_reported_with_its_reason(
    strict_cluster: Cluster, login: str, url_end: str, why: str, remedy: str
) -> None:
    error_text = await connection_error(f"postgresql://{login}@127.0.0.1:{strict_cluster.port}/{url_end}")

    assert why in error_text.detail
    assert f"127.0.0.1:{strict_cluster.port}" in error_text.detail
    assert remedy in error_text.remedy
    assert "wr0ng" not in error_text.detail + error_text.remedy


async def test_a_port_where_no_server_listens_is_reported() -> None:
    port = free_port()

    error_text = await connection_error(f"postgresql://me:wr0ng@127.0.0.1:{port}/app")

    assert "connection was refused" in error_text.detail
    assert f"127.0.0.1:{port}/app" in error_text.detail
    assert "host and port in the database's address (COUNTERSIGN_DATABASE_URL, " in error_text.remedy
    assert "wr0ng" not in error_text.detail + error_text.remedy


async def test_a_port_where_another_program_listens_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering_thread = threading.Thread(target=answer_as_a_page, args=(listener,))
        answering_thread.start()

        error_text = await connection_error(f"postgresql://me:wr0ng@127.0.0.1:{listener.getsockname()[1]}/app")

        answering_thread.join()
    assert "does not answer like PostgreSQL" in error_text.detail


def answer_as_a_page(listener: socket.socket) -> None:
    """Respond to the first bytes of PostgreSQL's protocol like a web server."""
    client, _ = listener.accept()
    with client:
        client.recv(64)
        client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize(
    ("error", "why", "remedy"),
    [
        (socket.gaierror(-2, "Name or service not known"), "host name does not resolve", "Correct the host"),
        (TimeoutError(), "did not answer within 10 s", "firewall"),
        (ssl.SSLCertVerificationError(1, "bad"), "certificate that is not trusted", "sslrootcert"),
        (OSError(113, "No route to host"), "No route to host", "host, port"),
    ],
)
async def test_network_errors_are_distinguished(error: OSError, why: str, remedy: str) -> None:
    async def connecting() -> None:
        raise error

    with pytest.raises(Unavailable) as refusal:
        await connect(connecting(), "postgresql://me:wr0ng@db.example/app")

    assert why in refusal.value.detail
    assert "db.example:5432/app" in refusal.value.detail
    assert remedy in refusal.value.remedy


async def test_locks_and_backups_report_the_same_error(strict_cluster: Cluster) -> None:
    url = f"postgresql://scrammed:wr0ng@127.0.0.1:{strict_cluster.port}/postgres"

    for opening in (advisory_lock(url, "a", patience_s=0), snapshot_held(url, ("s",))):
        with pytest.raises(Unavailable, match="password authentication failed"):
            await asyncio.wait_for(opening.__aenter__(), 30)
