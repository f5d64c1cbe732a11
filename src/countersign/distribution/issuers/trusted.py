"""Which issuers are trusted: added, listed and removed by the operator."""

from collections.abc import Iterable

from countersign.distribution.context import Store
from countersign.distribution.issuers import queries
from countersign.distribution.issuers.queries import Issuer
from countersign.kernel import clock, safe_http_client
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import InvalidRequest, NotFound, Refused
from countersign.kernel.security import external_jwt

USUAL_ALGORITHMS = ("ES256", "RS256")
MAX_ISSUER_LENGTH = 255
MAX_NAME_LENGTH = 80


class IssuerExists(Refused):
    """An issuer of this identifier is trusted already; it was not changed."""

    status = 409
    code = "issuer_exists"
    title = "Issuer exists"
    resolution = "Remove it first to say something else of it: countersign issuers remove ISSUER"


class IssuerNotFound(NotFound):
    """No issuer of this identifier is trusted."""

    resolution = "See which ones are: countersign issuers list"


async def add(
    transaction: Transaction,
    store: Store,
    issuer: str,
    *,
    name: str,
    jwks_uri: str,
    algorithms: Iterable[str] = (),
    client_ids: Iterable[str] = (),
    domains: Iterable[str] = (),
) -> Issuer:
    """Believe what this issuer asserts from now on, on every worker; without algorithms with ES256 and RS256.

    `name` is what people see on the claim page. Tokens are matched with `issuer` character by character.

    Raises:
        InvalidRequest: issuer or address of its keys is no https address (http where COUNTERSIGN_PRIVATE_ISSUERS
            allows it), the issuer is this store itself, the name is blank or long, an algorithm is not supported, a
            domain is none.
        IssuerExists: it is trusted already.
    """
    made = Issuer(
        _identifier(store, issuer),
        _name(name),
        _address("the address of the keys", jwks_uri, store),
        _algorithms(algorithms),
        frozenset(client_ids),
        frozenset(map(_domain, domains)),
        clock.now(),
    )
    if not await queries.insert_issuer(transaction, made):
        raise IssuerExists(f"{issuer} is trusted already")
    return made


async def remove(transaction: Transaction, issuer: str) -> None:
    """Believe nothing of this issuer any more, on every worker; what was registered through it, the caller ends.

    Raises:
        IssuerNotFound: it was not trusted.
    """
    if not await transaction.run(queries.DELETE_ISSUER, issuer):
        raise IssuerNotFound(f"{issuer[:MAX_ISSUER_LENGTH]} is not trusted")


def _address(what: str, url: str, store: Store) -> str:
    try:
        safe_http_client.address(url, private=store.settings.private_issuers)
    except ValueError as error:
        raise InvalidRequest(f"{what}: {error}", resolution="") from error
    return url


def _identifier(store: Store, issuer: str) -> str:
    """An issuer identifier is an address without a query (RFC 8414 §2)."""
    _address("the issuer", issuer, store)
    if "?" in issuer or len(issuer) > MAX_ISSUER_LENGTH:
        raise InvalidRequest(f"the issuer has no query and {MAX_ISSUER_LENGTH} characters at most", resolution="")
    if issuer.rstrip("/") == store.root_url:
        raise InvalidRequest("the issuer is this store itself, whose own tokens are verified otherwise", resolution="")
    return issuer


def _name(name: str) -> str:
    if not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise InvalidRequest(f"the name has 1 to {MAX_NAME_LENGTH} printable characters", resolution="")
    return name.strip()


def _algorithms(given: Iterable[str]) -> frozenset[str]:
    wanted = frozenset(given) or frozenset(USUAL_ALGORITHMS)
    unknown = sorted(wanted - frozenset(external_jwt.ALGORITHMS))
    if unknown:
        raise InvalidRequest(f"{unknown[0]} is none of {', '.join(external_jwt.ALGORITHMS)}", resolution="")
    return wanted


def _domain(domain: str) -> str:
    made = domain.strip().lower()
    if not made or not made.isascii() or "@" in made or "." not in made.strip(".") or made.split() != [made]:
        raise InvalidRequest(f"{domain} is no e-mail domain, like example.com", resolution="")
    return made
