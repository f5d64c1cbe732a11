"""A store as its operator sets it up: an organisation, its owner, a customer who owns a product, and an application."""

import json
import subprocess
from dataclasses import dataclass
from typing import Any

import httpx

from tests.servers.countersign import COMMAND, Running, environment

OWNER, CUSTOMER, STRANGER = "owner@example.com", "customer@example.com", "stranger@example.com"
PASSWORD = "correct horse battery"
RETURNS_TO = "http://127.0.0.1:9/callback"


TLS = httpx.create_ssl_context()
"""Shared by all requests, because reading this machine's certificates takes longer than a request."""


@dataclass(frozen=True)
class Shop:
    """A store in which a customer owns the product `night-ferry`."""

    running: Running
    client_id: str

    @property
    def url(self) -> str:
        """The root address."""
        return self.running.url

    @property
    def base(self) -> str:
        """The API's address, which is all that an agent knows."""
        return f"{self.url}/api/v1"

    def register(self, **body: str) -> dict[str, Any]:
        """Return the answer to the registration of a new agent, by default for the customer."""
        request_body = body or {"method": "service_auth", "email": CUSTOMER, "scope": "read:products read:library"}
        headers = {"User-Agent": "mailbot/2.1 (+https://agents.example/mailbot)"}
        return self.api("POST", "/auth/register", request_body, headers)

    def api(self, method: str, path: str, body: object, headers: dict[str, str]) -> dict[str, Any]:
        """Return the answer to a request that must succeed."""
        answer = httpx.request(method, self.base + path, json=body, headers=headers, timeout=30, verify=TLS)
        assert answer.is_success, answer.text
        return answer.json()


def set_up(running: Running) -> Shop:
    """Fill an empty store with its operator's commands and requests."""
    command(running, "org", "create", "paper-lantern", "--name", "Paper Lantern")
    role = ("--org", "paper-lantern", "--role", "owner")
    command(running, "person", "create", OWNER, "--password-stdin", *role, stdin=PASSWORD)
    for customer in (CUSTOMER, STRANGER):
        command(running, "person", "create", customer, "--password-stdin", stdin=PASSWORD)
    client_options = ("--name", "Chart Room", "--scope", "read:products read:library", "--redirect-uri", RETURNS_TO)
    shop = Shop(running, command(running, "client", "create", "paper-lantern", *client_options)["client_id"])
    owner = {"Authorization": f"Bearer {running.token(OWNER)}"}
    product = {"slug": "night-ferry", "title": "Night Ferry", "kind": "game", "platforms": ["linux"]}
    shop.api("POST", "/products", product, owner)
    terms = {"kind": "license", "products": ["night-ferry"], "count": 1}
    batch = shop.api("POST", "/codes", terms, owner)
    customer = {"Authorization": f"Bearer {running.token(CUSTOMER)}"}
    shop.api("POST", "/redeem", {"code": batch["codes"][0]}, customer)
    return shop


def command(running: Running, *arguments: str, stdin: str = "") -> dict[str, Any]:
    """Return the output of a command on the store's data directory."""
    line = [*COMMAND, *arguments, "--data", str(running.data), "--json"]
    options: dict[str, Any] = {"capture_output": True, "text": True, "check": False, "timeout": 120}
    process = subprocess.run(line, env=environment(), input=stdin, **options)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)
