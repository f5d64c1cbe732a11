"""The claim ceremony from the command line's side: register by e-mail, show link and code, poll, exchange."""

from countersign.cli import connection, output, wire
from countersign.cli.connection import Reply, Server
from countersign.cli.output import Exit, Failure
from countersign.cli.transport import Request

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SLOWEST_S = 60


def token_for(server: Server, email: str, scopes: str) -> str:
    """A bearer token of the person with this address, once they have confirmed in a browser.

    Raises:
        Failure: refused, declined, or not confirmed in time.
    """
    server.use_no_token()
    doing = "cannot sign in"
    asked = {"method": "service_auth", "email": email, "scope": scopes}
    registered = connection.decoded(server.post("/auth/register", asked, doing), wire.Registered, doing)
    claim = registered.claim
    output.note(f"Open {claim.verification_uri}")
    output.note(f"sign in there as {email}, and type the code {claim.user_code}")
    output.note(f"Waiting for {-(-claim.expires_in // 60)} minutes; Ctrl-C ends it.")
    assertion = _assertion(server, registered.claim_token, claim.interval, claim.expires_in)
    body = {"grant_type": JWT_BEARER, "assertion": assertion}
    return connection.decoded(server.post("/auth/token", body, doing), wire.Token, doing).access_token


def _assertion(server: Server, claim_token: str, interval_s: int, patience_s: int) -> str:
    """Poll until the person has confirmed; the assertion to exchange."""
    waited_s = 0
    while waited_s <= patience_s + interval_s:
        connection.wait(interval_s)
        # A server that asks for no pause is not asked for ever.
        waited_s += max(interval_s, 1)
        reply = _poll(server, claim_token)
        if reply.status == 429:
            interval_s = min(SLOWEST_S, int(connection.asked_pause_s(reply.headers, 1)) + 1)
            continue
        if not reply.is_success:
            raise _refusal(server, reply)
        standing = connection.decoded(reply, wire.Standing, "cannot sign in")
        if standing.status == "claimed":
            return standing.identity_assertion
    remedy = "Run the command again, and confirm in the browser while it waits."
    raise Failure("cannot sign in", why="the confirmation did not come in time", remedy=remedy, exit_code=Exit.REFUSED)


def _refusal(server: Server, reply: Reply) -> Failure:
    """Why nothing comes of the claim, for the person: what the server says of it is meant for agents."""
    failure = server.refusal(reply, "cannot sign in")
    failure.remedy = "Run `countersign login` again, and confirm with the code it shows."
    if failure.problem == "invalid_scope":
        failure.exit_code = Exit.REFUSED
        failure.why = "this account may not publish"
        failure.remedy = (
            "Run `countersign login` without --publish to find, own and download. To publish, have an owner of the "
            "organisation make this account a publisher."
        )
    return failure


def _poll(server: Server, claim_token: str) -> Reply:
    request = Request("GET", f"{server.base}/auth/me", {"Authorization": f"Bearer {claim_token}"})
    return server.ask(request, "cannot sign in")
