"""Redeeming a code exactly once: its use, the entitlements and the record of it commit together."""

from typing import NamedTuple

from countersign.kernel import clock
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import NotFound, Refused
from countersign.kernel.http.rate_limit import Quota, RateLimited
from countersign.store import library
from countersign.store.context import Store
from countersign.store.redeem import codes
from countersign.store.redeem.codes import RedeemCode
from countersign.store.redeem.schemas import RedeemResult

FAILURES_WINDOW_S = 600


class CodeNotFound(NotFound):
    """There is no such code."""

    code = "code_not_found"
    title = "Code not found"
    resolution = "Check the code for typing errors."


class CodeAlreadyRedeemed(Refused):
    """Every use of the code is taken."""

    status = 409
    code = "code_already_redeemed"
    title = "Code already redeemed"
    resolution = "Ask the person who gave you the code for another one."


class CodeExpired(Refused):
    """The code's window is over, or has not opened."""

    status = 410
    code = "code_expired"
    title = "Code not valid now"
    resolution = "Ask the person who gave you the code for another code."


class CodeRevoked(Refused):
    """The code was taken back by its issuer."""

    status = 410
    code = "code_revoked"
    title = "Code revoked"
    resolution = "Ask the person who gave you the code for another one."


class Redemption(NamedTuple):
    """What a code brought, and whether the same owner redeemed it before."""

    result: RedeemResult
    is_repeated: bool


async def redeem(store: Store, transaction: Transaction, owner: str, address: str, typed: str) -> Redemption:
    """Redeem a code for an owner. The same owner gets the same answer again for the same code; a code that would
    give nothing new is not used up. The outcome says whether the owner redeemed it before.

    A correct code is redeemed while wrong guesses are limited: its random bits cannot be guessed. One that is shorter
    could be, so it waits like an unknown one.

    Raises:
        CodeNotFound, CodeAlreadyRedeemed, CodeExpired, CodeRevoked: see each; nothing changes.
        RateLimited: too many unknown codes from this owner or address lately.
    """
    code_hash = codes.digest(typed)
    found = await codes.code(transaction, code_hash, owner)
    if found is None or not codes.is_full_length(typed):
        await _require_below_limit(store, owner, address)
    if found is None:
        await _count_failure(store, owner, address)
        raise CodeNotFound("there is no such code")
    if found.is_redeemed:
        return Redemption(_result(found, already_owned=False), is_repeated=True)
    now = clock.now()
    _require_usable(found, now)
    granted = await library.grant(transaction, owner, found.products, f"batch:{found.batch_id}", now)
    if not granted:
        # Owned by other means, or by this very code in a call that committed while this one waited for it.
        again = await codes.code(transaction, code_hash, owner)
        is_repeated = again is not None and again.is_redeemed
        return Redemption(_result(found, already_owned=not is_repeated), is_repeated)
    if not await transaction.run(codes.INSERT_REDEMPTION, code_hash, owner, now):
        return Redemption(_result(found, already_owned=False), is_repeated=True)
    if not await transaction.run(codes.USE_CODE, code_hash, found.max_uses):
        raise CodeAlreadyRedeemed("every use of this code is taken")
    return Redemption(_result(found, already_owned=False), is_repeated=False)


def _result(found: RedeemCode, *, already_owned: bool) -> RedeemResult:
    return RedeemResult(True, found.products[0], found.products, already_owned)


def _require_usable(found: RedeemCode, now: clock.Instant) -> None:
    if found.status == "revoked":
        raise CodeRevoked("this code was revoked")
    if found.valid_from is not None and now < found.valid_from:
        start = clock.rfc3339(found.valid_from)
        raise CodeExpired(f"this code is valid from {start} on", resolution=f"Redeem the code again from {start} on.")
    if found.expires_at is not None and now >= found.expires_at:
        raise CodeExpired(f"this code was valid until {clock.rfc3339(found.expires_at)}")
    if found.uses >= found.max_uses:
        raise CodeAlreadyRedeemed("every use of this code is taken")


def _limits(store: Store, owner: str, address: str) -> tuple[tuple[str, int], tuple[str, int]]:
    return (
        (f"codes\0{owner}", store.settings.code_failures_person),
        (f"codes\0{address}", store.settings.code_failures_address),
    )


async def _require_below_limit(store: Store, owner: str, address: str) -> None:
    for key, limit in _limits(store, owner, address):
        _require_allowed(await store.counters.peek(key, limit, FAILURES_WINDOW_S))


async def _count_failure(store: Store, owner: str, address: str) -> None:
    """Refuses as well: of guesses that were sent at once, those beyond the limit learn nothing."""
    for key, limit in _limits(store, owner, address):
        _require_allowed(await store.counters.hit(key, limit, FAILURES_WINDOW_S))


def _require_allowed(standing: Quota) -> None:
    if not standing.allowed:
        raise RateLimited("too many unknown codes; each guess is counted", standing)
