"""Which server a command talks to."""

import os
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

COMMAND = TypeVar("COMMAND", bound=Callable[..., Any])
DEFAULT_SERVER = "http://127.0.0.1:8480"
VARIABLE = "COUNTERSIGN_SERVER"

_SERVER = "countersign.server"


def server_option(command: COMMAND) -> COMMAND:
    """Give a command the option --server, which may stand before or after the command's name."""
    text = f"Address of the store (or {VARIABLE}). Default: {DEFAULT_SERVER}"
    decorate = click.option("--server", metavar="URL", expose_value=False, callback=_remember, help=text)
    return decorate(command)


def _remember(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta[_SERVER] = root_of(value)


def chosen_server() -> str:
    """The root address of the server: from --server, the environment or the default; no trailing slash.

    Raises:
        UsageError: the environment's address is none.
    """
    context = click.get_current_context(silent=True)
    given: object = None if context is None else context.meta.get(_SERVER)
    return str(given) if given else root_of(os.environ.get(VARIABLE) or DEFAULT_SERVER)


def root_of(address: str) -> str:
    """The root address without trailing slash or API path.

    Raises:
        UsageError: it is no http:// or https:// address, or carries a password, query or fragment.
    """
    try:
        parts = urlsplit(address.strip())
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise click.UsageError(f"{address!r} is no server address; write it like {DEFAULT_SERVER}")
    parts = urlsplit(address.strip())
    if parts.username is not None or parts.query or parts.fragment:
        raise click.UsageError("a server address holds no user, query or fragment; use `countersign login` for tokens")
    path = parts.path.rstrip("/").removesuffix("/api/v1")
    return f"{parts.scheme}://{parts.netloc}{path}"
