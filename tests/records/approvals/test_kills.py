"""An approval is either executed completely or not at all if its process is killed between any two statements. The same
applies to posting an invoice."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

import httpx

from countersign.records import app
from countersign.records.audit.verify import verify
from tests.figures import Figures
from tests.records.conftest import OfficeSettings
from tests.records.office import ROOT_URL, Office
from tests.servers.countersign import SOURCE, environment

EVERY = 9
MOST_STATEMENTS = 300
PROGRAM = "tests.records.approvals.killed_process"


class KilledRequest(NamedTuple):
    """The request to the process that is killed."""

    who: str
    path: str
    body: dict[str, object]
    headers: Mapping[str, str] = {}


@asynccontextmanager
async def _opened(office_settings: OfficeSettings) -> AsyncGenerator[Office]:
    async with app.open_records(office_settings.settings, ROOT_URL, is_loopback=True) as service:
        transport = httpx.ASGITransport(app.create(service), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
            yield Office(client, office_settings.tokens, service)


def _dies(office_settings: OfficeSettings, request: KilledRequest, last: int) -> bool:
    """Return whether a process that runs the request was killed before the statement with this number."""
    killed_request = {
        "data": office_settings.settings.data,
        "url": office_settings.settings.database_url,
        "token": office_settings.tokens[request.who],
        "path": request.path,
        "body": request.body,
        "headers": dict(request.headers),
        "last": last,
    }
    paths = f"{SOURCE}{os.pathsep}{SOURCE.parent}"
    command = [sys.executable, "-m", PROGRAM, json.dumps(killed_request)]
    result = subprocess.run(
        command, env=environment(PYTHONPATH=paths), capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode in (0, -signal.SIGKILL), result.stderr
    assert result.returncode or result.stdout == "done", result.stdout
    return result.returncode != 0


async def _sound(office: Office) -> None:
    records = office.service.records
    assert (await verify(records.database, records.secret)).faults == ()


async def test_a_batch_killed_between_any_two_statements_is_complete_or_absent(
    office_settings: OfficeSettings, is_full: bool, figures: Figures
) -> None:
    async with _opened(office_settings) as office:
        agent = await office.agent("alice")
        lead = await office.value("alice", "lead.create", title="Before", contact_email="ada@x.example")
        steps = [
            {"command": "lead.update", "input": {"id": lead["id"], "title": "After"}},
            {"command": "lead.create", "input": {"title": "Beside"}},
        ]
        plan_id = await office.proposed(agent, "plan.propose", steps=steps)
    last, kills = 1, 0
    while _dies(office_settings, KilledRequest("alice", f"/api/approve/{plan_id}", {}), last):
        kills += 1
        async with _opened(office_settings) as office:
            assert (await office.value("alice", "plan.get", id=plan_id))["state"] == "pending"
            titles = {lead["title"] for lead in await office.all("lead", "alice")}
            assert "Before" in titles
            assert titles.isdisjoint({"After", "Beside"})
            await _sound(office)
        last += 1 if is_full else EVERY
        assert last < MOST_STATEMENTS
    async with _opened(office_settings) as office:
        assert (await office.value("alice", "plan.get", id=plan_id))["state"] == "executed"
        assert {"After", "Beside"} <= {lead["title"] for lead in await office.all("lead", "alice")}
        await _sound(office)
    figures.update({"kills": kills, "halves": 0})
    assert kills > 3


async def test_a_deletion_killed_between_any_two_statements_is_complete_or_absent(
    office_settings: OfficeSettings, is_full: bool, figures: Figures
) -> None:
    async with _opened(office_settings) as office:
        agent = await office.agent("alice")
        lead = await office.value("alice", "lead.create", title="Doomed", contact_email="ada@x.example", notes="n")
        activity = await office.value("alice", "activity.create", lead=lead["id"], subject="Call")
        plan_id = await office.proposed(agent, "lead.delete", id=lead["id"], cascade=True)
    last, kills = 1, 0
    while _dies(office_settings, KilledRequest("alice", f"/api/approve/{plan_id}", {}), last):
        kills += 1
        async with _opened(office_settings) as office:
            assert (await office.value("alice", "plan.get", id=plan_id))["state"] == "pending"
            assert (await office.value("alice", "lead.get", id=lead["id"]))["title"] == "Doomed"
            assert (await office.value("alice", "activity.get", id=activity["id"]))["lead"] == lead["id"]
            await _sound(office)
        last += 1 if is_full else EVERY
        assert last < MOST_STATEMENTS
    async with _opened(office_settings) as office:
        assert (await office.value("alice", "plan.get", id=plan_id))["state"] == "executed"
        assert await office.refusal_of("alice", "lead.get", id=lead["id"]) == "no such record"
        assert await office.refusal_of("alice", "activity.get", id=activity["id"]) == "no such record"
        await _sound(office)
    figures.update({"kills": kills, "halves": 0})
    assert kills > 3


async def test_a_post_killed_between_any_two_statements_takes_no_number(
    office_settings: OfficeSettings, is_full: bool, figures: Figures
) -> None:
    async with _opened(office_settings) as office:
        first_invoice, second_invoice = [
            invoice["id"] for invoice in await office.all("invoice", "carol") if invoice["state"] == "draft"
        ][:2]
        numbers = {invoice["number"] for invoice in await office.all("invoice", "carol") if invoice["number"]}
    last, kills = 1, 0
    while _dies(office_settings, KilledRequest("carol", "/api/invoice/post", {"id": first_invoice}), last):
        kills += 1
        last += 1 if is_full else EVERY
        assert last < MOST_STATEMENTS
    async with _opened(office_settings) as office:
        posted_invoice = await office.value("carol", "invoice.get", id=first_invoice)
        later_invoice = await office.value("carol", "invoice.post", id=second_invoice)
        await _sound(office)
    year = posted_invoice["number"][:4]
    count = len([number for number in numbers if number.startswith(year)])
    assert [posted_invoice["number"], later_invoice["number"]] == [f"{year}-{count + 1:06d}", f"{year}-{count + 2:06d}"]
    figures.update({"kills": kills, "gaps": 0, "doubles": 0})


async def _retry(http: httpx.AsyncClient, body: dict[str, object], headers: dict[str, str]) -> httpx.Response:
    """Repeat the call and return the response. Retry while PostgreSQL still ends the transaction of the killed
    process."""
    for _ in range(60):
        answer = await http.post("/api/lead/create", json=body, headers=headers)
        if "is still running" not in answer.text:
            return answer
        await asyncio.sleep(1)
    return answer


async def test_a_killed_call_with_a_key_is_done_once_by_its_retry(
    office_settings: OfficeSettings, is_full: bool, figures: Figures
) -> None:
    body: dict[str, object] = {"title": "Killed", "contact_email": "ada@x.example"}
    # With 0, the process is killed between the commit and the response.
    places = range(60) if is_full else (0, 9)
    kills = 0
    for number, last in enumerate(places, 1):
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        died = _dies(office_settings, KilledRequest("alice", "/api/lead/create", body, headers), last)
        kills += died
        async with _opened(office_settings) as office:
            request_headers = {**office.headers("alice"), **headers}
            retried = await _retry(office.http, body, request_headers)
            assert retried.status_code == 200, retried.text
            is_replayed = "idempotency-replayed" in retried.headers
            assert is_replayed or last > 0
            leads = [lead for lead in await office.all("lead") if lead["title"] == "Killed"]
            assert len(leads) == number
            assert retried.json()["value"] == await office.value("alice", "lead.get", id=retried.json()["value"]["id"])
            await _sound(office)
        if not died:
            break
    figures["keyed_kills"] = kills
    assert kills >= 2
