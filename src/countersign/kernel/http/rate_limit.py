"""Rate limits: counts requests against quotas, and shares the counters between the workers of a node."""

import fcntl
import hashlib
import mmap
import os
import struct
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.errors import Refused
from countersign.kernel.http.response import EncodedHeaders

COUNTERS_FILE = "counters.bin"

# The file consists of a head of 64 bytes (magic, slot count, hash key, zeros) and buckets of 8 slots. A slot contains
# the hash of its key, the start of its window (µs), the length of the window (s), and the count. A key has one bucket.
_MAGIC = b"CSCOUNT1"
_HEAD = struct.Struct("<8sI16s36x")
_STATE = struct.Struct("<qII")
_NAME_BYTES = 16
_SLOT_BYTES = 32
_BUCKET_SLOTS = 8
_BUCKET_BYTES = _SLOT_BYTES * _BUCKET_SLOTS

_LOCK = fcntl.LOCK_EX | fcntl.LOCK_NB
_LOCK_PATIENCE_S = 0.25
_LOCK_PAUSE_S = 1.0


class Quota(msgspec.Struct, frozen=True, gc=False):
    """The state of a limit after a hit. `remaining` is the number of hits that are left until the window ends, and
    `reset_s` the time until then in whole seconds."""

    limit: int
    remaining: int
    reset_s: int
    allowed: bool


class Counters(Protocol):
    """A store of counters. Each key has a fixed time window, which begins at its first hit.

    A hit is allowed if the sum of the costs in its window stays within the limit. A refused hit is not counted. Limits
    and windows are at most 2^32 - 1. If the store cannot be reached, the methods raise no exception.
    """

    async def hit(self, key: str, limit: int, window_s: int, cost: int = 1) -> Quota:
        """Count `cost` against the key, and return the remaining quota."""
        ...

    async def peek(self, key: str, limit: int, window_s: int) -> Quota:
        """Return the remaining quota without counting a hit. `allowed` is true if a hit of cost 1 would be allowed."""
        ...

    async def close(self) -> None:
        """Close files and connections."""
        ...


