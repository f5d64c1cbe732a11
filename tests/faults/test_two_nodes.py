"""Two nodes of both services on one PostgreSQL, each in a network namespace of its own, disconnected and connected
again."""

import asyncio
import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.drill import DataDirectory
from tests.figures import Figures
from tests.servers.countersign import COMMAND, MASTER_KEY, environment
from tests.servers.machines import Machine, machines, node
from tests.servers.postgres import Cluster

RACES, RACES_FULL = 3, 500
CUTS, CUTS_FULL = 1, 20
PLAYER, PUBLISHER = "player@example.com", "publisher@example.com"
CLIENT = {"client_id": "demo-publisher", "client_secret": "demo-publisher-secret"}
HEALED_S = 15
"""The maximum time until a reconnected node serves again, long enough for a busy machine."""
ANSWERS_S = 20
"""The maximum time until a disconnected node refuses a request."""


@dataclass
class ServedNode:
    """A served machine, which the test reaches on a connection that is never cut."""

    machine: Machine
    ports: dict[str, int]

    async def send(self, service: str, method: str, path: str, token: str = "", **options: Any) -> httpx.Response:
        """Send a request on a connection of its own."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.ports[service]}", timeout=ANSWERS_S) as client:
            return await client.request(method, path, headers=headers, **options)

    async def store(self, method: str, path: str, token: str = "", **body: object) -> httpx.Response:
        """Send a request to the store."""
        return await self.send("distribution", method, f"/api/v1{path}", token, json=body or None)

    async def record(self, command: str, token: str = "", **body: object) -> httpx.Response:
        """Run a command of the records service: `lead.get`, or a path below /api."""
        return await self.send("records", "POST", f"/api/{command.replace('.', '/')}", token, json=body)

    async def token(self) -> str:
        """Return a new token of the publisher's client, issued by this node."""
        form = {"grant_type": "client_credentials", **CLIENT}
        answer = await self.send("distribution", "POST", "/api/v1/auth/token", data=form)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])

    async def revoke(self, token: str) -> None:
        """Revoke a token at this node."""
        answer = await self.send("distribution", "POST", "/auth/revoke", data={"token": token, **CLIENT})
        assert answer.status_code == 200, answer.text


@dataclass
class NodePair:
    """Two nodes, and the settings for a command on this machine that uses the same database."""

    one: ServedNode
    other: ServedNode
    data: Path
    settings: dict[str, str]

    def person(self, email: str) -> str:
        """Return a bearer token of one of the demonstration's people."""
        command = [*COMMAND, "token", "issue", email, "--data", str(self.data), "--json"]
        result = subprocess.run(command, env=environment(**self.settings), capture_output=True, text=True, check=True)
        return str(json.loads(result.stdout)["access_token"])


@pytest.fixture(scope="module")
def pair(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    postgres_cluster: Cluster,
    redis_port: int,
    s3_endpoint: str,
) -> Iterator[NodePair]:
    """Two nodes that serve the demonstration, each on a cable that can be cut."""
    folder = tmp_path_factory.mktemp("nodes")
    name = f"nodes_{os.getpid()}"
    httpx.put(f"{s3_endpoint}/{name.replace('_', '-')}").raise_for_status()
    address = {
        "database": postgres_cluster.create(name),
        "counters": f"redis://127.0.0.1:{redis_port}/0",
        "blobs": f"s3://{name.replace('_', '-')}/x?region=us-east-1&endpoint={s3_endpoint}&allow_http=true",
    }
    ports = [postgres_cluster.port, redis_port, int(s3_endpoint.rpartition(":")[2])]

    def settings(host: str) -> dict[str, str]:
        variables = {name: text.replace("127.0.0.1", host) for name, text in address.items()}
        rates = {f"COUNTERSIGN_RATE_{kind}": "1000000" for kind in ("ANONYMOUS", "PERSON", "TOKEN")}
        return {
            "COUNTERSIGN_DATABASE_URL": variables["database"],
            "COUNTERSIGN_COUNTERS_URL": variables["counters"],
            "COUNTERSIGN_BLOBS_URL": variables["blobs"],
            "COUNTERSIGN_MASTER_KEY": MASTER_KEY,
            "COUNTERSIGN_DISTRIBUTION_URL": "http://127.0.0.1:8480",
            "COUNTERSIGN_RECORDS_URL": "http://127.0.0.1:8080",
            "COUNTERSIGN_JOB_WORKERS": "0",
            "COUNTERSIGN_JOB_LEASE_S": "3",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            **rates,
        }

    with machines(2, ports) as (first_machine, second_machine):
        data = [folder / name for name in ("first", "second", "here")]
        options = ["--demo"] if request.config.getoption("--full") else []
        if not options:
            DataDirectory(folder / "filled", {"COUNTERSIGN_DATABASE_URL": address["database"]}).write_demonstration()
        with (
            node(first_machine, data[0], settings(first_machine.far), *options) as first_server,
            node(second_machine, data[1], settings(second_machine.far)) as second_server,
        ):
            yield NodePair(
                ServedNode(first_machine, first_server),
                ServedNode(second_machine, second_server),
                data[2],
                settings("127.0.0.1"),
            )


