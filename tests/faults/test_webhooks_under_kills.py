"""Two nodes that share an outbox and are killed again and again: no event is lost, and none is invented."""

import asyncio
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database
from countersign.kernel.security.masterkey import master_key
from countersign.kernel.webhooks import receivers
from countersign.kernel.webhooks.outbox import Outbox
from countersign.settings import Settings
from tests.figures import Figures
from tests.outbox import begin
from tests.peers.receiver import Receiver, receiving
from tests.servers.countersign import MASTER_KEY, SOURCE, environment

ROOT = Path(__file__).parents[2]
KILLS, KILLS_FULL = 4, 200
THINGS = "CREATE TABLE thing (id TEXT PRIMARY KEY)"
WAITING = "SELECT count(*) FROM webhook_delivery WHERE state = 'waiting'"


def node(url: str, *arguments: str) -> "subprocess.Popen[bytes]":
    """Return a node on the database."""
    command = [sys.executable, "-m", "tests.faults.webhook_node", url, *arguments]
    path = os.pathsep.join((str(SOURCE), str(ROOT)))
    return subprocess.Popen(command, env=environment(PYTHONPATH=path), cwd=ROOT)


async def create_outbox(database: Database, receiver: Receiver) -> None:
    """Create the tables, and add the receiver."""
    await begin(database, THINGS)
    box = Outbox(database, master_key(Settings(master_key=MASTER_KEY)), "https://store.example", True, 14)
    async with database.transaction() as transaction:
        await receivers.add(transaction, box, "north", receiver.url, [])


async def wait_until_empty(database: Database, quiet: "subprocess.Popen[bytes]") -> None:
    """Wait until the outbox is empty, two minutes at most."""
    async with asyncio.timeout(120):
        while (await database.fetch(WAITING))[0][0]:
            assert quiet.poll() is None
            await asyncio.sleep(0.05)


async def test_only_events_of_committed_changes_are_sent_and_none_is_lost(
    database_url: str, is_full: bool, figures: Figures
) -> None:
    rng = random.Random(database_url[:6])
    database = await open_database(database_url, schema="shop", reserve_bytes=0)
    async with receiving() as receiver:
        await create_outbox(database, receiver)
        nodes = [node(database_url), node(database_url)]
        try:
            for kill in range(KILLS_FULL if is_full else KILLS):
                await receiver.wait_for_messages(len(receiver.messages) + rng.randint(1, 40))
                nodes[kill % 2].kill()
                nodes[kill % 2].wait()
                nodes[kill % 2] = node(database_url)
        finally:
            for one_node in nodes:
                one_node.kill()
                one_node.wait()
        quiet = node(database_url, "quiet")
        try:
            await wait_until_empty(database, quiet)
        finally:
            quiet.kill()
            quiet.wait()
        committed_ids = {row[0] for row in await database.fetch("SELECT id FROM thing")}
    await database.close()

    event_counts = Counter(message.event["subject"] for message in receiver.messages)
    assert set(event_counts) == committed_ids
    assert len(set(receiver.ids)) == len(committed_ids)
    figures |= {
        "kills": KILLS_FULL if is_full else KILLS,
        "events": len(committed_ids),
        "lost": 0,
        "made_up": 0,
        "told_again_after_a_kill": sum(event_counts.values()) - len(event_counts),
    }
