"""Authlib with httpx: client credentials with both methods of authentication, a code with PKCE, and revocation of both
tokens."""

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from authlib.common.security import generate_token
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata, get_well_known_url
from conversing import SCOPE, read_input, send_person_to, tell

Known = dict[str, Any]


def session(client_settings: Known, server: Known, **options: Any) -> AsyncOAuth2Client:
    """Return a session of the client, configured from the metadata."""
    return AsyncOAuth2Client(
        client_settings["client_id"],
        client_settings["client_secret"],
        scope=SCOPE,
        token_endpoint=server["token_endpoint"],
        **options,
    )


async def statuses_around_revocation(client: AsyncOAuth2Client, client_settings: Known, server: Known) -> list[int]:
    """Return the library's answers before and after the token is revoked, and the answer to the revocation."""
    before_response = await client.get(client_settings["library"])
    revocation = await client.revoke_token(server["revocation_endpoint"], token_type_hint="access_token")
    return [
        before_response.status_code,
        revocation.status_code,
        (await client.get(client_settings["library"])).status_code,
    ]


async def main(client_settings: Known) -> None:
    """Run all steps."""
    async with httpx.AsyncClient() as http:
        response = await http.get(get_well_known_url(client_settings["root"], external=True))
    server = AuthorizationServerMetadata(response.json())
    server.validate()
    results: dict[str, Any] = {"issuer": server["issuer"]}
    for auth_method in ("client_secret_basic", "client_secret_post"):
        ways = {"token_endpoint_auth_method": auth_method, "revocation_endpoint_auth_method": auth_method}
        async with session(client_settings, server, **ways) as machine:
            results[auth_method] = await machine.fetch_token(grant_type="client_credentials")
            results[f"{auth_method}_ended"] = await statuses_around_revocation(machine, client_settings, server)
    options = {"redirect_uri": client_settings["redirect_uri"], "code_challenge_method": "S256"}
    async with session(client_settings, server, **options) as person:
        verifier = generate_token(48)
        address, state = person.create_authorization_url(server["authorization_endpoint"], code_verifier=verifier)
        return_url = send_person_to(address)
        # Authlib leaves this comparison to its users (RFC 9207 §2.4).
        results["iss"] = parse_qs(urlsplit(return_url).query)["iss"]
        results["code"] = await person.fetch_token(
            authorization_response=return_url, state=state, code_verifier=verifier
        )
        results["code_ended"] = await statuses_around_revocation(person, client_settings, server)
    tell(**results)


asyncio.run(main(read_input()))
