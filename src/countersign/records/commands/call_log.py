"""Logs calls: the calls of agents, the time of the last call of each person and token, and the records that people
opened.

A call is only appended to a queue in memory, which a background task writes to the database. The log contains no inputs
and no results of calls.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from countersign.declare.fields.kinds import is_record_id
from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database import versions
from countersign.kernel.database.port import Database, Reader, Transaction
from countersign.records.access.view import Caller

RETENTION_DAYS = 7
MAX_QUEUE = 10_000
"""The maximum number of calls in the queue. When it is full, a new call replaces the oldest call."""
MAX_BATCH = 500
MAX_RECENT = 50
"""The maximum number of recently opened records that are stored for each person."""
SEEN_EVERY_US = 60_000_000
"""The minimum time between two writes of the last call of the same person or token."""

_VERSION = "calls"
_ADD_CALL = """
INSERT INTO agent_call (number, token_id, at, tool, record_id, result, elapsed_us)
VALUES ($1, $2, $3, $4, $5, $6, $7)
"""
_DELETE_OLD = "DELETE FROM agent_call WHERE at < $1"
_SET_LAST_SEEN = 'UPDATE "user" SET last_seen_at = $2 WHERE id = $1 AND (last_seen_at IS NULL OR last_seen_at < $2)'
_SET_LAST_USED = """
UPDATE agent_token SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)
"""
_ADD_OPENED = """
INSERT INTO recent_record (user_id, model, record_id, at) VALUES ($1, $2, $3, $4)
ON CONFLICT (user_id, model, record_id) DO UPDATE SET at = excluded.at
"""
SEE_MENTIONS = """
UPDATE comment_mention SET seen_at = $4
WHERE user_id = $1 AND model = $2 AND record_id = $3 AND seen_at IS NULL AND at <= $4
"""
"""Marks the mentions of a person on a record as seen. Its parameters are the person, the model, the record and the
time."""
_TRIM = f"""
DELETE FROM recent_record
WHERE user_id = $1
AND at < (SELECT min(kept.at) FROM (
    SELECT at FROM recent_record WHERE user_id = $1 ORDER BY at DESC LIMIT {MAX_RECENT}
) AS kept)
"""
_RECENT = f"SELECT model, record_id, at FROM recent_record WHERE user_id = $1 ORDER BY at DESC LIMIT {MAX_RECENT}"
_CALLS = """
SELECT number, at, tool, record_id, result, elapsed_us
FROM agent_call
WHERE token_id = $1 AND number > $2
ORDER BY number DESC
LIMIT $3
"""


class LoggedCall(NamedTuple):
    """A call of an agent in the database."""

    number: int
    at: Instant
    tool: str
    record_id: str | None
    result: str
    elapsed_us: int


class AgentCall(NamedTuple):
    """A call of an agent in the queue."""

    token_id: str
    at: Instant
    tool: str
    record_id: str | None
    result: str
    elapsed_us: int


class CallLog:
    """The queue of calls that are not written yet."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._calls: deque[AgentCall] = deque(maxlen=MAX_QUEUE)
        self._opened: dict[tuple[str, str, str], Instant] = {}
        self._seen: dict[tuple[bool, str], Instant] = {}
        self._written: dict[tuple[bool, str], Instant] = {}

    def note(self, caller: Caller, tool: str, record_id: object, result: str, started_s: float) -> None:
        """Add a call that has ended to the queue."""
        now = clock.now()
        known_id = record_id if isinstance(record_id, str) and is_record_id(record_id) else None
        identity = (caller.is_agent, caller.credential_id if caller.is_agent else caller.user_id)
        if now - self._written.get(identity, 0) >= SEEN_EVERY_US:
            self._seen[identity] = now
        if caller.is_agent:
            elapsed_us = round((clock.monotonic_s() - started_s) * 1_000_000)
            self._calls.append(AgentCall(caller.credential_id, now, tool, known_id, result, elapsed_us))
        elif isinstance(record_id, str) and result == "ok" and tool.endswith(".get") and len(self._opened) < MAX_QUEUE:
            self._opened[caller.user_id, tool.removesuffix(".get"), record_id] = now

    async def write(self) -> None:
        """Write the queue in one transaction, at most `MAX_BATCH` calls of agents.

        Raises:
            Unavailable: the database cannot be reached. The calls that were taken from the queue are lost.
        """
        calls = [self._calls.popleft() for _ in range(min(len(self._calls), MAX_BATCH))]
        opened_records, self._opened = self._opened, {}
        seen_callers, self._seen = self._seen, {}
        if not (calls or opened_records or seen_callers):
            return
        async with self._database.transaction() as transaction:
            await _write_seen(transaction, seen_callers)
            await write_opened(transaction, opened_records)
            await _write_calls(transaction, calls)
        if len(self._written) > MAX_QUEUE:
            self._written.clear()
        self._written |= seen_callers