async def sign_in(served_node: ServedNode, name: str) -> str:
    """Return a session of one of the people of the records service."""
    answer = await served_node.record("auth/login", username=name, password="countersign-demo")
    assert answer.status_code == 200, answer.text
    return str(answer.json()["token"])


async def agent_of(served_node: ServedNode, person: str) -> str:
    """Return a token of a new agent that may propose everything that its person may do."""
    answer = await served_node.record("auth/agent-token", person, scopes=["*"], label="bot")
    assert answer.status_code == 200, answer.text
    return str(answer.json()["token"])


async def plan_to_delete(served_node: ServedNode, person: str, agent: str, title: str) -> tuple[str, str]:
    """Return a lead, and the agent's waiting plan to delete it."""
    created_response = await served_node.record("lead.create", person, title=title)
    lead = str(created_response.json()["value"]["id"])
    proposed_response = await served_node.record("lead.delete", agent, id=lead)
    assert proposed_response.status_code == 202, proposed_response.text
    return lead, str(proposed_response.json()["plan_id"])


async def executions(served_node: ServedNode, root: str, plan: str) -> int:
    """Return the number of executions of the plan's deletion in the audit."""
    conditions: list[dict[str, object]] = [
        {"field": "plan_id", "op": "eq", "value": plan},
        {"field": "command", "op": "eq", "value": "lead.delete"},
    ]
    answer = await served_node.record("audit_entry.list", root, filter=conditions)
    return len([plan for plan in answer.json()["value"] if plan["model"] == "lead"])


async def new_code(served_node: ServedNode, token: str, slug: str) -> str:
    """Return a code for one person and a new product, because a person who owns the product uses no further code."""
    product = {"slug": slug, "title": slug, "kind": "tool", "platforms": ["linux"]}
    response = await served_node.store("POST", "/products", token, **product)
    assert response.status_code == 201, response.text
    response = await served_node.store("POST", "/codes", token, kind="license", products=[slug], count=1)
    assert response.status_code == 201, response.text
    return str(response.json()["codes"][0])


async def until_it_serves(served_node: ServedNode, token: str) -> float:
    """Return the seconds until the reconnected node answers a caller."""
    began_s = time.monotonic()
    while time.monotonic() < began_s + HEALED_S:
        if (await served_node.store("GET", "/library", token)).status_code == 200:
            return time.monotonic() - began_s
        await asyncio.sleep(0.1)
    raise AssertionError(f"the served_node does not serve {HEALED_S} s after it was joined again")


