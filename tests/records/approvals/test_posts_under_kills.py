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
KILL_DELAY_RANGE_S = (0.05, 0.5)


async def _create_drafts(office: Office, count: int) -> list[str]:
    party = (await office.first_record("party"))["id"]
    drafts: list[str] = []
    for _ in range(count):
        invoice = (await office.value("carol", "invoice.create", party=party))["id"]
        line = {"description": "Work", "quantity": 1, "unit_price_minor": 100}
        await office.value("carol", "invoice_line.create", invoice=invoice, **line)
        drafts.append(invoice)
    return drafts


class _PostingClients:
    """Clients that post each invoice again and again, until a response says that the invoice is posted now or was
    posted before."""

    def __init__(self, office: Office, invoices: list[str]) -> None:
        self._office = office
        self.unposted = list(invoices)
        self.acknowledged: dict[str, str] = {}
        self.lost_response_count = 0

    async def work(self) -> None:
        """Run one client."""
        while self.unposted:
            invoice = self.unposted.pop()
            try:
                answer = await self._office.call("carol", "invoice.post", {"id": invoice})
            except httpx.HTTPError:
                self.unposted.insert(0, invoice)
                await asyncio.sleep(0.05)
                continue
            self._record_response(invoice, answer)

    def _record_response(self, invoice: str, answer: httpx.Response) -> None:
        if answer.status_code == 200:
            self.acknowledged[invoice] = answer.json()["value"]["number"]
        elif answer.status_code == 503:
            self.unposted.insert(0, invoice)
        else:
            assert "not allowed in this state" in answer.text, answer.text
            self.lost_response_count += 1


async def test_numbers_have_neither_gap_nor_double_when_the_server_is_killed(
    office_settings: OfficeSettings, is_full: bool, figures: Figures
) -> None:
    rng = random.Random(3)
    server = RestartableService(Path(office_settings.settings.data), "records")
    server.settings["COUNTERSIGN_DATABASE_URL"] = office_settings.settings.database_url
    server.settings["COUNTERSIGN_RESERVE_MIB"] = "0"
    kills = KILLS_FULL if is_full else KILLS
    try:
        server.start()
        async with httpx.AsyncClient(base_url=server.root_url, timeout=30) as client:
            office = Office(client, office_settings.tokens)
            clients = _PostingClients(office, await _create_drafts(office, POSTS_FULL if is_full else POSTS))
            for number in range(kills):
                held_back = clients.unposted[: len(clients.unposted) * (kills - number) // (kills + 1)]
                clients.unposted = clients.unposted[len(held_back) :]
                workers = [asyncio.create_task(clients.work()) for _ in range(AT_ONCE)]
                await asyncio.sleep(rng.uniform(*KILL_DELAY_RANGE_S))
                server.kill()
                await asyncio.to_thread(server.start)
                await asyncio.gather(*workers)
                clients.unposted = held_back
            await asyncio.gather(*(clients.work() for _ in range(AT_ONCE)))
    finally:
        server.kill()
    await _assert_numbers_without_gaps(office_settings, clients.acknowledged)
    figures.update(
        {
            "kills": kills,
            "acknowledged": len(clients.acknowledged),
            "kept_unheard": clients.lost_response_count,
            "gaps": 0,
        }
    )


async def _assert_numbers_without_gaps(office_settings: OfficeSettings, acknowledged: dict[str, str]) -> None:
    async with app.open_records(office_settings.settings, ROOT_URL, is_loopback=True) as service:
        transport = httpx.ASGITransport(app.create(service))
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
            numbers_by_invoice = {
                invoice["id"]: invoice["number"]
                for invoice in await Office(client, office_settings.tokens).all("invoice", "carol")
            }
        assert (await verify(service.records.database, service.records.secret)).faults == ()
    assert {invoice: numbers_by_invoice[invoice] for invoice in acknowledged} == acknowledged
    year = max(acknowledged.values())[:4]
    numbers = sorted(number for number in numbers_by_invoice.values() if number and number.startswith(year))
    assert numbers == [f"{year}-{number:06d}" for number in range(1, len(numbers) + 1)]
