"""An office: the people and records of the demonstration data and additional agents, reached over HTTP."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import httpx

from countersign.records import app, demo
from countersign.records.access import sessions
from countersign.settings import Settings
from tests.servers.countersign import MASTER_KEY

ROOT_URL = "http://127.0.0.1:8080"
PEOPLE = ("alice", "bob", "carol", "root")


def settings(data: str, database_url: str = "") -> Settings:
    """Return the settings of an office in this folder or, with PostgreSQL, in this database."""
    url = "" if database_url.startswith("sqlite") else database_url
    return Settings(data=data, database_url=url, database_pool=5, master_key=MASTER_KEY, reserve_mib=0)


async def furnish(office_settings: Settings) -> dict[str, str]:
    """Fill an empty database with the demonstration data, and return a session token for each person."""
    async with app.open_records(office_settings, ROOT_URL, is_loopback=True) as service:
        assert await demo.seed(service.engine)
        return {name: await sessions.sign_in(service.records, name, demo.PASSWORD) for name in PEOPLE}


@dataclass
class Office:
    """Callers are named: a person of the demonstration data, or an agent that was created before."""

    http: httpx.AsyncClient
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    opened: app.RecordsService | None = None

    @property
    def service(self) -> app.RecordsService:
        """Return the service, if it runs in the process of the test."""
        assert self.opened is not None, "this office is served by another process"
        return self.opened

    def headers(self, who: str) -> dict[str, str]:
        """Return the Authorization header of a caller."""
        return {"Authorization": f"Bearer {self.tokens[who]}"}

    async def agent(
        self, person: str, *scopes: str, name: str = "", label: str = "", unmask: Sequence[str] = ()
    ) -> str:
        """Create an agent of the person, and return the name under which it calls."""
        name = name or f"{person}'s {label or 'agent'}"
        body: dict[str, object] = {"scopes": list(scopes or ("*",)), "label": label or name}
        if unmask:
            body["unmask"] = list(unmask)
        answer = await self.post(person, "/api/auth/agent-token", body)
        assert answer.status_code == 200, answer.text
        self.tokens[name] = answer.json()["token"]
        return name

    async def person(self, name: str, *grants: Mapping[str, object]) -> str:
        """Create a person with a role that has these grants, and sign in. Return the id of the person."""
        user = await self.value("root", "user.create", username=name)
        role = await self.value("root", "role.create", title=f"role of {name}")
        await self.value("root", "user_role.create", user=user["id"], role=role["id"])
        for grant in grants:
            await self.value("root", "grant.create", role=role["id"], **grant)
        link = (await self.value("root", "user.invite", id=user["id"]))["link"]
        form = {"token": link.partition("token=")[2], "password": "a long password"}
        response = await self.http.post("/setup", data=form)
        assert response.status_code == 200, response.text
        answer = await self.http.post("/api/auth/login", json={"username": name, "password": form["password"]})
        self.tokens[name] = answer.json()["token"]
        return cast("str", user["id"])

    async def post(self, who: str, path: str, body: object) -> httpx.Response:
        """Send a POST request with a JSON body."""
        return await self.http.post(path, json=body, headers=self.headers(who))

    async def call(self, who: str, command: str, body: Mapping[str, object] | None = None) -> httpx.Response:
        """Run a command, such as `lead.get`."""
        return await self.post(who, "/api/" + command.replace(".", "/"), body or {})

    async def value(self, who: str, command: str, /, **body: object) -> Any:
        """Run a command that must succeed, and return its value."""
        answer = await self.call(who, command, body)
        assert answer.status_code == 200, f"{command} {body}: {answer.status_code} {answer.text}"
        return answer.json()["value"]

    async def denied(self, who: str, command: str, /, **body: object) -> list[str]:
        """Run a command, and return the fields that it withheld."""
        answer = await self.call(who, command, body)
        assert answer.status_code == 200, answer.text
        return cast("list[str]", answer.json()["denied"])

    async def refusal_of(self, who: str, command: str, /, **body: object) -> str:
        """Run a command that must be refused, and return the reason."""
        answer = await self.call(who, command, body)
        assert answer.status_code == 400, f"{command} {body}: {answer.status_code} {answer.text}"
        return cast("str", answer.json()["error"])

    async def proposed(self, who: str, command: str, /, **body: object) -> str:
        """Run a command that must become a plan, and return the id of the plan."""
        answer = await self.call(who, command, body)
        assert answer.status_code == 202, f"{command} {body}: {answer.status_code} {answer.text}"
        assert answer.json()["approval_required"] is True
        return cast("str", answer.json()["plan_id"])

    async def approve(self, who: str, plan_id: str, **body: object) -> httpx.Response:
        """Approve a plan."""
        return await self.post(who, f"/api/approve/{plan_id}", body)

    async def first_record(self, model: str, who: str = "root", **equal: object) -> dict[str, Any]:
        """Return the first record with these values, as the caller sees it."""
        conditions = [{"field": name, "op": "eq", "value": value} for name, value in equal.items()]
        rows = await self.value(who, f"{model}.list", filter=conditions, limit=1)
        assert rows, f"no {model} with {equal}"
        return cast("dict[str, Any]", rows[0])

    async def all(self, model: str, who: str = "root") -> list[dict[str, Any]]:
        """Return every record that the caller sees."""
        return cast("list[dict[str, Any]]", await self.value(who, f"{model}.list"))
