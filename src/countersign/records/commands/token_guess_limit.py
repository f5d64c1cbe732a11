"""Limits how many unknown placeholder tokens a caller may send, because a caller could guess tokens of personal
values."""

from countersign.kernel.http.rate_limit import SharedMemoryCounters
from countersign.records.access.view import Caller
from countersign.records.commands.errors import TooManyUnknownTokens

MAX_UNKNOWN_TOKENS = 20
WINDOW_S = 600


class TokenGuessLimit:
    """Counts the unknown tokens of each caller. All worker processes of the machine share the counters."""

    def __init__(self, counters: SharedMemoryCounters) -> None:
        self._counters = counters

    def count(self, caller: Caller) -> None:
        """Count one more unknown token.

        Raises:
            TooManyUnknownTokens: the caller sent more than `MAX_UNKNOWN_TOKENS` within `WINDOW_S` seconds.
        """
        name = f"unknown-token\0{caller.user_id}\0{caller.agent or ''}"
        quota = self._counters.hit_now(name, MAX_UNKNOWN_TOKENS, WINDOW_S)
        if not quota.allowed:
            is_first = self._counters.hit_now(f"{name}\0first", 1, WINDOW_S).allowed
            raise TooManyUnknownTokens(
                f"more than {MAX_UNKNOWN_TOKENS} unknown tokens in {WINDOW_S // 60} minutes",
                is_first=is_first,
                retry_after_s=max(1, quota.reset_s),
            )
