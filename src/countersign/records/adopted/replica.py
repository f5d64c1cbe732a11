"""A replica of the connected PostgreSQL database, from which lists are read while it is up to date.

How far it is behind is measured with positions in the write-ahead log, and with one clock: the primary's position is
noted with the time, and the replica has everything from before that time as soon as it has replayed the position. So an
idle primary does not look like a replica that is behind, nor does a clock that is wrong.
"""

import math
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from countersign.kernel import clock, telemetry
from countersign.kernel.database.read_only import ExistingDatabase
from countersign.kernel.errors import Refused
from countersign.records.commands.run import Run

MAX_LAG_S: Final = 5.0
"""A replica that is further behind is not read."""
MEASURE_EVERY_S: Final = 1.0

# With `synchronous_commit = off`, a commit is visible before it is flushed, so the lag is `wal_writer_delay` more. The
# position of the last insertion would not do: an idle server does not flush it, so the replica would never have it.
# Another role may read rows that policies hide from ours. An address may lead to another server at any time.
_IDENTITY = "c.system_identifier, pg_catalog.current_database(), current_user::text"
# A copy of the server that was promoted, and its standby, have the same system identifier but another timeline. After a
# failover, a replica says the new one with its next restart point, so it is not read until then.
_WRITTEN = f"""
SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint, {_IDENTITY},
    ('x' || pg_catalog.left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::bigint
FROM pg_control_system() AS c
"""
_REPLAYED = f"""
SELECT CASE WHEN pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint END, {_IDENTITY},
    greatest(k.timeline_id, r.min_recovery_end_timeline)::bigint
FROM pg_control_system() AS c, pg_control_checkpoint() AS k, pg_control_recovery() AS r
"""
_UNUSED: Final = "the replica of the connected database is not read: it is behind, cannot be reached, or is no replica"
_USED: Final = "lists are read from the replica of the connected database"


class ReadReplica:
    """A replica of the primary `primary`. It is used while its lag is known and not too large. `open_replica` opens it
    when it is first measured, so that a replica that is not running does not prevent the start."""

    def __init__(
        self, primary: ExistingDatabase, open_replica: Callable[[], Awaitable[ExistingDatabase]]
    ) -> None:
        self._primary = primary
        self._open_replica = open_replica
        self._database: ExistingDatabase | None = None
        self._was_used: bool | None = None
        self._positions: deque[tuple[float, int]] = deque(maxlen=math.ceil(2 * MAX_LAG_S / MEASURE_EVERY_S))
        self._current_until_s = -math.inf

    @property
    def database(self) -> ExistingDatabase:
        """The database of a replica whose lag is known."""
        if self._database is None:
            raise LookupError("a replica that was never measured is not read")
        return self._database

    async def close(self) -> None:
        """Close every connection."""
        if self._database is not None:
            await self._database.close()

    async def measure(self) -> None:
        """Compare the positions of the primary and the replica. After an error, the replica is not used."""
        try:
            await self._measure()
        except Refused:
            self._current_until_s = -math.inf
        is_used = self.lag_s() is not None
        if is_used != self._was_used:
            self._was_used = is_used
            telemetry.logger("connected-database").warning(_USED if is_used else _UNUSED)

    async def _measure(self) -> None:
        if self._database is None:
            self._database = await self._open_replica()
        started_s = clock.monotonic_s()
        ((written, *identity),) = await self._primary.scan(_WRITTEN)
        self._positions.append((started_s, written))
        ((replayed, *replica_identity),) = await self.database.scan(_REPLAYED)
        replayed_position = replayed if replica_identity == identity and replayed is not None else -1
        times_s = [at_s for at_s, position in self._positions if position <= replayed_position]
        self._current_until_s = max(times_s, default=-math.inf)

    def lag_s(self, written_at_s: float = -math.inf) -> float | None:
        """Return how many seconds the replica is behind at most. Return None if that is too many or not known, or if
        the replica may not yet have what this process wrote at `written_at_s`."""
        lag_s = clock.monotonic_s() - self._current_until_s
        return lag_s if lag_s <= MAX_LAG_S and self._current_until_s > written_at_s else None


def note_lag(run: Run, lag_s: float) -> None:
    """Note that rows of the response were read from a replica that was behind by this time at most."""
    if run.replica_read is not None:
        run.replica_read.age_s = max(run.replica_read.age_s or 0, math.ceil(lag_s))
