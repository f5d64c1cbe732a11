"""Authlib with httpx: client credentials in both ways, a code with PKCE, revocation of both tokens."""

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from authlib.common.security import generate_token
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata, get_well_known_url
from conversing import SCOPE, read_input, send_person_to, tell

Known = dict[str, Any]


def session(known: Known, server: Known, **options: Any) -> AsyncOAuth2Client:
    """A session of the client, configured from the metadata."""
    return AsyncOAuth2Client(
        known["client_id"], known["client_secret"], scope=SCOPE, token_endpoint=server["token_endpoint"], **options
    )


async def ended(client: AsyncOAuth2Client, known: Known, server: Known) -> list[int]:
    """The library's answers before and after the token is revoked, and the answer to the revocation."""
    before_response = await client.get(known["library"])
    revoked = await client.revoke_token(server["revocation_endpoint"], token_type_hint="access_token")
    return [before_response.status_code, revoked.status_code, (await client.get(known["library"])).status_code]


async def main(known: Known) -> None:
    """Run all steps."""
    async with httpx.AsyncClient() as http:
        response = await http.get(get_well_known_url(known["root"], external=True))
    server = AuthorizationServerMetadata(response.json())
    server.validate()
    results: dict[str, Any] = {"issuer": server["issuer"]}
    for way in ("client_secret_basic", "client_secret_post"):
        ways = {"token_endpoint_auth_method": way, "revocation_endpoint_auth_method": way}
        async with session(known, server, **ways) as machine:
            results[way] = await machine.fetch_token(grant_type="client_credentials")
            results[f"{way}_ended"] = await ended(machine, known, server)
    options = {"redirect_uri": known["redirect_uri"], "code_challenge_method": "S256"}
    async with session(known, server, **options) as person:
        verifier = generate_token(48)
        address, state = person.create_authorization_url(server["authorization_endpoint"], code_verifier=verifier)
        back = send_person_to(address)
        # Authlib leaves this comparison to its users (RFC 9207 §2.4).
        results["iss"] = parse_qs(urlsplit(back).query)["iss"]
        results["code"] = await person.fetch_token(authorization_response=back, state=state, code_verifier=verifier)
        results["code_ended"] = await ended(person, known, server)
    tell(**results)


asyncio.run(main(read_input()))
