"""`countersign login`, `logout` and `whoami`: save the token of a claim, end it, and show whom it acts for."""

import os
import sys
from urllib.parse import urlencode

import click
import msgspec

from countersign.cli import output
from countersign.cli.client import api_models, connection, credentials
from countersign.cli.client.connection import Reply, Server
from countersign.cli.client.transport import Request, Unreachable, send
from countersign.cli.options import server_option
from countersign.cli.output import Exit, Failure

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
MAX_POLL_S = 60


MAX_TOKEN_LENGTH = 16_384


def request_token(server: Server, email: str, scopes: str) -> str:
    """Wait until the person with this e-mail address confirms in a browser, and return their bearer token.

    Raises:
        Failure: the server refuses the request, or the person declines or does not confirm in time.
    """
    server.use_no_token()
    failure = "cannot sign in"
    registration_body = {"method": "service_auth", "email": email, "scope": scopes}
    registration = connection.decode(
        server.post("/auth/register", registration_body, failure), api_models.Registration, failure
    )
    claim = registration.claim
    output.note(f"Open {claim.verification_uri}")
    output.note(f"sign in there as {email}, and type the code {claim.user_code}")
    output.note(f"Waiting for {-(-claim.expires_in // 60)} minutes; Ctrl-C ends it.")
    assertion = _poll_assertion(server, registration.claim_token, claim.interval, claim.expires_in)
    body = {"grant_type": JWT_BEARER, "assertion": assertion}
    return connection.decode(server.post("/auth/token", body, failure), api_models.Token, failure).access_token


def _poll_assertion(server: Server, claim_token: str, interval_s: int, patience_s: int) -> str:
    """Poll until the person has confirmed, and return the assertion to exchange for a token."""
    waited_s = 0
    while waited_s <= patience_s + interval_s:
        connection.wait(interval_s)
        # Count at least a second for each poll, so that the loop ends even if the server asks for no pause.
        waited_s += max(interval_s, 1)
        reply = _poll(server, claim_token)
        if reply.status == 429:
            interval_s = min(MAX_POLL_S, int(connection.retry_pause_s(reply.headers, 1)) + 1)
            continue
        if not reply.is_success:
            raise _claim_refusal(server, reply)
        claim_status = connection.decode(reply, api_models.ClaimStatus, "cannot sign in")
        if claim_status.status == "claimed":
            return claim_status.identity_assertion
    remedy = "Run the command again, and confirm in the browser while it waits."
    raise Failure("cannot sign in", why="the confirmation did not come in time", remedy=remedy, exit_code=Exit.REFUSED)


def _claim_refusal(server: Server, reply: Reply) -> Failure:
    """Return the failure for a refused claim, in words for the person: the server's own text is meant for agents."""
    failure = server.refusal(reply, "cannot sign in")
    failure.remedy = "Run `countersign login` again, and confirm with the code it shows."
    if failure.problem == "invalid_scope":
        failure.exit_code = Exit.REFUSED
        failure.why = "this account may not publish"
        failure.remedy = (
            "Run `countersign login` without --publish to search, redeem and download. To publish, ask an owner of "
            "the organisation to make this account a publisher."
        )
    return failure


def _poll(server: Server, claim_token: str) -> Reply:
    request = Request("GET", f"{server.base}/auth/me", {"Authorization": f"Bearer {claim_token}"})
    return server.ask(request, "cannot sign in")


