"""Authlib with requests presents an assertion that an identity provider issued for the client."""

from authlib.integrations.requests_client import OAuth2Session
from conversing import SCOPE, read_input, tell

known = read_input()
client = OAuth2Session(known["client_id"], known["client_secret"], scope=SCOPE)
token = client.fetch_token(
    known["token_endpoint"],
    grant_type="urn:ietf:params:oauth:grant-type:jwt-bearer",
    assertion=known["assertion"],
)
tell(token=token, status=client.get(known["library"]).status_code)
