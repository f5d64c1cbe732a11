"""An agent that reads and proposes changes of customers over HTTP, and the person who approves them."""

from dataclasses import dataclass
from typing import Any

import httpx

from countersign.records.access import agent_tokens
from countersign.records.access.agent_tokens import TokenRequest
from countersign.records.access.view import Caller
from countersign.records.approvals import decisions
from tests.adopted.shop import Shop


@dataclass
class Scout:
    """An agent of an administrator, over HTTP."""

    shop: Shop
    person: Caller
    headers: dict[str, str]

    async def post(self, path: str, **body: object) -> httpx.Response:
        """Send a request to an address under /api."""
        return await self.shop.http.post(f"/api/{path}", json=body, headers=self.headers)

    async def call(self, command: str, **body: object) -> httpx.Response:
        """Run a command on customers."""
        return await self.post(f"customer/{command}", **body)

    async def customers(self) -> list[dict[str, Any]]:
        """Return the customers in the order of their keys."""
        return (await self.call("list")).json()["value"]

    async def get(self, record: dict[str, Any]) -> dict[str, Any]:
        """Read a customer again."""
        return (await self.call("get", id=record["id"])).json()["value"]

    async def refusal(self, record: dict[str, Any], **fields: object) -> str:
        """Return the error of an update."""
        answer = await self.call("update", id=record["id"], **fields)
        assert answer.status_code == 400, answer.text
        return str(answer.json()["error"])

    async def approve(self, answer: httpx.Response) -> None:
        """Approve the plan that a command has proposed."""
        assert answer.status_code == 202, answer.text
        inside = self.shop.inside
        run = inside.run(self.shop.narrowed(self.person))
        decision = await decisions.approve(run, inside.service.callers, answer.json()["plan_id"])
        assert decision.state == "executed"


async def scout_of(shop: Shop, person: Caller, label: str = "scout") -> Scout:
    """Return a new agent of the person."""
    records = shop.inside.service.records
    async with records.database.transaction() as transaction:
        issued = await agent_tokens.issue_token(transaction, records, person, TokenRequest(("*",), label))
    return Scout(shop, person, {"Authorization": f"Bearer {issued.token}"})