@click.command()
@click.option("--email", help="Your account's address; asked for on a terminal.")
@click.option("--publish", is_flag=True, help="Also request the scopes of a publisher.")
@click.option("--with-token", is_flag=True, help="Read a token from stdin instead (asked for on a terminal).")
@server_option
@output.json_option
def login(email: str | None, publish: bool, with_token: bool) -> None:
    """Sign in to a server: confirm in a browser, and the command saves a token on this machine.

    The command shows an address and a code. Open the address, sign in with your account, and type the code. The token
    can read and redeem. With --publish it can also publish, which only the account of a publisher can allow. The token
    ends after a day, or when you disconnect it on the page of your agents.

    A token that you already have is read from stdin, and never from the command line, where others could see it:

        countersign token issue me@example.com --data DIR | countersign login --with-token
    """
    if with_token and (email or publish):
        raise click.UsageError("use --with-token without --email and --publish: the token already has its scopes")
    server = connection.selected_server()
    if with_token:
        token = _token_from_stdin()
    else:
        scopes = connection.PUBLISH_SCOPES if publish else connection.READ_SCOPES
        token = request_token(server, email or _prompt_email(), scopes)
    server.use_token(token)
    me = server.get("/auth/me", api_models.Me, "the token was not saved")
    path = credentials.save_token(server.root, token)
    name = me.email or me.sub
    output.print_result({"server": server.root, "as": name}, f"Signed in to {server.root} as {name}.")
    output.note(f"The token is saved in {path}.")
    if os.environ.get(credentials.Variable.BEARER, "").strip():
        output.note("COUNTERSIGN_TOKEN is set and takes precedence: unset it to use the stored token.")


def _prompt_email() -> str:
    """Ask on the terminal for the e-mail address of the account."""
    if not sys.stdin.isatty():
        raise click.UsageError("use --email ADDRESS, or --with-token and give the token on stdin")
    return str(click.prompt("E-mail", err=True)).strip()


def _token_from_stdin() -> str:
    """Read the token from stdin.

    Raises:
        Failure: stdin is empty.
    """
    if sys.stdin.isatty():
        token = str(click.prompt("Token", hide_input=True, err=True)).strip()
    else:
        token = sys.stdin.read(MAX_TOKEN_LENGTH).strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        reason, remedy = "stdin has no token", "Write only the token to stdin."
        raise Failure("no token was kept", why=reason, remedy=remedy, exit_code=Exit.USAGE)
    return token


@click.command()
@server_option
@output.json_option
def logout() -> None:
    """Remove the saved login of a server from this machine, and make the server revoke the token of the login.

    If the server cannot be reached, the login is removed nevertheless. The token then expires within a day.
    """
    server = connection.selected_server()
    token = credentials.load_token(server.root)
    if token is None:
        output.print_result({"server": server.root, "removed": False}, f"There is no saved login for {server.root}.")
    else:
        reason = _end_token(server, token)
        path = credentials.remove_token(server.root)
        value = {"server": server.root, "removed": True, "revoked": not reason}
        output.print_result(value, f"Signed out of {server.root}: the login is removed from {path}.")
        if reason:
            output.note(f"The server did not revoke the token ({reason}). The token expires within a day of the login.")
    if os.environ.get(credentials.Variable.BEARER, "").strip():
        output.note("COUNTERSIGN_TOKEN is still set: commands continue to use this token.")


def _end_token(server: Server, token: str) -> str:
    """Have the server revoke the token (RFC 7009), and return the reason if it did not."""
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    try:
        request = Request("POST", f"{server.root}/auth/revoke", headers, urlencode({"token": token}).encode())
        reply = connection.read_reply(send(request))
    except Unreachable as error:
        return str(error)
    return "" if reply.is_success else f"it answered {reply.status}"


@click.command()
@server_option
@output.json_option
def whoami() -> None:
    """Show the account of the token, its scopes and when it expires."""
    server = connection.selected_server()
    failure = "cannot show the account"
    if server.token is None:
        remedy = "Sign in with `countersign login`, or set COUNTERSIGN_TOKEN."
        reason = f"there is no token for {server.root}"
        raise Failure(failure, why=reason, remedy=remedy, exit_code=Exit.REFUSED, problem="invalid_token")
    me = server.get("/auth/me", api_models.Me, failure)
    rows = [
        ("server", server.root),
        ("account", me.email or f"OAuth client {me.sub}"),
        ("organisations", " ".join(me.orgs) or "none"),
        ("scopes", me.scope or "a signed-in session: all that the person may do"),
        ("valid until", me.expires_at),
    ]
    value = {"server": server.root, **msgspec.to_builtins(me)}
    output.print_result(value, "\n".join(f"{name}: {text}" for name, text in rows))
