"""Lists of connected tables are read from a streaming replica while it is up to date, and say how far it is behind."""

import asyncio
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import psycopg
import pytest

from countersign.records.adopted import replica as replicas
from countersign.records.adopted.replica import ReadReplica
from tests.adopted.shop import MARK, Shop, make_postgres, open_shop
from tests.adopted.writable import shop_registry
from tests.servers.memory import memory_folder
from tests.servers.postgres import Cluster
from tests.servers.process import free_port, plain_user, run_until_ready, user_group

READS = (
    ("list", {}),
    ("list", {"limit": 2}),
    ("search", {}),
    ("count_by", {"field": "status"}),
    ("export", {}),
)


@contextmanager
def standby(cluster: Cluster) -> Iterator[int]:
    """Run a streaming replica of the server, and return its port."""
    program = cluster.programs / "pg_basebackup"
    if not program.exists():
        pytest.skip("pg_basebackup is not installed")
    user, port = plain_user(), free_port()
    folder = Path(tempfile.mkdtemp(prefix="countersign-standby-", dir=memory_folder()))
    try:
        if user:
            shutil.chown(folder, user, user_group(user))
        as_user: dict[str, Any] = {"user": user, "group": user_group(user), "extra_groups": []} if user else {}
        data = folder / "data"
        command = [program, "-D", data, "-d", cluster.url("postgres"), "-R", "-X", "stream", "-c", "fast", "--no-sync"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, **as_user)
        settings = {
            "port": port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            "max_connections": 200,
            "shared_buffers": "32MB",
            "dynamic_shared_memory_type": "mmap",
            "shared_memory_type": "mmap",
        }
        server: list[str | Path] = [cluster.programs / "postgres", "-D", data]
        for name, value in settings.items():
            server += ["-c", f"{name}={value}"]
        ready = [cluster.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        with run_until_ready(
            server,
            is_ready=lambda: subprocess.run(ready, check=False).returncode == 0,
            log=folder / "log",
            user=user,
            stop=signal.SIGINT,
        ):
            yield port
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def standby_port(postgres_cluster: Cluster) -> Iterator[int]:
    """The port of a streaming replica."""
    with standby(postgres_cluster) as port:
        yield port


@pytest.fixture
async def shop(
    postgres_cluster: Cluster, postgres_url: str, standby_port: int, tmp_path: Path
) -> AsyncIterator[Shop]:
    """The service over a shop that it may write, with a replica."""
    url = make_postgres(postgres_cluster, postgres_url)
    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO reader_{name}".encode())
        connection.execute(f"GRANT INSERT, UPDATE ON customer TO reader_{name}".encode())
    replica_url = url.replace(f":{postgres_cluster.port}/", f":{standby_port}/")
    async with open_shop(url, tmp_path, shop_registry(), is_shared=True, replica_url=replica_url) as opened:
        await _until_used(opened)
        yield opened
        _on_replica(standby_port, "SELECT pg_wal_replay_resume()")


def _replica(shop: Shop) -> ReadReplica:
    assert shop.replica is not None
    return shop.replica


async def _until_used(shop: Shop) -> None:
    for _ in range(100):
        await _replica(shop).measure()
        if _replica(shop).lag_s() is not None:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the replica is not used")


def _on_replica(port: int, statement: str) -> None:
    with psycopg.connect(f"postgresql://postgres@127.0.0.1:{port}/postgres", autocommit=True) as connection:
        connection.execute(statement.encode())


async def _post(shop: Shop, command: str, body: object) -> httpx.Response:
    person = await _person(shop)
    answer = await shop.http.post(
        f"/api/customer/{command}", json=body, headers={"Authorization": f"Bearer {await shop.token_of(person)}"}
    )
    assert answer.status_code == 200, answer.text
    return answer


async def _person(shop: Shop) -> Any:
    rows = await shop.inside.rows("SELECT id FROM \"user\" WHERE username = 'ada'")
    return shop.inside.administrator(rows[0][0]) if rows else await shop.inside.member()


@pytest.mark.parametrize(("command", "body"), READS)
async def test_a_list_is_read_from_the_replica_and_says_how_far_it_is_behind(
    shop: Shop, command: str, body: dict[str, object]
) -> None:
    answer = await _post(shop, command, body)

    assert int(answer.headers["Age"]) in range(1, 6)


async def test_single_records_plans_and_own_models_are_read_from_the_primary(shop: Shop) -> None:
    record_id = (await _post(shop, "list", {"limit": 1})).json()["value"][0]["id"]
    person = await _person(shop)
    headers = {"Authorization": f"Bearer {await shop.token_of(person)}"}

    proposed = await shop.http.post("/api/customer/update", json={"id": record_id, "visits": 5}, headers=headers)
    listed = await shop.http.post("/api/user/list", json={}, headers=headers)

    assert "Age" not in (await _post(shop, "get", {"id": record_id})).headers
    assert (proposed.status_code, listed.status_code) == (202, 200)
    assert "Age" not in {**proposed.headers, **listed.headers}


async def test_an_mcp_answer_names_the_lag_in_its_meta(shop: Shop) -> None:
    person = await _person(shop)
    headers = {
        "Authorization": f"Bearer {await shop.token_of(person)}", "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }  # fmt: skip
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    found: list[Any] = []
    for name, arguments in (("list", {"limit": 1}), ("list", {}), ("search", {})):
        params = {"name": f"customer__{name}", "arguments": arguments}
        answer = await shop.http.post("/mcp", json={**call, "params": params}, headers=headers)
        found.append(answer.json()["result"]["_meta"]["age"])

    assert set(found) <= set(range(1, 6))


async def test_a_replica_that_is_behind_is_read_for_five_seconds_and_no_longer(
    shop: Shop, standby_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _on_replica(standby_port, "SELECT pg_wal_replay_pause()")
    shop.change("INSERT INTO customer (customer_id, first_name) VALUES (4, 'Mia')")
    await _replica(shop).measure()

    before = await _post(shop, "list", {"limit": 10})
    monkeypatch.setattr(replicas, "MAX_LAG_S", 0.2)
    await asyncio.sleep(0.3)
    await _replica(shop).measure()
    later = await _post(shop, "list", {"limit": 10})

    assert (len(before.json()["value"]), "Age" in before.headers) == (3, True)
    assert (len(later.json()["value"]), "Age" in later.headers) == (4, False)

    monkeypatch.undo()
    _on_replica(standby_port, "SELECT pg_wal_replay_resume()")
    await _until_used(shop)
    assert "Age" in (await _post(shop, "list", {"limit": 10})).headers


async def test_a_caller_reads_what_it_has_just_written(shop: Shop, standby_port: int) -> None:
    root = shop.inside.administrator()
    _on_replica(standby_port, "SELECT pg_wal_replay_pause()")
    record = (await shop.inside.value(root, "customer", "list"))[0]

    await shop.inside.value(root, "customer", "update", id=record["id"], visits=77)
    answer = await _post(shop, "list", {"limit": 10})

    assert 77 in [each["visits"] for each in answer.json()["value"]]
    assert "Age" not in answer.headers


async def test_an_agent_sees_tokens_of_the_same_values_from_both(shop: Shop) -> None:
    from_replica = await _post(shop, "list", {"limit": 10})
    await _replica(shop).close()
    from_primary = await _post(shop, "list", {"limit": 10})

    assert MARK not in from_replica.text
    assert from_replica.json() == from_primary.json()
    assert ("Age" in from_replica.headers, "Age" in from_primary.headers) == (True, False)


async def test_a_server_that_is_no_replica_of_the_primary_is_not_read(
    shop: Shop, tmp_path: Path
) -> None:
    async with open_shop(shop.url, tmp_path, shop_registry(), is_shared=True, replica_url=shop.url) as other:
        await _replica(other).measure()
        assert _replica(other).lag_s() is None


async def test_a_replica_with_another_role_is_not_read(shop: Shop, standby_port: int, tmp_path: Path) -> None:
    other_url = f"postgresql://postgres@127.0.0.1:{standby_port}/{shop.url.rpartition('/')[2]}"
    async with open_shop(shop.url, tmp_path, shop_registry(), is_shared=True, replica_url=other_url) as other:
        for _ in range(3):
            await _replica(other).measure()
        assert _replica(other).lag_s() is None


async def test_a_standby_of_a_promoted_copy_is_not_read(
    shop: Shop, postgres_cluster: Cluster, tmp_path: Path
) -> None:
    with standby(postgres_cluster) as copy_port:
        _on_replica(copy_port, "SELECT pg_promote()")
        address = f"postgresql://postgres@127.0.0.1:{copy_port}"
        _on_replica(copy_port, "CREATE TABLE forked AS SELECT n FROM generate_series(1, 100000) AS n; CHECKPOINT")
        copy = SimpleNamespace(programs=postgres_cluster.programs, url=lambda name: f"{address}/{name}")
        with standby(cast("Cluster", copy)) as port:
            other_url = shop.url.replace(f":{postgres_cluster.port}/", f":{port}/")
            registry = shop_registry()
            async with open_shop(shop.url, tmp_path, registry, is_shared=True, replica_url=other_url) as other:
                for _ in range(3):
                    await _replica(other).measure()
                    await asyncio.sleep(0.1)
                assert _replica(other).lag_s() is None