async def _write_seen(transaction: Transaction, seen_at: Mapping[tuple[bool, str], Instant]) -> None:
    for (is_agent, identity), instant in sorted(seen_at.items()):
        await transaction.run(_SET_LAST_USED if is_agent else _SET_LAST_SEEN, identity, instant)


async def write_opened(transaction: Transaction, opened_at: Mapping[tuple[str, str, str], Instant]) -> None:
    """Write which records people opened and when, and that they have seen the mentions there. The keys are the person,
    the model and the record."""
    for (user_id, model, record_id), instant in sorted(opened_at.items()):
        # Records of connected tables have longer ids. They are not listed as opened, but may have mentions.
        if is_record_id(record_id):
            await transaction.run(_ADD_OPENED, user_id, model, record_id, instant)
        await transaction.run(SEE_MENTIONS, user_id, model, record_id, instant)
    for user_id in sorted({key[0] for key in opened_at}):
        await transaction.run(_TRIM, user_id)


async def _write_calls(transaction: Transaction, calls: Iterable[AgentCall]) -> None:
    for call in calls:
        await transaction.run(_ADD_CALL, await versions.bump(transaction, _VERSION), *call)


async def add(transaction: Transaction, calls: Sequence[AgentCall]) -> None:
    """Write calls and the last use of their tokens. The calls must be in the order of their times."""
    await _write_calls(transaction, calls)
    await _write_seen(transaction, {(True, call.token_id): call.at for call in calls})


async def forget_old(transaction: Transaction) -> None:
    """Delete the calls that are older than a week."""
    await transaction.run(_DELETE_OLD, clock.later(clock.now(), seconds=-RETENTION_DAYS * 86_400))


async def calls_after(reader: Reader, token_id: str, after_id: int, limit: int) -> list[LoggedCall]:
    """Return the newest calls of a token with a number above `after_id`, the newest first."""
    return [LoggedCall(*row) for row in await reader.fetch(_CALLS, token_id, after_id, limit)]


async def recent_records(reader: Reader, user_id: str) -> list[tuple[str, str, Instant]]:
    """Return the model, the id and the time of the records that a person opened last."""
    return [(row[0], row[1], row[2]) for row in await reader.fetch(_RECENT, user_id)]


_COUNTS = """
SELECT token_id, count(*), count(CASE WHEN result = 'refused' THEN 1 END)
FROM agent_call
WHERE at >= $1 AND token_id IN ({places})
GROUP BY token_id
"""
_PENDING_PLANS = """
SELECT agent_token, count(*)
FROM plan
WHERE state = 'pending' AND expires_at > $1 AND agent_token IN ({places})
GROUP BY agent_token
"""


async def counts(reader: Reader, token_ids: Sequence[str]) -> dict[str, tuple[int, int, int]]:
    """Map each token to the number of its calls and of its refused calls in the last 24 hours, and to the number of its
    pending plans."""
    places = ", ".join(f"${number}" for number in range(2, len(token_ids) + 2))
    now = clock.now()
    day_ago = clock.later(now, seconds=-86_400)
    rows = await reader.fetch(_COUNTS.format(places=places), day_ago, *token_ids)
    calls_by_token = {row[0]: (int(row[1]), int(row[2])) for row in rows}
    pending = dict(await reader.fetch(_PENDING_PLANS.format(places=places), now, *token_ids))
    counts_by_token: dict[str, tuple[int, int, int]] = {}
    for token_id in token_ids:
        calls, refused_calls = calls_by_token.get(token_id, (0, 0))
        counts_by_token[token_id] = (calls, refused_calls, int(pending.get(token_id, 0)))
    return counts_by_token
