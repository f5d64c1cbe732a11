"""OAuth clients of an organisation."""

from collections.abc import Iterable, Sequence

import msgspec

from countersign.distribution.identity import organisations, queries, redirect_uris, scopes
from countersign.distribution.identity.tokens import InvalidScope
from countersign.kernel import clock, ids
from countersign.kernel.database import versions
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import NotFound
from countersign.kernel.security import secrets


class ClientNotFound(NotFound):
    """The organisation has no client with this id."""

    resolution = "List the clients with GET /api/v1/org/clients."


async def create_client(
    transaction: Transaction,
    org_id: str,
    name: str,
    scope: Iterable[str],
    *,
    returns_to: Sequence[str] = (),
    is_implicit: bool = False,
) -> tuple[queries.Client, str]:
    """A new client and its secret, which is kept as a hash and shown this once. `returns_to` are the addresses people
    may be sent back to with a code, or with a token where `is_implicit`.

    Raises:
        InvalidScope: a scope does not exist.
        InvalidRequest: an address is none that people can safely be sent to.
    """
    secret = secrets.new_secret("ccs")
    client_id = "cc_" + ids.new_uuid().replace("-", "")
    redirect_uris.require_safe(returns_to)
    added = await add_client(
        transaction, org_id, client_id, secret, name, scope, returns_to=returns_to, is_implicit=is_implicit
    )
    return added, secret


async def add_client(
    transaction: Transaction,
    org_id: str,
    client_id: str,
    secret: str,
    name: str,
    scope: Iterable[str],
    *,
    returns_to: Sequence[str] = (),
    is_implicit: bool = False,
) -> queries.Client:
    """A client with an id and a secret chosen beforehand.

    Raises:
        InvalidScope: a scope does not exist.
        InvalidRequest: the name cannot be shown to people as it is.
    """
    organisations.require_name(name)
    wanted = frozenset(scope)
    unknown = sorted(wanted - frozenset(scopes.ALL))
    if unknown:
        remedy = f"Name scopes among: {' '.join(scopes.ALL)}."
        raise InvalidScope(f"there is no scope {unknown[0][:64]}", resolution=remedy)
    made = queries.Client(
        client_id, org_id, name, secrets.digest(secret), wanted, clock.now(), tuple(returns_to), is_implicit
    )
    await transaction.run(
        queries.INSERT_CLIENT,
        made.id,
        org_id,
        name,
        made.secret_hash,
        scopes.words(wanted),
        made.created_at,
        msgspec.json.encode(made.redirect_uris).decode(),
        int(is_implicit),
    )
    return made


async def delete_client(transaction: Transaction, org_id: str, client_id: str) -> None:
    """Remove a client; its tokens end at once, on every worker.

    Raises:
        ClientNotFound: the organisation has no such client.
    """
    if not await transaction.run(queries.DELETE_CLIENT, client_id, org_id):
        raise ClientNotFound("the organisation has no client with this id")
    await versions.bump(transaction, "identity")