class SharedMemoryCounters:
    """Counters in a memory-mapped file that all workers of a node share. Only the event loop's thread may use them.

    Counts survive a restart. When a key's bucket is full of live windows, the window that ends first is evicted. A
    worker that is killed during a write loses at most that count. A worker that is stopped while it holds the lock
    delays the other workers by a quarter of a second in each second; after that delay they count without the lock.
    """

    def __init__(self, directory: Path, slots: int = 65_536) -> None:
        """Open `counters.bin` (32 bytes per slot) in the directory. A damaged or unknown file is replaced.

        Raises:
            OSError: the directory is missing or not writable, or its volume is full.
            ValueError: `slots` is not a positive multiple of 8.
        """
        if slots <= 0 or slots % _BUCKET_SLOTS:
            raise ValueError(f"slots: {slots} is not a positive multiple of {_BUCKET_SLOTS}")
        self._stuck_until_s = 0.0
        # Use a record lock (fcntl) instead of flock. It belongs to one process, so a forked process does not share it.
        self._lock = os.open(directory / "counters.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with self._locked():
                self._memory = _open_file(directory / COUNTERS_FILE, slots)
        except BaseException:
            os.close(self._lock)
            raise
        _, _, hash_key = _HEAD.unpack_from(self._memory)
        self._place = _placer(hash_key, slots)

    async def hit(self, key: str, limit: int, window_s: int, cost: int = 1) -> Quota:
        """Do what `Counters.hit` does, without waiting."""
        return self.hit_now(key, limit, window_s, cost)

    async def peek(self, key: str, limit: int, window_s: int) -> Quota:
        """Do what `Counters.peek` does, without waiting."""
        bucket, name = self._place(key)
        now = clock.now()
        slot = self._find(bucket, name)
        start, count = (now, 0) if slot == -1 else self._window(slot, window_s, now)
        return _quota(limit, count, start + window_s * clock.SECOND - now, limit > count)

    def hit_now(self, key: str, limit: int, window_s: int, cost: int = 1) -> Quota:
        """Do what `Counters.hit` does, but not as a coroutine. It takes 2 to 3 µs without contention."""
        bucket, name = self._place(key)
        try:
            fcntl.lockf(self._lock, _LOCK)
        except BlockingIOError:
            self._wait_for_lock()
        try:
            # Read the clock under the lock, so that no hit is earlier than the start of its window.
            now = clock.now()
            slot = offset = self._find(bucket, name)
            if offset == -1:
                slot, start, count = self._ends_soonest(bucket, now), now, 0
            else:
                start, count = self._window(slot, window_s, now)
            is_allowed = cost <= limit - count
            if is_allowed:
                count += cost
            _STATE.pack_into(self._memory, slot + _NAME_BYTES, start, window_s, count)
            if offset == -1:
                # Write the hash of the key last. If the worker is killed before that, the slot stays unused.
                self._memory[slot : slot + _NAME_BYTES] = name
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN)
        return _quota(limit, count, start + window_s * clock.SECOND - now, is_allowed)

    async def close(self) -> None:
        """Unmap the file. The counts remain in the file."""
        self._memory.close()
        os.close(self._lock)

    def _find(self, bucket: int, name: bytes) -> int:
        end = bucket + _BUCKET_BYTES
        offset = self._memory.find(name, bucket, end)
        while offset != -1 and (offset - bucket) % _SLOT_BYTES:
            offset = self._memory.find(name, offset + 1, end)
        return offset

    def _window(self, slot: int, window_s: int, now: int) -> tuple[int, int]:
        start, _, count = _STATE.unpack_from(self._memory, slot + _NAME_BYTES)
        if now < start:
            # The clock was set back. Keep the count, but let the window end one window length from now at the latest.
            return now, count
        if now - start >= window_s * clock.SECOND:
            return now, 0
        return start, count

    def _ends_soonest(self, bucket: int, now: int) -> int:
        return min(range(bucket, bucket + _BUCKET_BYTES, _SLOT_BYTES), key=lambda slot: self._ends(slot, now))

    def _ends(self, slot: int, now: int) -> int:
        start, window_s, _ = _STATE.unpack_from(self._memory, slot + _NAME_BYTES)
        # A window that begins in the future comes from a clock that was set back, or from damage. Evict it first.
        return start + window_s * clock.SECOND if start <= now else now

    @contextmanager
    def _locked(self) -> Generator[None]:
        fcntl.lockf(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN)

    def _wait_for_lock(self) -> None:
        """Wait for the lock. If the process that has the lock seems to be stopped, continue without the lock, because a
        wrong count is better than an outage."""
        if clock.monotonic_s() < self._stuck_until_s:
            return
        deadline = clock.monotonic_s() + _LOCK_PATIENCE_S
        while clock.monotonic_s() < deadline:
            os.sched_yield()
            try:
                fcntl.lockf(self._lock, _LOCK)
            except BlockingIOError:
                continue
            return
        self._stuck_until_s = clock.monotonic_s() + _LOCK_PAUSE_S


