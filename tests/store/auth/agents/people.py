"""The two sides of a claim: a person with a browser, and an agent that knows the addresses of the store."""

import re
from dataclasses import dataclass, field
from typing import Any

import httpx

from countersign.store.auth import people
from tests.store.world import World

DECISIONS = {"allow": "confirm", "decline": "decline"}
PASSWORD = "correct horse battery"
ORIGIN = "http://127.0.0.1:8480"


@dataclass
class Visitor:
    """A person with a browser and the cookies of one sign-in."""

    http: httpx.AsyncClient
    email: str
    cookies: dict[str, str] = field(default_factory=dict)

    @classmethod
    async def signed_in(cls, world: World, email: str, **roles: Any) -> "Visitor":
        """Create a person with a password, and sign in."""
        async with world.store.database.transaction() as transaction:
            await people.create_person(transaction, email, PASSWORD)
        for slug, role in roles.items():
            async with world.store.database.transaction() as transaction:
                row = await transaction.fetch_one("SELECT id FROM organisation WHERE slug = $1", slug)
                assert row is not None
                await people.set_role(transaction, row[0], email, role)
        visitor = cls(world.http, email)
        await visitor.sign_in()
        return visitor

    async def sign_in(self) -> None:
        """Open a session."""
        form = {"email": self.email, "password": PASSWORD}
        answer = await self.http.post("/auth/signin", data=form, headers={"Origin": ORIGIN})
        assert answer.status_code == 303, answer.text
        self.cookies = dict(answer.cookies)
        self.http.cookies.clear()

    async def get(self, address: str) -> httpx.Response:
        """Open a page."""
        return await self.http.get(address, headers=self._headers())

    async def send(self, address: str, **form: str) -> httpx.Response:
        """Send the form of a page. Without `csrf`, the form has no CSRF token."""
        return await self.http.post(address, data=form, headers={**self._headers(), "Origin": ORIGIN})

    async def decide(self, address: str, decision: str = "allow", user_code: str = "") -> httpx.Response:
        """Open the page of a claim and send its form."""
        claim_page = await self.get(address)
        if claim_page.status_code != 200:
            return claim_page
        return await self.send(address, csrf=csrf_of(claim_page), user_code=user_code, **{DECISIONS[decision]: "yes"})

    def _headers(self) -> dict[str, str]:
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}


@dataclass
class RegisteredAgent:
    """An agent. `answer` is the response to its registration."""

    http: httpx.AsyncClient
    answer: dict[str, Any] = field(default_factory=dict)

    @classmethod
    async def by_email(cls, world: World, email: str, scope: str | None = None) -> "RegisteredAgent":
        """Register an agent with the e-mail address of its person."""
        agent = cls(world.http)
        body = {"method": "service_auth", "email": email} | ({"scope": scope} if scope else {})
        answer = await agent.register(body)
        assert answer.status_code == 200, answer.text
        return agent

    @classmethod
    async def anonymous(cls, world: World) -> "RegisteredAgent":
        """Register an agent without a person."""
        agent = cls(world.http)
        answer = await agent.register({"type": "anonymous"})
        assert answer.status_code == 200, answer.text
        return agent

    async def register(self, body: dict[str, Any], **headers: str) -> httpx.Response:
        """Register the agent, and store the response."""
        request_headers = {"User-Agent": "mailbot/2.1", **headers}
        response = await self.http.post("/api/v1/auth/register", json=body, headers=request_headers)
        if response.status_code == 200:
            self.answer = response.json()
        return response

    @property
    def claim_token(self) -> str:
        """Return the token with which the agent polls."""
        return self.answer["claim_token"]

    @property
    def code(self) -> str:
        """Return the code that the agent shows its person."""
        return self.answer["claim"]["user_code"]

    @property
    def link(self) -> str:
        """Return the address of the page that asks for the code."""
        return self.answer["claim"]["verification_uri"]

    @property
    def other_link(self) -> str:
        """Return the address of the page that shows a code."""
        return self.answer["claim"]["attempt"]["verification_uri"]

    async def poll(self) -> httpx.Response:
        """Ask for the state of the claim."""
        return await self.http.post("/api/v1/auth/me", json={"claim_token": self.claim_token})

    async def complete(self, user_code: str) -> httpx.Response:
        """Send the code that the page showed."""
        body = {"claim_token": self.claim_token, "user_code": user_code}
        return await self.http.post("/api/v1/auth/me/complete", json=body)

    async def attempt_again(self, email: str) -> httpx.Response:
        """Start another attempt."""
        body = {"type": "login_hint", "claim_token": self.claim_token, "login_hint": email}
        response = await self.http.post("/api/v1/auth/me", json=body)
        if response.status_code == 200:
            attempt = response.json()["claim_attempt"]
            self.answer.setdefault("claim", {}).update(attempt, attempt=response.json()["attempt"])
        return response

    async def exchange(self, assertion: str, scope: str | None = None) -> httpx.Response:
        """Exchange an assertion for an access token."""
        body = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}
        return await self.http.post("/api/v1/auth/login", json=body | ({"scope": scope} if scope else {}))

    async def library(self, token: str) -> httpx.Response:
        """Return the products of the agent's person."""
        return await self.http.get("/api/v1/library", headers={"Authorization": f"Bearer {token}"})


def csrf_of(page: httpx.Response) -> str:
    """Return the CSRF token in the form of a page."""
    match = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert match is not None, page.text
    return match.group(1)


def digits_of(page: httpx.Response) -> str:
    """Return the code that a page shows."""
    match = re.search(r"<output>(\d{6})</output>", page.text)
    assert match is not None, page.text
    return match.group(1)
