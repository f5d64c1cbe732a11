"""Redeem a code exactly once. One transaction stores the use of the code, the entitlements and the redemption."""

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
    """The code does not exist."""

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
    """The code is no longer valid, or not valid yet."""

    status = 410
    code = "code_expired"
    title = "Code not valid now"
    resolution = "Ask the person who gave you the code for another code."


class CodeRevoked(Refused):
    """The issuer revoked the code."""

    status = 410
    code = "code_revoked"
    title = "Code revoked"
    resolution = "Ask the person who gave you the code for another one."


class Redemption(NamedTuple):
    """The result of redeeming a code, and whether the same owner redeemed it before."""

    result: RedeemResult
    is_repeated: bool


async def find_code(store: Store, owner: str, address: str, typed_code: str) -> RedeemCode:
    """Find a code for an owner, before the transaction that redeems it: the counters of wrong guesses may be remote,
    and other writers must not wait for them.

    The limit on wrong guesses does not apply to a correct code of full length, because no one can guess its random
    bits. The limit applies to shorter codes, because these could be guessed.

    Raises:
        CodeNotFound: the code does not exist.
        RateLimited: this owner or address recently sent too many unknown codes.
    """
    code = await codes.redeem_code(store.database, codes.digest(typed_code), owner)
    if code is None or not codes.is_full_length(typed_code):
        await _require_below_limit(store, owner, address)
    if code is None:
        await _count_failure(store, owner, address)
        raise CodeNotFound("the code does not exist")
    return code


async def redeem(transaction: Transaction, owner: str, typed_code: str, redeem_code: RedeemCode) -> Redemption:
    """Redeem the code that `find_code` found for the owner. Repeating the call returns the same result. A code that
    would grant nothing new is not used up. A code that was revoked or used up after it was found grants nothing.

    Raises:
        CodeNotFound, CodeAlreadyRedeemed, CodeExpired, CodeRevoked: the code cannot be redeemed, and nothing changes.
    """
    if redeem_code.is_redeemed:
        return Redemption(_redeem_result(redeem_code, already_owned=False), is_repeated=True)
    now = clock.now()
    _require_usable(redeem_code, now)
    code_hash = codes.digest(typed_code)
    granted_products = await library.grant(
        transaction, owner, redeem_code.products, f"batch:{redeem_code.batch_id}", now
    )
    if not granted_products:
        # The products are owned by other means, or by this code in a concurrent call that committed first.
        current_code = await _reload_code(transaction, code_hash, owner)
        if not current_code.is_redeemed:
            _require_usable(current_code, now)
        return Redemption(
            _redeem_result(redeem_code, already_owned=not current_code.is_redeemed), current_code.is_redeemed
        )
    if not await transaction.run(codes.INSERT_REDEMPTION, code_hash, owner, now):
        return Redemption(_redeem_result(redeem_code, already_owned=False), is_repeated=True)
    if not await transaction.run(codes.USE_CODE, code_hash, redeem_code.max_uses):
        _require_usable(await _reload_code(transaction, code_hash, owner), now)
        raise CodeAlreadyRedeemed("every use of this code is taken")
    return Redemption(_redeem_result(redeem_code, already_owned=False), is_repeated=False)


async def _reload_code(transaction: Transaction, code_hash: bytes, owner: str) -> RedeemCode:
    code = await codes.redeem_code(transaction, code_hash, owner)
    if code is None:
        raise CodeNotFound("the code does not exist")
    return code


def _redeem_result(code: RedeemCode, *, already_owned: bool) -> RedeemResult:
    return RedeemResult(True, code.products[0], code.products, already_owned)


def _require_usable(code: RedeemCode, now: clock.Instant) -> None:
    if code.status == "revoked":
        raise CodeRevoked("this code was revoked")
    if code.valid_from is not None and now < code.valid_from:
        start = clock.rfc3339(code.valid_from)
        raise CodeExpired(f"this code is valid from {start} on", resolution=f"Redeem the code again from {start} on.")
    if code.expires_at is not None and now >= code.expires_at:
        raise CodeExpired(f"this code was valid until {clock.rfc3339(code.expires_at)}")
    if code.uses >= code.max_uses:
        raise CodeAlreadyRedeemed("every use of this code is taken")


def _failure_limits(store: Store, owner: str, address: str) -> tuple[tuple[str, int], tuple[str, int]]:
    return (
        (f"codes\0{owner}", store.settings.code_failures_person),
        (f"codes\0{address}", store.settings.code_failures_address),
    )


async def _require_below_limit(store: Store, owner: str, address: str) -> None:
    for key, limit in _failure_limits(store, owner, address):
        _require_allowed(await store.counters.peek(key, limit, FAILURES_WINDOW_S))


async def _count_failure(store: Store, owner: str, address: str) -> None:
    """Count an unknown code; concurrent guesses beyond the limit are rejected."""
    for key, limit in _failure_limits(store, owner, address):
        _require_allowed(await store.counters.hit(key, limit, FAILURES_WINDOW_S))


def _require_allowed(quota: Quota) -> None:
    if not quota.allowed:
        raise RateLimited("too many unknown codes; each guess is counted", quota)