def _quota(limit: int, count: int, left_us: int, allowed: bool) -> Quota:
    return Quota(limit, limit - count if limit > count else 0, -(-left_us // clock.SECOND), allowed)


class _Placer(Protocol):
    def __call__(self, key: str, /) -> tuple[int, bytes]: ...


def _placer(hash_key: bytes, slots: int) -> _Placer:
    """Return a function that maps a key to its bucket's offset and its hash, which callers cannot predict (keyed
    hash)."""
    keyed_hash = hashlib.blake2b(key=hash_key, digest_size=_NAME_BYTES)
    buckets = slots // _BUCKET_SLOTS

    @lru_cache(maxsize=4_096)
    def place(key: str, /) -> tuple[int, bytes]:
        key_hash = keyed_hash.copy()
        key_hash.update(key.encode("utf-8", "surrogatepass"))
        name = key_hash.digest()
        return _HEAD.size + int.from_bytes(name[:8]) % buckets * _BUCKET_BYTES, name

    return place


def _open_file(path: Path, slots: int) -> mmap.mmap:
    size = _HEAD.size + slots * _SLOT_BYTES
    if not path.is_file() or path.stat().st_size != size:
        # Replace the file with a new one. Truncating a file that other processes have mapped would kill these
        # processes.
        _create_file(path, size, slots)
    with path.open("r+b") as counter_file:
        memory = mmap.mmap(counter_file.fileno(), size)
    magic, count, _ = _HEAD.unpack_from(memory)
    if (magic, count) != (_MAGIC, slots):
        memory[:] = _head(slots).ljust(size, b"\0")
    return memory


def _create_file(path: Path, size: int, slots: int) -> None:
    temporary_path = path.with_name(f"{path.name}.{ids.new_uuid()}")
    descriptor = os.open(temporary_path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        # Allocate the disk space now. Writing to a page without disk space would later kill the process.
        os.posix_fallocate(descriptor, 0, size)
        os.pwrite(descriptor, _head(slots), 0)
        os.replace(temporary_path, path)
    except OSError:
        temporary_path.unlink()
        raise
    finally:
        os.close(descriptor)


def _head(slots: int) -> bytes:
    return _HEAD.pack(_MAGIC, slots, ids.random_bytes(_NAME_BYTES))


WINDOW_S = 60
DOCUMENTS = "documents"
"""The name of the quota for documents, problem pages and self-serve keys. It counts by client address."""


class RateLimited(Refused):
    """The caller has exceeded its quota of the current window."""

    status = 429
    code = "rate_limit_exceeded"
    title = "Too many requests"
    resolution = "Wait for the seconds in Retry-After, then continue more slowly."

    def __init__(self, detail: str, standing: Quota, hint: str = "") -> None:
        """`standing` is the exceeded quota, which the response's headers show. `hint` explains how the caller gets a
        higher quota."""
        resolution = f"{self.resolution} {hint}" if hint else None
        super().__init__(detail, resolution=resolution, headers=exhausted_headers(standing.limit, standing.reset_s))


class HitCounter(Protocol):
    """The part of `Counters` that a limiter needs."""

    async def hit(self, key: str, limit: int, window_s: int, cost: int = 1) -> Quota:
        """Count `cost` against the key, and return the state of the limit."""
        ...


class RateLimiter:
    """Counts each request against its caller's quota. `quotas` maps a quota's name to its requests per minute."""

    def __init__(
        self, counters: HitCounter, quotas: Mapping[str, int], hints: Mapping[str, str] | None = None
    ) -> None:
        """`hints` maps the name of a quota to an explanation of how a caller gets a higher quota."""
        self._counters = counters
        self._quotas = quotas
        self._hints = hints or {}

    async def count(self, quota: str, key: str) -> EncodedHeaders:
        """Count one request, and return the RateLimit headers for its response.

        Raises:
            RateLimited: the quota of this window is exceeded.
        """
        quota_state = await self._counters.hit(f"{quota}\0{key}", self._quotas[quota], WINDOW_S)
        headers = quota_headers(quota_state)
        if not quota_state.allowed:
            detail = f"more than {quota_state.limit} requests in {WINDOW_S} seconds"
            raise RateLimited(detail, quota_state, self._hints.get(quota, ""))
        return headers


def exhausted_headers(limit: int, wait_s: int) -> dict[str, str]:
    """Return the headers of a 429 response: the exceeded limit, 0 remaining requests, and the seconds to wait."""
    wait = str(max(1, wait_s))
    return {"RateLimit-Limit": str(limit), "RateLimit-Remaining": "0", "RateLimit-Reset": wait, "Retry-After": wait}


def quota_headers(standing: Quota) -> EncodedHeaders:
    """Return the headers RateLimit-Limit, -Remaining and -Reset (in seconds), as in the API document."""
    return (
        (b"ratelimit-limit", b"%d" % standing.limit),
        (b"ratelimit-remaining", b"%d" % standing.remaining),
        (b"ratelimit-reset", b"%d" % standing.reset_s),
    )
