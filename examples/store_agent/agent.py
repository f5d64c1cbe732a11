"""An agent that arrives at a store it knows nothing of, and lists what its person owns there.

    python agent.py http://127.0.0.1:8480/api/v1 --email player@example.com

Six requests and the polls between them: discover, ask the person, register, wait for the claim, exchange, call.
"""

import argparse
import re
import sys
import time
from typing import Any

import httpx

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
WANTED = "read:products read:releases read:library"


class Stopped(Exception):
    """The agent cannot or may not continue. The text is for its person."""


def discover(http: httpx.Client, base: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metadata of the API and of its authorization server. The refusal of a call without a token names the
    first."""
    refused_response = http.get(f"{base}/library")
    match = re.search(r'resource_metadata="([^"]+)"', refused_response.headers.get("www-authenticate", ""))
    if refused_response.status_code != 401 or match is None:
        raise Stopped(f"{base} does not say how agents come in ({refused_response.status_code})")
    resource = require_answer(http.get(match[1]))
    issuer = resource["authorization_servers"][0]
    server = require_answer(http.get(f"{issuer}/.well-known/oauth-authorization-server"))
    if server["issuer"] != issuer:
        raise Stopped(f"{issuer} says it is {server['issuer']}")
    return resource, server


def ask_for_confirmation(resource: dict[str, Any], email: str, *, is_sure: bool) -> bool:
    """Show the person the store's name and the scopes, and return whether the agent may register there."""
    print(f"The store calls itself {resource['resource_name']} ({resource['resource']}).")
    print(f"Its scopes are: {', '.join(resource['scopes_supported'])}; not every one is for agents.")
    print(f"I would register for {email} and ask for: {WANTED}.")
    return is_sure or input("Shall I? [y/N] ").strip().lower() in ("y", "yes")


def claim_registration(http: httpx.Client, server: dict[str, Any], email: str) -> str:
    """Return the assertion of the registration, once the person has confirmed it."""
    endpoints = server["agent_auth"]
    body = {"method": "service_auth", "email": email, "scope": WANTED}
    registration = require_answer(http.post(endpoints["identity_endpoint"], json=body))
    claim = registration["claim"]
    print(f"Please open {claim['verification_uri']}\nand type the code {claim['user_code']}", flush=True)
    pause_s, ends_s = claim["interval"], time.monotonic() + claim["expires_in"]
    while time.monotonic() < ends_s:
        time.sleep(pause_s)
        poll = http.post(endpoints["claim_endpoint"], json={"claim_token": registration["claim_token"]})
        if poll.status_code == 429:
            pause_s = int(poll.headers["retry-after"])
        elif require_answer(poll)["status"] == "claimed":
            return poll.json()["identity_assertion"]
    raise Stopped("nobody confirmed in time")


def require_answer(response: httpx.Response) -> dict[str, Any]:
    """Return the object in the answer. A refusal ends the program with the store's message."""
    if response.is_success:
        return response.json()
    problem = response.json()
    raise Stopped(f"{problem.get('code')}: {problem.get('message')} {problem.get('resolution', '')}")


def main() -> None:
    """Register at the store, and print what the person owns."""
    parser = argparse.ArgumentParser(description="An agent that lists what its person owns in a store.")
    parser.add_argument("base", help="the store's API, http://127.0.0.1:8480/api/v1")
    parser.add_argument("--email", required=True, help="the person's address at the store")
    parser.add_argument("--yes", action="store_true", help="the person has agreed already")
    parser.add_argument("--keep", action="store_true", help="do not revoke the token at the end")
    arguments = parser.parse_args()
    with httpx.Client(timeout=30, headers={"User-Agent": "store-agent/1.0 (example)"}) as http:
        try:
            resource, server = discover(http, arguments.base)
            if not ask_for_confirmation(resource, arguments.email, is_sure=arguments.yes):
                raise Stopped("not without your yes")
            assertion = claim_registration(http, server, arguments.email)
            body = {"grant_type": JWT_BEARER, "assertion": assertion}
            token = require_answer(http.post(server["token_endpoint"], json=body))["access_token"]
            library = http.get(f"{arguments.base}/library", headers={"Authorization": f"Bearer {token}"})
            for product in require_answer(library):
                print(f"{product['slug']}: {product['title']}")
            if not arguments.keep:
                http.post(server["revocation_endpoint"], data={"token": token, "token_type_hint": "access_token"})
                print("The token is revoked.")
        except Stopped as reason:
            sys.exit(str(reason))
        except httpx.HTTPError as error:
            sys.exit(f"{arguments.base} does not answer: {error}")


if __name__ == "__main__":
    main()
