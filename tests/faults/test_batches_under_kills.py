"""Atomic batches on a server that is killed in the middle of them: each is applied completely or not at all."""

import asyncio
import json
import statistics
import uuid
from dataclasses import dataclass, field
from typing import Any

from countersign.store.context import Store
from tests.faults import shop, wire
from tests.faults.lives import RestartableService
from tests.faults.nemesis import StoreKiller
from tests.figures import Figures

KILLS, KILLS_FULL = 4, 120
CLIENTS, PRODUCTS = 6, 8
ROWS = "SELECT p.slug, r.status FROM product p LEFT JOIN release r ON r.product_id = p.id WHERE p.slug LIKE 'batch-%'"


@dataclass
class SentBatch:
    """One batch, and its answer if there was one."""

    number: int
    key: str = field(default_factory=lambda: str(uuid.uuid4()))
    statuses: list[int] | None = None

    @property
    def body(self) -> bytes:
        """Products, each with a published release."""
        operations: list[dict[str, Any]] = []
        for position in range(PRODUCTS):
            slug = f"batch-{self.number}-{position}"
            product = {"slug": slug, "title": slug, "kind": "game", "platforms": ["linux"]}
            release = {"version": "1", "channel": "stable", "notes_only": True}
            operations += [
                {"method": "POST", "path": "/products", "body": product},
                {"method": "POST", "path": f"/products/{slug}/releases", "body": release},
                {"method": "POST", "path": f"/products/{slug}/releases/1/publish"},
            ]
        return json.dumps({"mode": "atomic", "operations": operations}).encode()


async def send(lives: RestartableService, token: str, batch: SentBatch) -> None:
    """Send the batch once, as soon as the server accepts connections. A broken connection leaves it unanswered, and so
    does a machine that is too busy to finish the batch in its time (503)."""
    headers = {"Idempotency-Key": batch.key}
    while True:
        try:
            answer = await wire.call(lives.port, "POST", "/api/v1/batch", token=token, headers=headers, body=batch.body)
        except ConnectionRefusedError:
            await asyncio.sleep(0.01)
            continue
        except (OSError, EOFError):
            return
        # 409: according to the database the first try of the key still runs.
        if answer.status == 200:
            statuses = [result["status"] for result in json.loads(answer.body)["results"]]
            batch.statuses = None if 503 in statuses else statuses
        return


async def release_statuses(store: Store) -> dict[int, list[str | None]]:
    """Return the statuses of the releases of the existing products, by the number of their batch."""
    statuses_by_release: dict[int, list[str | None]] = {}
    for slug, status in await store.database.fetch(ROWS):
        statuses_by_release.setdefault(int(slug.split("-")[1]), []).append(status)
    return statuses_by_release


async def play(store: Store, nemesis: StoreKiller, token: str, kills: int) -> list[SentBatch]:
    """Let clients send batches one after another, each once, until all kills are done, and check after each kill that
    every batch is complete."""
    batches: list[SentBatch] = []
    is_over = False

    async def client() -> None:
        while not is_over:
            batches.append(SentBatch(len(batches)))
            await send(nemesis.lives, token, batches[-1])

    async with asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(client())
        while nemesis.kills < kills:
            await nemesis.strike(lambda: None)
            for number, statuses in (await release_statuses(store)).items():
                assert statuses == ["published"] * PRODUCTS, number
        is_over = True
    return batches


async def repeat(lives: RestartableService, token: str, batches: list[SentBatch]) -> None:
    """Send the unanswered batches again; after that, all must have been applied."""
    for batch in batches:
        while batch.statuses is None:
            await send(lives, token, batch)
        assert set(batch.statuses) <= {200, 201}


async def test_a_batch_is_complete_or_absent_after_the_server_was_killed(
    lives: RestartableService, database_url: str, is_full: bool, figures: Figures
) -> None:
    async with shop.open_served_store(lives, database_url) as store:
        token = await shop.publisher(store, await shop.organisation(store))
        nemesis = StoreKiller(lives, seed=1)
        await nemesis.restart()

        batches = await play(store, nemesis, token, KILLS_FULL if is_full else KILLS)

        present_batches = (await release_statuses(store)).keys()
        cut_batches = {batch.number for batch in batches if batch.statuses is None}
        assert {batch.number for batch in batches} - cut_batches <= present_batches
        await repeat(lives, token, batches)
        assert len(await release_statuses(store)) == len(batches)

    figures |= {
        "kills": nemesis.kills,
        "batches": len(batches),
        "acknowledged": len(batches) - len(cut_batches),
        "cut_and_kept": len(cut_batches & present_batches),
        "cut_and_not_kept": len(cut_batches - present_batches),
        "halves": 0,
        "lost": 0,
        "ready_again_p50_s": round(statistics.median(nemesis.restarts_s), 3),
    }
