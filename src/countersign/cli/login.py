"""`countersign login` and `whoami`: keep a token for a server, and show whom it stands for."""

import os
import sys

import click
import msgspec

from countersign.cli import claiming, connection, credentials, output, wire
from countersign.cli.output import Exit, Failure
from countersign.cli.target import server_option

MAX_TOKEN_LENGTH = 16_384


@click.command()
@click.option("--email", help="Your account's address; asked for on a terminal.")
@click.option("--publish", is_flag=True, help="Ask for what a publisher needs, too: products, releases, uploads.")
@click.option("--with-token", is_flag=True, help="Read a token from stdin instead (asked for on a terminal).")
@server_option
@output.json_option
def login(email: str | None, publish: bool, with_token: bool) -> None:
    """Sign in to a server: confirm in a browser, and a token is kept here.

    It shows an address and a code. Open the address, sign in with the account, type the code. What is kept may read and
    redeem; with --publish it may publish as well, which an account that is no publisher cannot allow. It ends after a
    day, or when you disconnect it on the page of your agents.

    A token that you have already is read from stdin and never from the command line, where others could see it:

        countersign token issue me@example.com --data DIR | countersign login --with-token
    """
    if with_token and (email or publish):
        raise click.UsageError("say --with-token without --email and --publish: the token has its scopes already")
    server = connection.chosen()
    if with_token:
        token = _token_from_stdin()
    else:
        scopes = connection.PUBLISHING if publish else connection.READING
        token = claiming.token_for(server, email or _asked_for(), scopes)
    server.use_token(token)
    me = server.get("/auth/me", wire.Me, "the token was not kept")
    path = credentials.keep(server.root, token)
    name = me.email or me.sub
    output.answer({"server": server.root, "as": name}, f"Signed in to {server.root} as {name}.")
    output.note(f"The token is kept in {path}.")
    if os.environ.get(credentials.Variable.BEARER, "").strip():
        output.note("COUNTERSIGN_TOKEN is set and goes before it: unset it to act with the token that is kept.")


def _asked_for() -> str:
    """The account's address, from whoever sits at the terminal."""
    if not sys.stdin.isatty():
        raise click.UsageError("say --email ADDRESS, or --with-token and give the token on stdin")
    return str(click.prompt("E-mail", err=True)).strip()


def _token_from_stdin() -> str:
    """The token on stdin.

    Raises:
        Failure: there is none.
    """
    if sys.stdin.isatty():
        token = str(click.prompt("Token", hide_input=True, err=True)).strip()
    else:
        token = sys.stdin.read(MAX_TOKEN_LENGTH).strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        why, remedy = "stdin holds no token", "Give it on stdin, alone."
        raise Failure("no token was kept", why=why, remedy=remedy, exit_code=Exit.USAGE)
    return token


@click.command()
@server_option
@output.json_option
def whoami() -> None:
    """Show whom the token stands for, what it may do and when it ends."""
    server = connection.chosen()
    doing = "cannot tell who you are"
    if server.token is None:
        remedy = "Sign in with `countersign login`, or set COUNTERSIGN_TOKEN."
        why = f"there is no token for {server.root}"
        raise Failure(doing, why=why, remedy=remedy, exit_code=Exit.REFUSED, problem="invalid_token")
    me = server.get("/auth/me", wire.Me, doing)
    rows = [
        ("server", server.root),
        ("account", me.email or f"OAuth client {me.sub}"),
        ("organisations", " ".join(me.orgs) or "none"),
        ("scopes", me.scope or "a signed-in session: all that the person may do"),
        ("valid until", me.expires_at),
    ]
    value = {"server": server.root, **msgspec.to_builtins(me)}
    output.answer(value, "\n".join(f"{name}: {text}" for name, text in rows))
