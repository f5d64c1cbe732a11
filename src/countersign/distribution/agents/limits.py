"""How many agents may register in an hour: from one address, and at all (attack T47)."""

from countersign.distribution.agents.registrations import Kind
from countersign.distribution.context import Store
from countersign.kernel.http.rate_limit import RateLimited

HOUR_S = 3600
# agent-auth 7.12; COUNTERSIGN_RATE_REGISTER replaces all of them.
OF_ADDRESS: dict[Kind, int] = {"anonymous": 20, "service_auth": 20, "identity_assertion": 60}
OF_EMAIL = 5
ATTEMPTS_AN_HOUR = 12
CLIENTS_OF_ADDRESS = 20


async def count_registration(store: Store, kind: Kind, address: str) -> None:
    """Count one registration.

    Raises:
        RateLimited: the address, or all together, registered too many in this hour.
    """
    settings = store.settings
    of_all = settings.register_anonymous_all if kind == "anonymous" else settings.register_named_all
    together = "anonymous" if kind == "anonymous" else "named"
    # The address first: one that floods must not use up what is left for all others.
    await _count(store, f"register\0{kind}\0{address}", settings.rate_register or OF_ADDRESS[kind], "this address")
    await _count(store, f"register\0{together}", of_all, "all agents together")


async def count_client(store: Store, address: str) -> None:
    """Count one OAuth client that registers itself.

    Raises:
        RateLimited: the address registered too many in this hour.
    """
    limit = store.settings.rate_register or CLIENTS_OF_ADDRESS
    await _count(store, f"register\0client\0{address}", limit, "this address")


async def count_naming(store: Store, email: str) -> None:
    """Count one claim that names a person: nobody is to be pressed by a flood of them.

    Raises:
        RateLimited: the address was named too often in this hour.
    """
    await _count(store, f"register\0email\0{email}", store.settings.rate_register or OF_EMAIL, "this e-mail")


async def count_attempt(store: Store, registration_id: str) -> None:
    """Count one attempt of a registration beyond its first.

    Raises:
        RateLimited: too many in this hour.
    """
    await _count(store, f"attempt\0{registration_id}", ATTEMPTS_AN_HOUR, "this registration")


async def _count(store: Store, key: str, limit: int, whose: str) -> None:
    standing = await store.counters.hit(key, limit, HOUR_S)
    if not standing.allowed:
        raise RateLimited(f"the limit of {standing.limit} in an hour is used up for {whose}", standing)
