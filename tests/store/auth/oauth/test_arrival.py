"""An agent that knows only a refusal gets access by following the responses, with at most five requests."""

import json
import re
from typing import Any

import httpx
import pytest

from tests.store.auth.agents.people import Visitor
from tests.store.auth.oauth.conftest import BACK, CHALLENGE, VERIFIER, Browser, new_person, redirect_parameters
from tests.store.conftest import ROOT_URL
from tests.store.world import World

PAT = "pat@example.com"
MAX_REQUESTS = 5
TOOL_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_library"}}
ENTITLED = {
    "GET /api/v1/library": ("GET", f"{ROOT_URL}/api/v1/library", None),
    "POST /mcp": ("POST", f"{ROOT_URL}/mcp", TOOL_CALL),
}
BLOCK = re.compile(r"```http\nPOST (\S+)\nContent-Type: (\S+)\n\n(.+?)\n```", re.DOTALL)


class DiscoveringAgent:
    """An agent that uses only addresses from responses. It counts its requests after the refusal."""

    def __init__(self, http: httpx.AsyncClient, call: str) -> None:
        self.http = http
        self.method, self.url, self.body = ENTITLED[call]
        self.read = self.url
        self.requests: list[str] = []

    async def request_without_token(self) -> httpx.Response:
        """Send the request without a token, which is all that the agent knows."""
        answer = await self.http.request(self.method, self.url, json=self.body)
        assert answer.status_code == 401
        self.read += str(answer.headers)
        return answer

    async def request(self, method: str, url: str, **options: Any) -> httpx.Response:
        """Send a request to an address that the agent has read before."""
        assert url in self.read, f"{url} was read nowhere"
        self.requests.append(f"{method} {url}")
        answer = await self.http.request(method, url, **options)
        assert answer.is_success, answer.text
        self.read += answer.text
        return answer

    async def post_as_written(self, url: str, media_type: str, body: str) -> Any:
        """Send a request as a page shows it."""
        answer = await self.request("POST", url, content=body, headers={"Content-Type": media_type})
        return answer.json()

    async def call_with(self, token: str) -> Any:
        """Send the request that was refused, with a token."""
        headers = {"Authorization": f"Bearer {token}"}
        return (await self.request(self.method, self.url, json=self.body, headers=headers)).json()


def request_on_page(page: str, *searched_words: str) -> tuple[str, str, str]:
    """Return the address, the media type and the body of the first request on a page that contains all of these
    words."""
    return next(match for match in BLOCK.findall(page) if all(word in match[2] for word in searched_words))


def owned_products(answer: Any) -> object:
    """Return the products in a library, from the response of the API or of the tool."""
    return answer if isinstance(answer, list) else json.loads(answer["result"]["content"][0]["text"])["items"]


@pytest.mark.parametrize("call", ENTITLED)
async def test_an_agent_that_reads_the_page_of_a_refusal_gets_a_token(world: World, call: str) -> None:
    person = await Visitor.signed_in(world, PAT)
    agent = DiscoveringAgent(world.http, call)

    refusal = await agent.request_without_token()
    linked_match = re.search(r'<([^>]+)>; rel="service-doc"', refusal.headers["link"])
    assert linked_match is not None
    page = (await agent.request("GET", linked_match[1])).text
    address, media_type, body = request_on_page(page, "service_auth", "scope")
    registration = await agent.post_as_written(address, media_type, body.replace("person@example.com", PAT))
    await person.decide(registration["claim"]["verification_uri"], user_code=registration["claim"]["user_code"])
    address, media_type, body = request_on_page(page, "<CLAIM_TOKEN>", "grant_type")
    body = body.replace("<CLAIM_TOKEN>", registration["claim_token"])
    token = await agent.post_as_written(address, media_type, body)
    answer = await agent.call_with(token["access_token"])

    assert owned_products(answer) == []
    assert len(agent.requests) <= MAX_REQUESTS, agent.requests


@pytest.mark.parametrize("call", ENTITLED)
async def test_a_client_that_reads_the_metadata_of_a_refusal_registers_itself_and_gets_a_token(
    world: World, call: str
) -> None:
    await new_person(world, PAT)
    browser = Browser(world)
    await browser.sign_in(PAT)
    client = DiscoveringAgent(world.http, call)

    challenge = (await client.request_without_token()).headers["www-authenticate"]
    challenge_members = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    resource = (await client.request("GET", challenge_members["resource_metadata"])).json()
    issuer = resource["authorization_servers"][0]
    # RFC 8414 §3: the address is derived from the issuer.
    client.read += f"{issuer}/.well-known/oauth-authorization-server"
    server = (await client.request("GET", f"{issuer}/.well-known/oauth-authorization-server")).json()
    metadata = {"client_name": "Reader", "redirect_uris": [BACK], "scope": challenge_members["scope"]}
    known_body = (await client.request("POST", server["registration_endpoint"], json=metadata)).json()
    parameters = {
        "response_type": "code",
        "client_id": known_body["client_id"],
        "redirect_uri": BACK,
        "scope": challenge_members["scope"],
        "resource": resource["resource"],
        "state": "s",
        "code_challenge": CHALLENGE,
        "code_challenge_method": server["code_challenge_methods_supported"][0],
    }
    assert server["authorization_endpoint"] == f"{ROOT_URL}/auth/authorize"
    code = redirect_parameters(await browser.decide(await browser.get("/auth/authorize", parameters), "allow"))["code"]
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": BACK,
        "code_verifier": VERIFIER,
        "client_id": known_body["client_id"],
        "client_secret": known_body["client_secret"],
    }
    token = (await client.request("POST", server["token_endpoint"], data=form)).json()["access_token"]
    answer = await client.call_with(token)

    assert owned_products(answer) == []
    assert len(client.requests) <= MAX_REQUESTS, client.requests
