"""The errand at the records service: a person writes, an agent proposes, the person decides."""

import json
from typing import Any, NamedTuple

import httpx

from countersign.records import app
from countersign.records.app import RecordsService
from countersign.records.audit.verify import verify
from tests.faults.errands import ErrandClient, Request, StepLedger, WriteDoubled, WriteLost

ROWS = 3
AUDITED = "SELECT command, count(*) FROM audit_entry WHERE record_id = $1 GROUP BY command"


class RecordsClients(NamedTuple):
    """The clients of an errand at the records service: bearer tokens of a person and of an agent of that person."""

    person: str
    agent: str


async def write_and_decide(client: ErrandClient, desk: RecordsClients, number: int) -> None:
    """Run all steps, and check the answers of earlier steps again.

    Raises:
        WriteLost, WriteDoubled, WriteRefused: see ErrandClient.step.
    """
    await _RecordsErrand(client, desk, number).run()


async def require_intact(service: RecordsService) -> None:
    """Require that only the service has changed the audit.

    Raises:
        WriteLost: an entry is missing, or was changed.
    """
    faults = (await verify(service.records.database, service.records.secret)).faults
    if faults:
        raise WriteLost(f"the audit: {faults}")


async def open_desk(service: RecordsService, person: str) -> RecordsClients:
    """Return the person's token, with an agent that has all rights of the person."""
    transport = httpx.ASGITransport(app.create(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        bearer = {"Authorization": f"Bearer {person}"}
        answer = await client.post("/api/auth/agent-token", json={"scopes": ["*"], "label": "agent"}, headers=bearer)
        assert answer.status_code == 200, answer.text
    return RecordsClients(person, answer.json()["token"])


async def require_audited_once(service: RecordsService, ledger: StepLedger) -> None:
    """Require that each change of a finished errand to the records is in the audit exactly once.

    Raises:
        WriteDoubled, WriteLost: a change is in the audit twice, or is missing.
    """
    heard_values = {step: value.value for step, value in ledger.heard.items()}
    lead, activity = heard_values["create"]["value"]["id"], heard_values["activity"]["value"]["id"]
    expected = {
        lead: {"lead.create": 1, "lead.update": 2, "lead.qualify": 1, "lead.delete": 1},
        activity: {"activity.create": 1, "activity.delete": 1},
        heard_values["propose"]["plan_id"]: {"plan.propose": 1, "plan.approve": 1, "plan.executed": 1},
        heard_values["refused"]["plan_id"]: {"plan.propose": 1, "plan.rejected": 1},
    }
    for record_id, due in expected.items():
        audited = {row[0]: row[1] for row in await service.records.database.fetch(AUDITED, record_id)}
        if audited != due:
            raise (WriteDoubled if sum(audited.values()) > sum(due.values()) else WriteLost)(
                f"{record_id}: {audited}, not {due}"
            )


class _RecordsErrand:
    def __init__(self, client: ErrandClient, desk: RecordsClients, number: int) -> None:
        self._hand = client
        self._desk = desk
        self._name = f"errand {number}"
        self._number = number

    async def run(self) -> None:
        """Create, change, move, propose, approve, reject, import, delete."""
        lead_values = {"title": self._name, "contact_email": f"errand{self._number}@mail.example"}
        lead_id = (await self._write("create", "lead.create", lead_values, self._titled(self._name), "delete"))[
            "value"
        ]["id"]
        update = {"id": lead_id, "expected_revenue_minor": 1000 + self._number, "notes": f"of {self._name}"}
        updated = self._got(lead_id, expected_revenue_minor=1000 + self._number)
        await self._write("update", "lead.update", update, updated, "delete")
        await self._write("qualify", "lead.qualify", {"id": lead_id}, self._got(lead_id, stage="qualified"), "delete")
        activity = {"lead": lead_id, "kind": "call", "subject": self._name}
        activity_id = (await self._write("activity", "activity.create", activity, self._subject(), "unlist"))["value"][
            "id"
        ]
        await self._write("unlist", "activity.delete", {"id": activity_id}, self._gone("activity", activity_id))
        await self._plans(lead_id)
        rows = "\n".join(["title", *(f"{self._name} row {row}" for row in range(ROWS))])
        await self._write("import", "lead.import", {"csv": rows}, self._imported)
        await self._token()

    async def _plans(self, lead_id: str) -> None:
        second_title = f"{self._name} beside"
        steps = [
            {"command": "lead.update", "input": {"id": lead_id, "source": "fair"}},
            {"command": "lead.create", "input": {"title": second_title}},
        ]
        plan_id = await self._propose("propose", steps)
        await self._approve("approve", plan_id)
        if await self._one("lead", title=second_title) is None:
            raise WriteLost(f"{self._name}: the plan is executed, and its lead is not there")
        deletion_steps = [{"command": "lead.delete", "input": {"id": lead_id}}]
        refused_id = await self._propose("refused", deletion_steps)
        no = {"id": refused_id, "reason": "not this one"}
        await self._write("reject", "plan.reject", no, self._decided(refused_id, "rejected"))
        await self._approve("delete", await self._propose("doom", deletion_steps))
        if await self._gone("lead", lead_id)(None) is None:
            raise WriteLost(f"{self._name}: the deletion is executed, and its lead is there")

    async def _propose(self, name: str, steps: list[dict[str, object]]) -> str:
        why = f"{self._name} {name}"
        body = {"steps": steps, "why": why}

        async def find_proposal(first_value: Any) -> Any:
            plan = await self._one("plan", why=why)
            return None if plan is None else {"plan_id": plan["id"]}

        request = self._request("plan.propose", body)._replace(token=self._desk.agent)
        return str((await self._hand.step(name, request, find_proposal))["plan_id"])

    async def _approve(self, name: str, plan_id: str) -> None:
        request = Request("POST", f"/api/approve/{plan_id}", self._desk.person, b"{}")
        await self._hand.step(name, request, self._decided(plan_id, "executed"))

    async def _token(self) -> None:
        body = json.dumps({"scopes": ["lead.*"], "label": self._name}).encode()

        async def opens(first_value: Any) -> Any:
            if first_value is None:
                return None
            answer = await self._hand.ask(Request("GET", "/api/commands", first_value["token"]))
            return first_value if answer.status == 200 else None

        await self._hand.step("token", Request("POST", "/api/auth/agent-token", self._desk.person, body), opens)

    async def _write(self, name: str, command: str, body: dict[str, object], find: Any, until: str = "") -> Any:
        return await self._hand.step(name, self._request(command, body), find, until=until)

    def _request(self, command: str, body: object) -> Request:
        path = "/api/" + command.replace(".", "/")
        return Request("POST", path, self._desk.person, json.dumps(body).encode())

    async def _all(self, model: str, **equal: object) -> list[dict[str, Any]]:
        conditions = [{"field": name, "op": "eq", "value": value} for name, value in equal.items()]
        answer = await self._hand.ask(self._request(f"{model}.list", {"filter": conditions, "limit": 2}))
        assert answer.status == 200, answer
        records: list[dict[str, Any]] = json.loads(answer.body)["value"]
        return records

    async def _one(self, model: str, **equal: object) -> dict[str, Any] | None:
        records = await self._all(model, **equal)
        if len(records) > 1:
            raise WriteDoubled(f"{len(records)} of {model} {equal}")
        return records[0] if records else None

    def _titled(self, title: str) -> Any:
        async def find(first_value: Any) -> Any:
            lead = await self._one("lead", title=title)
            return None if lead is None else {"value": lead}

        return find

    def _subject(self) -> Any:
        async def find(first_value: Any) -> Any:
            activity = await self._one("activity", subject=self._name)
            return None if activity is None else {"value": activity}

        return find

    def _got(self, lead_id: str, **equal: object) -> Any:
        async def find(first_value: Any) -> Any:
            lead = await self._one("lead", id=lead_id)
            return {"value": lead} if lead and all(lead[name] == value for name, value in equal.items()) else None

        return find

    def _gone(self, model: str, record_id: str) -> Any:
        async def find(first_value: Any) -> Any:
            return {"value": {"id": record_id}} if await self._one(model, id=record_id) is None else None

        return find

    def _decided(self, plan_id: str, state: str) -> Any:
        async def find(first_value: Any) -> Any:
            plan = await self._one("plan", id=plan_id)
            return {"value": plan} if plan is not None and plan["state"] == state else None

        return find

    async def _imported(self, first_value: Any) -> Any:
        rows_found = [await self._one("lead", title=f"{self._name} row {row}") for row in range(ROWS)]
        if len([record for record in rows_found if record is not None]) not in (0, ROWS):
            raise WriteLost(f"{self._name}: half an import")
        return None if rows_found[0] is None else {"value": {"ids": [record["id"] for record in rows_found if record]}}
