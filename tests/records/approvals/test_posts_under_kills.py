"""Many clients post invoices while the server is killed again and again: the invoice numbers have no gaps and no
duplicates."""

import asyncio
import random
from pathlib import Path

import httpx

from countersign.records import app
from countersign.records.audit.verify import verify
from tests.faults.lives import RestartableService
from tests.figures import Figures
from tests.records.conftest import OfficeSettings
from tests.records.office import ROOT_URL, Office

POSTS, POSTS_FULL = 120, 1_000
KILLS, KILLS_FULL = 3, 20
AT_ONCE = 32
WITHIN_S = (0.05, 0.5)


async def _drafts(office: Office, count: int) -> list[str]:
    party = (await office.first_record("party"))["id"]
    drafts: list[str] = []
    for _ in range(count):
        invoice = (await office.value("carol", "invoice.create", party=party))["id"]
        line = {"description": "Work", "quantity": 1, "unit_price_minor": 100}
        await office.value("carol", "invoice_line.create", invoice=invoice, **line)
        drafts.append(invoice)
    return drafts


class _PostingClients:
    """Clients that post every invoice until each response is received or the invoice is found to be posted."""

    def __init__(self, office: Office, invoices: list[str]) -> None:
        self._office = office
        self.open = list(invoices)
        self.acknowledged: dict[str, str] = {}
        self.unheard = 0

    async def work(self) -> None:
        """Run one client."""
        while self.open:
            invoice = self.open.pop()
            try:
                answer = await self._office.call("carol", "invoice.post", {"id": invoice})
            except httpx.HTTPError:
                self.open.insert(0, invoice)
                await asyncio.sleep(0.05)
                continue
            self._hear(invoice, answer)

    def _hear(self, invoice: str, answer: httpx.Response) -> None:
        if answer.status_code == 200:
            self.acknowledged[invoice] = answer.json()["value"]["number"]
        elif answer.status_code == 503:
            self.open.insert(0, invoice)
        else:
            assert "not allowed in this state" in answer.text, answer.text
            self.unheard += 1


async def test_numbers_have_neither_gap_nor_double_when_the_server_is_killed(
    rooms: OfficeSettings, is_full: bool, figures: Figures
) -> None:
    rng = random.Random(3)
    lives = RestartableService(Path(rooms.settings.data), "records")
    lives.settings["COUNTERSIGN_DATABASE_URL"] = rooms.settings.database_url
    lives.settings["COUNTERSIGN_RESERVE_MIB"] = "0"
    kills = KILLS_FULL if is_full else KILLS
    try:
        lives.start()
        async with httpx.AsyncClient(base_url=lives.root_url, timeout=30) as client:
            office = Office(client, rooms.tokens)
            crowd = _PostingClients(office, await _drafts(office, POSTS_FULL if is_full else POSTS))
            for number in range(kills):
                open_invoices = crowd.open[: len(crowd.open) * (kills - number) // (kills + 1)]
                crowd.open = crowd.open[len(open_invoices) :]
                workers = [asyncio.create_task(crowd.work()) for _ in range(AT_ONCE)]
                await asyncio.sleep(rng.uniform(*WITHIN_S))
                lives.kill()
                await asyncio.to_thread(lives.start)
                await asyncio.gather(*workers)
                crowd.open = open_invoices
            await asyncio.gather(*(crowd.work() for _ in range(AT_ONCE)))
    finally:
        lives.kill()
    await _require_numbers(rooms, crowd.acknowledged)
    figures.update({"kills": kills, "acknowledged": len(crowd.acknowledged), "kept_unheard": crowd.unheard, "gaps": 0})


async def _require_numbers(rooms: OfficeSettings, acknowledged: dict[str, str]) -> None:
    async with app.opened(rooms.settings, ROOT_URL, is_loopback=True) as service:
        transport = httpx.ASGITransport(app.create(service))
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
            numbers_by_invoice = {
                invoice["id"]: invoice["number"]
                for invoice in await Office(client, rooms.tokens).all("invoice", "carol")
            }
        assert (await verify(service.records.database, service.records.secret)).faults == ()
    assert {invoice: numbers_by_invoice[invoice] for invoice in acknowledged} == acknowledged
    year = max(acknowledged.values())[:4]
    numbers = sorted(number for number in numbers_by_invoice.values() if number and number.startswith(year))
    assert numbers == [f"{year}-{number:06d}" for number in range(1, len(numbers) + 1)]
