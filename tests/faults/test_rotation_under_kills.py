"""When a rotation of the master key is killed between two transactions, the next rotation continues it."""

import asyncio
import json
import subprocess
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from countersign.kernel import ids, reencryption
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database
from countersign.kernel.security.masterkey import parse_master_key
from countersign.kernel.webhooks import receivers
from countersign.kernel.webhooks.outbox import Outbox
from countersign.settings import Settings
from tests.servers.countersign import COMMAND, environment
from tests.test_encrypted_columns import BOTH, NEW, OLD, open_filled_services, open_services

PAGES = 3
MASTER = parse_master_key(BOTH, "test")

# At the last value the rotation blocks on any machine: it loops without end, or waits for the row's lock.
ENDLESS = """
CREATE TRIGGER endless BEFORE UPDATE ON webhook WHEN OLD.id = '~last' BEGIN
    SELECT count(1) FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n);
END
"""
ENDS = "DROP TRIGGER endless"
HOLD = "SELECT id FROM webhook WHERE id = '~last' FOR UPDATE"


@asynccontextmanager
async def stopped_at_the_last(database: Database) -> AsyncGenerator[None]:
    """Until the block ends, prevent every other process from continuing after the last value."""
    if database.dialect == "postgres":
        async with database.transaction() as transaction:
            await transaction.fetch(HOLD)
            yield
        return
    async with database.transaction() as transaction:
        await transaction.run(ENDLESS)
    yield
    async with database.transaction() as transaction:
        await transaction.run(ENDS)


async def write_encrypted_values(settings: Settings, database: Database) -> None:
    """Write every kind of encrypted value, and pages of receivers, under the old key."""
    async with AsyncExitStack() as stack:
        await open_filled_services(stack, settings)
    box = Outbox(database, parse_master_key(OLD, "test"), "https://store.example", True, 14)
    async with database.transaction() as transaction:
        for _ in range(PAGES * reencryption.BATCH_SIZE):
            await receivers.add(transaction, box, ids.new_uuid(), "https://receiver.example/", ())
        webhook, _ = await receivers.add(transaction, box, "last", "https://receiver.example/", ())
        await transaction.run("UPDATE webhook SET id = '~last' WHERE id = $1", webhook.id)


async def under_new(database: Database) -> tuple[int, int]:
    """Return the number of receivers' secrets that are encrypted with the new key, and the number that neither key
    decrypts."""
    lots = await reencryption.key_usage(database, receivers.ENCRYPTED_COLUMN, MASTER)
    return sum(lot.values for lot in lots if lot.key_id == "new"), sum(lot.unopened for lot in lots)


async def kill_in_the_middle(command: list[str | Path], variables: dict[str, str], database: Database) -> int:
    """Rotate, kill the process with SIGKILL when it can do no more, and return the count of re-encrypted values."""
    async with stopped_at_the_last(database):
        process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            async with asyncio.timeout(120):
                while (await under_new(database))[0] < PAGES * reencryption.BATCH_SIZE:
                    assert process.poll() is None, process.communicate()
                    await asyncio.sleep(0.01)
        finally:
            process.kill()
            process.communicate()
    rotated_count, unopened = await under_new(database)
    assert not unopened
    return rotated_count


async def test_a_killed_rotation_is_continued(database_url: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    url = database_url if database_url.startswith("postgres") else ""
    settings = Settings(data=str(data), database_url=url, database_pool=3, reserve_mib=0)
    variables = environment(COUNTERSIGN_DATABASE_URL=url, COUNTERSIGN_MASTER_KEY=BOTH)
    command = [*COMMAND, "keys", "reencrypt", "--json", "--data", data]
    data.mkdir()
    database = await open_database(url or f"sqlite:///{data}/distribution.sqlite", schema="distribution")
    try:
        await write_encrypted_values(settings, database)

        rotated_count = await kill_in_the_middle(command, variables, database)
        second_result = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)

        assert rotated_count == PAGES * reencryption.BATCH_SIZE
        assert second_result.returncode == 0, second_result.stderr
        answer = json.loads(second_result.stdout)
        assert answer["reencrypted"]["distribution.service_key"] == 0
        assert answer["reencrypted"]["distribution.webhook"] == 2
        assert {key["key_id"]: key["state"] for key in answer["keys"]} == {"new": "seals", "old": "unneeded"}
    finally:
        await database.close()
    async with AsyncExitStack() as stack:
        assert (await open_services(stack, settings, NEW)).service.records.secret
