"""Authlib with requests: client credentials with both methods of authentication, a code with PKCE, and revocation of
both tokens."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata, get_well_known_url
from conversing import SCOPE, read_input, send_person_to, tell

known = read_input()
server_metadata = requests.get(get_well_known_url(known["root"], external=True), timeout=30).json()
server = AuthorizationServerMetadata(server_metadata)
server.validate()
seen: dict[str, Any] = {"issuer": server["issuer"]}


def session(**options: Any) -> OAuth2Session:
    """Return a session of the client, configured from the metadata."""
    return OAuth2Session(
        known["client_id"],
        known["client_secret"],
        scope=SCOPE,
        token_endpoint=server["token_endpoint"],
        **options,
    )


def statuses_around_revocation(client: OAuth2Session) -> list[int]:
    """Return the library's answers before and after the token is revoked, and the answer to the revocation."""
    before_response = client.get(known["library"])
    revocation = client.revoke_token(server["revocation_endpoint"], token_type_hint="access_token")
    return [before_response.status_code, revocation.status_code, client.get(known["library"]).status_code]


for way in ("client_secret_basic", "client_secret_post"):
    machine = session(token_endpoint_auth_method=way, revocation_endpoint_auth_method=way)
    seen[way] = machine.fetch_token(grant_type="client_credentials")
    seen[f"{way}_ended"] = statuses_around_revocation(machine)

person = session(redirect_uri=known["redirect_uri"], code_challenge_method="S256")
verifier = generate_token(48)
address, state = person.create_authorization_url(server["authorization_endpoint"], code_verifier=verifier)
back = send_person_to(address)
# Authlib leaves this comparison to its users (RFC 9207 §2.4).
seen["iss"] = parse_qs(urlsplit(back).query)["iss"]
seen["code"] = person.fetch_token(authorization_response=back, state=state, code_verifier=verifier)
seen["code_ended"] = statuses_around_revocation(person)
tell(**seen)
