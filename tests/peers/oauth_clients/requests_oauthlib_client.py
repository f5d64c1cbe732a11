"""requests-oauthlib: client credentials with both methods of authentication, and a code with PKCE. It supports neither
discovery nor revocation."""

from typing import Any

from conversing import SCOPE, read_input, send_person_to, tell
from oauthlib.oauth2 import BackendApplicationClient
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session

known = read_input()
seen: dict[str, Any] = {}
ways: dict[str, dict[str, Any]] = {
    "client_secret_basic": {"auth": HTTPBasicAuth(known["client_id"], known["client_secret"])},
    "client_secret_post": {"client_secret": known["client_secret"], "include_client_id": True},
}
for way, options in ways.items():
    machine = OAuth2Session(client=BackendApplicationClient(known["client_id"], scope=SCOPE))
    seen[way] = machine.fetch_token(known["token_endpoint"], **options)
    seen[f"{way}_status"] = machine.get(known["library"]).status_code

person = OAuth2Session(known["client_id"], redirect_uri=known["redirect_uri"], scope=SCOPE, pkce="S256")
address, _ = person.authorization_url(known["authorization_endpoint"])
seen["code"] = person.fetch_token(
    known["token_endpoint"], authorization_response=send_person_to(address), client_secret=known["client_secret"]
)
seen["code_status"] = person.get(known["library"]).status_code
tell(**seen)
