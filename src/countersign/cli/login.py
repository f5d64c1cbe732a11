"""`countersign login` and `whoami`: keep a token for a server, and show whom it stands for."""

import sys

import click
import msgspec

from countersign.cli import connection, credentials, output, wire
from countersign.cli.output import Exit, Failure
from countersign.cli.target import server_option

LONGEST_TOKEN = 16_384


@click.command()
@click.option("--with-token", is_flag=True, help="Read the token from stdin (asked for on a terminal).")
@server_option
@output.json_option
def login(with_token: bool) -> None:
    """Keep a bearer token for a server, once the server has recognised it.

    A token comes from the store's pages, from `countersign token issue`, or from an OAuth client. It is read from
    stdin and never from the command line, where others could see it:

        countersign token issue me@example.com --data DIR | countersign login --with-token
    """
    if not with_token:
        raise click.UsageError("say --with-token and give the token on stdin")
    if sys.stdin.isatty():
        token = str(click.prompt("Token", hide_input=True, err=True)).strip()
    else:
        token = sys.stdin.read(LONGEST_TOKEN).strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        why, remedy = "stdin holds no token", "Give it on stdin, alone."
        raise Failure("no token was kept", why=why, remedy=remedy, exit_code=Exit.USAGE)
    server = connection.chosen()
    server.use_token(token)
    me = server.get("/auth/me", wire.Me, "the token was not kept")
    path = credentials.keep(server.root, token)
    name = me.email or me.sub
    output.answer({"server": server.root, "as": name}, f"Signed in to {server.root} as {name}.")
    output.note(f"The token is kept in {path}.")


@click.command()
@server_option
@output.json_option
def whoami() -> None:
    """Show whom the token stands for, what it may do and when it ends."""
    server = connection.chosen()
    doing = "cannot tell who you are"
    if server.token is None:
        remedy = "Sign in with `countersign login --with-token`, or set COUNTERSIGN_TOKEN."
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