async def test_a_change_on_one_node_applies_on_the_other_node_at_once(
    pair: NodePair, is_full: bool, figures: Figures
) -> None:
    races = RACES_FULL if is_full else RACES
    player, publisher = pair.person(PLAYER), pair.person(PUBLISHER)
    root, alice = await sign_in(pair.one, "root"), await sign_in(pair.other, "alice")
    agent = await agent_of(pair.other, alice)

    for _ in range(races):
        token = await pair.one.token()
        assert (await pair.other.store("GET", "/org", token)).status_code == 200
        await pair.one.revoke(token)
        assert (await pair.other.store("GET", "/org", token)).status_code == 401
    redeemed_count: Counter[tuple[int, int]] = Counter()
    token = await pair.one.token()
    for number in range(races):
        code = await new_code(pair.one, token, f"raced-{number}")
        first_response, second_response = await asyncio.gather(
            pair.one.store("POST", "/redeem", player, code=code),
            pair.other.store("POST", "/redeem", publisher, code=code),
        )
        assert sorted((first_response.status_code, second_response.status_code)) == [200, 409], (
            first_response,
            second_response,
        )
        redeemed_count[first_response.status_code, second_response.status_code] += 1
    for number in range(races):
        _, plan = await plan_to_delete(pair.one, alice, agent, f"{number}")
        answers = await asyncio.gather(
            *(node.record(f"approve/{plan}", who) for node, who in ((pair.one, alice), (pair.other, root)))
        )
        assert [answer.status_code for answer in answers] == [200, 200]
        assert answers[0].text == answers[1].text
        assert await executions(pair.one, root, plan) == 1

    figures |= {
        "revoked_tokens_believed": 0,
        "tokens": races,
        "codes": races,
        "codes_redeemed_twice": 0,
        "won_by_each_node": sorted(redeemed_count.values()),
        "plans": races,
        "plans_executed_twice": 0,
    }


@pytest.mark.parametrize("manner", ["cut", "swallow"])
async def test_a_disconnected_node_refuses_requests_and_later_sees_the_decisions(
    pair: NodePair, manner: str, is_full: bool, figures: Figures
) -> None:
    player, publisher = pair.person(PLAYER), pair.person(PUBLISHER)
    root, alice = await sign_in(pair.one, "root"), await sign_in(pair.one, "alice")
    agent = await agent_of(pair.one, alice)
    refused_s: list[float] = []
    healed_s: list[float] = []
    cuts = CUTS_FULL if is_full else CUTS
    for number in range(cuts):
        token = await pair.one.token()
        code = await new_code(pair.one, token, f"{manner}-{number}")
        _, plan = await plan_to_delete(pair.one, alice, agent, f"{number}")
        assert (await pair.other.store("GET", "/org", token)).status_code == 200

        getattr(pair.other.machine, manner)()
        await pair.one.revoke(token)
        async with asyncio.timeout(ANSWERS_S):
            began_s = time.monotonic()
            refused_responses = await asyncio.gather(
                pair.other.store("GET", "/org", token),
                pair.other.store("POST", "/redeem", publisher, code=code),
                pair.other.record(f"approve/{plan}", root),
            )
            refused_s.append(time.monotonic() - began_s)
        redeem_response = await pair.one.store("POST", "/redeem", player, code=code)
        approve_response = await pair.one.record(f"approve/{plan}", alice)
        pair.other.machine.heal()
        healed_s.append(await until_it_serves(pair.other, publisher))

        assert [response.status_code for response in refused_responses] == [503, 503, 503], refused_responses
        # A request whose answer was lost may have taken effect: then only once, by the client that sent it first.
        other_response = await pair.other.store("POST", "/redeem", publisher, code=code)
        assert sorted((redeem_response.status_code, other_response.status_code)) == [200, 409], (
            redeem_response,
            other_response,
        )
        assert (await pair.other.store("GET", "/org", token)).status_code == 401
        assert approve_response.status_code == 200, approve_response
        assert (await pair.other.record(f"approve/{plan}", root)).text == approve_response.text
        assert await executions(pair.other, root, plan) == 1

    figures |= {
        "manner": manner,
        "cuts": cuts,
        "revoked_tokens_believed": 0,
        "codes_redeemed_twice": 0,
        "plans_executed_twice": 0,
        "refused_after_max_s": round(max(refused_s), 2),
        "serves_again_max_s": round(max(healed_s), 2),
    }
