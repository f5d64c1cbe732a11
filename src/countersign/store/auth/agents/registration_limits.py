"""The hourly limits of registrations of agents and of OAuth clients, and of claims (attack T47)."""

from countersign.kernel.http.rate_limit import RateLimited
from countersign.store.auth.agents.registrations import Kind
from countersign.store.context import Store

HOUR_S = 3600
# The limits of agent-auth 7.12. The setting COUNTERSIGN_RATE_REGISTER replaces all of these limits.
MAX_PER_ADDRESS: dict[Kind, int] = {"anonymous": 20, "service_auth": 20, "identity_assertion": 60}
MAX_PER_EMAIL = 5
MAX_ATTEMPTS_PER_HOUR = 12
MAX_CLIENTS_PER_ADDRESS = 20


async def count_registration(store: Store, kind: Kind, address: str) -> None:
    """Count one registration.

    Raises:
        RateLimited: the address, or all addresses together, registered too many agents in this hour.
    """
    settings = store.settings
    of_all = settings.register_anonymous_all if kind == "anonymous" else settings.register_named_all
    group = "anonymous" if kind == "anonymous" else "named"
    # Count the address first: an address that floods must not use up the limit of all addresses together.
    await _count(store, f"register\0{kind}\0{address}", settings.rate_register or MAX_PER_ADDRESS[kind], "this address")
    await _count(store, f"register\0{group}", of_all, "all agents together")


async def count_client(store: Store, address: str) -> None:
    """Count one dynamic registration of an OAuth client.

    Raises:
        RateLimited: the address registered too many clients in this hour.
    """
    limit = store.settings.rate_register or MAX_CLIENTS_PER_ADDRESS
    await _count(store, f"register\0client\0{address}", limit, "this address")


async def count_claim_of_person(store: Store, email: str) -> None:
    """Count one claim that names a person, so that a person is not flooded with requests.

    Raises:
        RateLimited: too many claims named the address in this hour.
    """
    await _count(store, f"register\0email\0{email}", store.settings.rate_register or MAX_PER_EMAIL, "this e-mail")


async def count_attempt(store: Store, registration_id: str) -> None:
    """Count one attempt of a registration beyond its first.

    Raises:
        RateLimited: there were too many attempts in this hour.
    """
    await _count(store, f"attempt\0{registration_id}", MAX_ATTEMPTS_PER_HOUR, "this registration")


async def _count(store: Store, key: str, limit: int, subject: str) -> None:
    quota = await store.counters.hit(key, limit, HOUR_S)
    if not quota.allowed:
        raise RateLimited(f"the limit of {quota.limit} in an hour is used up for {subject}", quota)
