"""Key sets of others, kept in this process for as long as their owner says, within bounds (RFC 7517 §5)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from countersign.kernel import clock
from countersign.kernel.security import external_jwt
from countersign.kernel.security.external_jwt import PublicKey

LEAST_S = 600
MAX_S = 86_400
LOOK_AGAIN_S = 60
RETRY_S = 5


class Document(Protocol):
    """What was fetched: the bytes, and for how long its server lets it be kept (None: not said)."""

    @property
    def body(self) -> bytes:
        """The document."""
        ...

    @property
    def max_age_s(self) -> int | None:
        """Seconds it may be kept."""
        ...


class CannotFetch(Exception):
    """The key set could not be had; the text says why, for our own log."""


Fetch: TypeAlias = Callable[[str], Awaitable[Document]]
"""Gets the document at an address. Raises CannotFetch."""


@dataclass(slots=True)
class _Entry:
    """`failure` is why the last attempt failed, at `tried_at`; instants in µs."""

    keys: tuple[PublicKey, ...] = ()
    fetched_at: int = 0
    keep_s: int = 0
    tried_at: int = 0
    looked_again_at: int = 0
    failure: str = ""
    running: "asyncio.Task[None] | None" = field(default=None)


class KeySets:
    """The key sets of some addresses, which whoever asks must have checked. For one event loop.

    A set is kept for its max-age, 10 minutes at least and 24 hours at most. A key id that is not in it has it fetched
    again, once in 60 s at most. Whoever asks while a set is being fetched waits for that one; after a failure nobody
    waits for 5 s.
    """

    def __init__(self, fetch: Fetch) -> None:
        """`fetch` bounds its own time and size."""
        self._fetch = fetch
        self._entries: dict[str, _Entry] = {}

    async def key(self, address: str, algorithm: str, kid: str | None) -> PublicKey | None:
        """The key in the set at the address that a header with this algorithm and kid means; None: there is none.

        Raises:
            CannotFetch: the set cannot be had now, so that nothing can be said.
        """
        entry = self._entries.setdefault(address, _Entry())
        is_kept = _within(entry.fetched_at, entry.keep_s)
        if not is_kept:
            await self._refresh(address, entry)
        found = external_jwt.meant(entry.keys, algorithm, kid)
        if found is None and is_kept:
            await self._look_again(address, entry)
            found = external_jwt.meant(entry.keys, algorithm, kid)
        return found

    async def _look_again(self, address: str, entry: _Entry) -> None:
        """Fetch a set once more that is kept and lacks a key, unless that was done a moment ago."""
        if not _within(entry.looked_again_at, LOOK_AGAIN_S):
            entry.looked_again_at = clock.now()
            await self._refresh(address, entry)
        elif entry.running is not None:
            await asyncio.shield(entry.running)
        if entry.failure:
            raise CannotFetch(entry.failure)

    async def _refresh(self, address: str, entry: _Entry) -> None:
        if entry.running is None:
            if entry.failure and _within(entry.tried_at, RETRY_S):
                raise CannotFetch(entry.failure)
            entry.running = asyncio.create_task(self._fetched(address, entry))
        # Whoever started it may give up; the others still wait for it.
        await asyncio.shield(entry.running)
        if entry.failure:
            raise CannotFetch(entry.failure)

    async def _fetched(self, address: str, entry: _Entry) -> None:
        """Fetch the set into its entry; a failure leaves the keys that are there, until their time is over."""
        try:
            document = await self._fetch(address)
            entry.keys = external_jwt.public_keys(document.body)
        except CannotFetch as error:
            entry.failure = str(error)
        except ValueError as error:
            entry.failure = f"what is there cannot be used: {error}"
        else:
            entry.failure = ""
            entry.fetched_at = clock.now()
            entry.keep_s = min(max(document.max_age_s or 0, LEAST_S), MAX_S)
        finally:
            entry.tried_at = clock.now()
            entry.running = None


def _within(moment: int, seconds: int) -> bool:
    """Whether the moment lies less than that long ago; one in the future is none we know of."""
    return 0 <= clock.now() - moment < seconds * clock.SECOND
