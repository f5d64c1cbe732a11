"""OAuth clients of an organisation."""

from collections.abc import Iterable

from countersign.distribution.identity import queries, scopes
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
    transaction: Transaction, org_id: str, name: str, scope: Iterable[str]
) -> tuple[queries.Client, str]:
    """A new client and its secret, which is kept as a hash and shown this once.

    Raises:
        InvalidScope: a scope does not exist.
    """
    secret = secrets.new_secret("ccs")
    client_id = "cc_" + ids.new_uuid().replace("-", "")
    return await add_client(transaction, org_id, client_id, secret, name, scope), secret


async def add_client(
    transaction: Transaction, org_id: str, client_id: str, secret: str, name: str, scope: Iterable[str]
) -> queries.Client:
    """A client with an id and a secret chosen beforehand.

    Raises:
        InvalidScope: a scope does not exist.
    """
    wanted = frozenset(scope)
    unknown = sorted(wanted - frozenset(scopes.ALL))
    if unknown:
        raise InvalidScope(f"there is no scope {unknown[0][:64]}")
    made = queries.Client(client_id, org_id, name, secrets.digest(secret), wanted, clock.now())
    await transaction.run(
        queries.INSERT_CLIENT, made.id, org_id, name, made.secret_hash, scopes.words(wanted), made.created_at
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
