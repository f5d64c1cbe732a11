"""Erases values that no record of a connected database has any more.

Other applications delete and change rows without telling us. Once a day, the places in which values were last seen are
read again. A value that has been nowhere for some days is erased: its token no longer resolves, and its encrypted
copies in the audit, the history and plans become unreadable. A value that comes back meanwhile is kept. If policies of
the database read the session of a person, a record that the person does not see may still exist. Its values are kept.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple, Protocol

import msgspec

from countersign.declare import Declared
from countersign.declare.registry import Registry
from countersign.kernel import clock
from countersign.kernel.database.port import Database, Dialect
from countersign.kernel.database.read_only import Busy, TooSlow
from countersign.kernel.errors import InvalidRequest
from countersign.records.access.view import Caller, View
from countersign.records.masking import connected_aliases
from countersign.records.masking.connected_aliases import Alias
from countersign.records.masking.seen_values import SeenValue
from countersign.records.masking.vault import Vault

BATCH_SIZE = 500
"""The number of records in one statement. SQLite refuses conditions of 1,000 keys with several columns."""
PAUSE_S = 0.1
BUSY_TRIES = 5
"""The number of times that a read is tried while too many statements are running."""
BUSY_PAUSE_S = 5.0
MAX_ERASED = 500
"""The number of values that one transaction erases."""

_BEGIN = "INSERT INTO value_sweep (day) VALUES ($1) ON CONFLICT DO NOTHING"
_FORGET = "DELETE FROM value_sweep WHERE day < $1"
_GIVE_BACK = "DELETE FROM value_sweep WHERE day = $1"
_PLACES = """
SELECT p.value_id, p.domain_id, p.model, p.field, p.record_id, p.user_id, v.label, v.hash, v.gone_day,
    p.domain_id = p.record_id OR EXISTS (
        SELECT 1
        FROM token_domain AS d
        JOIN "user" AS u ON u.id = d.user_id
        WHERE d.id = p.domain_id AND d.closed_at IS NULL
    )
FROM seen_place AS p
LEFT JOIN pii_value AS v ON v.id = p.value_id
WHERE (p.value_id, p.domain_id, p.model, p.field) > ($1, $2, $3, $4)
ORDER BY p.value_id, p.domain_id, p.model, p.field
LIMIT $5
"""
# The newest entry about the existence of the record is its deletion by another application.
_DELETED_AMONG = """
SELECT e.record_id
FROM audit_entry AS e
WHERE e.model = $1 AND e.command = 'outside.delete' AND e.record_id IN {listed} AND NOT EXISTS (
    SELECT 1
    FROM audit_entry AS later
    WHERE later.model = e.model AND later.record_id = e.record_id AND later.at >= e.at AND later.id <> e.id
)
"""
_DELETED: Mapping[Dialect, str] = {
    "postgres": _DELETED_AMONG.format(listed="(SELECT jsonb_array_elements_text($2::text::jsonb))"),
    "sqlite": _DELETED_AMONG.format(listed="(SELECT value FROM json_each($2))"),
}
# A closed domain may be opened again. Its agents must then still not see the token of a value that they guessed.
_ALIASES = """
SELECT a.value_id, a.domain_id, a.model, a.field, a.record_id, d.user_id, v.label, a.hash, v.gone_day, u.id IS NOT NULL
FROM pii_alias AS a
JOIN pii_value AS v ON v.id = a.value_id
LEFT JOIN token_domain AS d ON d.id = a.domain_id
LEFT JOIN "user" AS u ON u.id = d.user_id
WHERE a.hash IS NOT NULL AND (a.value_id, a.domain_id, a.model, a.field, a.record_id) > ($1, $2, $3, $4, $5)
ORDER BY a.value_id, a.domain_id, a.model, a.field, a.record_id
LIMIT $6
"""
_PERSON = 'SELECT username, external_id, tenant FROM "user" WHERE id = $1'
_ROLES = 'SELECT r.title FROM user_role AS u JOIN role AS r ON r.id = u.role WHERE u."user" = $1'
_MARK_GONE = "UPDATE pii_value SET gone_day = $2 WHERE id = $1 AND gone_day IS NULL"
_MARK_FOUND = "UPDATE pii_value SET gone_day = NULL WHERE id = $1"
_POSTPONE = "UPDATE pii_value SET gone_day = $2 WHERE id = $1 AND gone_day < $2"
_REMOVE = "DELETE FROM seen_place WHERE value_id = $1"
_REMOVE_PLACE = "DELETE FROM seen_place WHERE value_id = $1 AND domain_id = $2 AND model = $3 AND field = $4"
# The one reference is that of the row in the connected database. Others are those of pending plans. Transactions lock
# values in the order of their hashes.
_GONE = "SELECT id FROM pii_value WHERE gone_day <= $1 AND refs <= 1 ORDER BY hash LIMIT $2"
_ERASE = "DELETE FROM pii_value WHERE id = $1 AND gone_day <= $2 AND refs <= 1"


class ConnectedTexts(Protocol):
    """Reads the texts of the records of one connected database."""

    def is_suspended(self, model: str) -> bool:
        """Return whether the model cannot be read, because its table has changed."""
        ...

    def is_session_complete(self, person: Caller) -> bool:
        """Return whether the person has all values that the policies of the database need."""
        ...

    async def texts(
        self, person: Caller, model: Declared, name: str, record_ids: Sequence[str]
    ) -> Mapping[str, str | None]:
        """Map those of the records that the person's session shows to the text of a field."""
        ...

    def has_hash(self, value: SeenValue, value_hash: bytes) -> bool:
        """Return whether this is the value whose hash the vault stores."""
        ...


class _SeenRecord(NamedTuple):
    """A row of `seen_place`, with the label and the hash of its value, and the day since which it is gone. They are
    None if the value was erased. `is_in_use` is false if the token domain is closed, or its person was deleted. The
    rows for audit entries stay in use, also if the person who wrote them was deleted."""

    value_id: int
    domain_id: str
    model: str
    field: str
    record_id: str
    user_id: str
    label: str | None
    hash: bytes | None
    gone_day: int | None
    is_in_use: bool


class _Examined(NamedTuple):
    """What a read of places has shown: those that no longer have their value or are not in use, the ids of the values
    that were found, and the ids of those of which this cannot be known now."""

    gone: list[_SeenRecord]
    found_ids: set[int]
    unknown_ids: set[int]


class ValueSweep:
    """Reads the places of values again, once a day for all processes."""

    def __init__(
        self, database: Database, vault: Vault, registry: Registry, stores: Mapping[str, ConnectedTexts], days: int
    ) -> None:
        """`days` is the number of days after which a value that is nowhere any more is erased."""
        self._database = database
        self._vault = vault
        self._registry = registry
        self._stores = stores
        self._days = days

    async def run_daily(self) -> None:
        """Run the sweep if no process has run it today.

        Raises:
            Unavailable: the connected database cannot answer now. The sweep runs again with the next call.
        """
        today = clock.now() // clock.DAY
        async with self._database.transaction() as transaction:
            if not await transaction.run(_BEGIN, today):
                return
            await transaction.run(_FORGET, today)
        try:
            await self.run(today)
        except BaseException:
            async with self._database.transaction() as transaction:
                await transaction.run(_GIVE_BACK, today)
            raise

    async def run(self, today: int) -> None:
        """Read all places again, and erase the values that have been gone for the number of days."""
        after: tuple[int, str, str, str] = (-1, "", "", "")
        found_ids, unknown_ids = set[int](), set[int]()
        while places := [_SeenRecord(*row) for row in await self._database.fetch(_PLACES, *after, BATCH_SIZE)]:
            examined = await self._examined(places)
            # The first value may have been found in the last places of the previous batch.
            found_ids = (found_ids & {places[0].value_id}) | examined.found_ids
            unknown_ids = (unknown_ids & {places[0].value_id}) | examined.unknown_ids
            await self._mark(_changes(places, found_ids, unknown_ids, today, today - self._days))
            after = places[-1][:4]
            await asyncio.sleep(PAUSE_S)
        await self._drop_aliases()
        await self._erase(today - self._days)

    async def _drop_aliases(self) -> None:
        """Drop the aliases of values that other applications have changed or deleted, and those of deleted people."""
        after: tuple[int, str, str, str, str] = (-1, "", "", "", "")
        while aliases := [_SeenRecord(*row) for row in await self._database.fetch(_ALIASES, *after, BATCH_SIZE)]:
            for each in (await self._examined(aliases)).gone:
                alias = Alias(each.record_id, each.field, each.domain_id, each.value_id, each.hash or b"")
                async with self._database.transaction() as transaction:
                    await connected_aliases.drop(transaction, self._vault, each.model, [alias])
            after = aliases[-1][:5]
            await asyncio.sleep(PAUSE_S)

    async def _mark(self, changes: Iterable[tuple[str, Sequence[int | str]]]) -> None:
        """Note since when the values are gone. The places that are in use stay, because a value may come back."""
        changes = list(changes)
        if changes:
            async with self._database.transaction() as transaction:
                for statement, values in changes:
                    await transaction.run(statement, *values)

    async def _examined(self, places: Sequence[_SeenRecord]) -> "_Examined":
        """Read the records of the places."""
        groups: dict[tuple[str, str, str], list[_SeenRecord]] = {}
        examined = _Examined([place for place in places if not place.is_in_use], set(), set())
        for place in places:
            if place.is_in_use:
                groups.setdefault((place.user_id, place.model, place.field), []).append(place)
        for (user_id, model, field), group in groups.items():
            gone, unknown = await self._examined_of_field(user_id, model, field, group)
            examined.gone.extend(gone)
            examined.unknown_ids.update(place.value_id for place in unknown)
            found = set(group) - set(gone) - set(unknown)
            examined.found_ids.update(place.value_id for place in found)
        return examined

    async def _examined_of_field(
        self, user_id: str, model: str, field: str, places: Sequence[_SeenRecord]
    ) -> tuple[Sequence[_SeenRecord], Sequence[_SeenRecord]]:
        """Return the places whose record no longer has the value, and those of which this cannot be known now."""
        store, declared = self._stores.get(model), self._registry.models.get(model)
        if store is None or declared is None or declared.present_name(field) not in declared.fields:
            return places, ()
        field = declared.present_name(field)
        person = await self._person(user_id)
        if store.is_suspended(model) or not store.is_session_complete(person):
            return (), places
        texts = await _texts(store, person, declared, field, places)
        if texts is None:
            return (), places
        hidden = await self._hidden(places, texts) if self._registry.session else ()
        known = [place for place in places if place not in hidden]
        return _without_value(store, known, texts, is_linked=declared.fields[field].linked), hidden

    async def _hidden(
        self, places: Sequence[_SeenRecord], texts: Mapping[str, str | None]
    ) -> Sequence[_SeenRecord]:
        """Return the places whose record policies may hide, for example since the person has moved to another tenant.
        Such a record does not exist any more if triggers have recorded that another application deleted it."""
        missing = [place for place in places if place.record_id not in texts]
        if not missing:
            return ()
        listed = msgspec.json.encode(sorted({place.record_id for place in missing})).decode()
        rows = await self._database.fetch(_DELETED[self._database.dialect], missing[0].model, listed)
        deleted_ids = {str(row[0]) for row in rows}
        return [place for place in missing if place.record_id not in deleted_ids]

    async def _person(self, user_id: str) -> Caller:
        """Return the person whose session the policies of the database read. A deleted person has no values."""
        row = await self._database.fetch_one(_PERSON, user_id)
        if row is None:
            return Caller("person", "", "", "", View({}))
        roles = frozenset(each[0] for each in await self._database.fetch(_ROLES, user_id))
        return Caller("person", user_id, row[0], "", View({}), roles, external_id=row[1], tenant=row[2])

    async def _erase(self, last_day: int) -> None:
        """Erase the values that have been gone since this day. A pending plan keeps its values until it is decided: the
        sweep erases them on a later day, unless the plan has written them meanwhile."""
        while True:
            async with self._database.transaction() as transaction:
                value_ids = [row[0] for row in await transaction.fetch(_GONE, last_day, MAX_ERASED)]
                if not value_ids:
                    return
                for value_id in value_ids:
                    if await transaction.run(_ERASE, value_id, last_day):
                        await transaction.run(_REMOVE, value_id)


def _without_value(
    store: ConnectedTexts, places: Sequence[_SeenRecord], texts: Mapping[str, str | None], *, is_linked: bool
) -> list[_SeenRecord]:
    """Return the places whose record does not have the value now."""
    return [place for place in places if not _has_value(store, place, texts.get(place.record_id), is_linked=is_linked)]


def _has_value(store: ConnectedTexts, place: _SeenRecord, text: str | None, *, is_linked: bool) -> bool:
    if text is None or place.hash is None:
        return False
    value = SeenValue(place.label or "", text, place.model, place.record_id, place.field, is_linked)
    return store.has_hash(value, bytes(place.hash))


async def _texts(
    store: ConnectedTexts, person: Caller, model: Declared, name: str, places: Sequence[_SeenRecord]
) -> Mapping[str, str | None] | None:
    """Map the records of the places to the text of a field, or return None if a policy does not understand a value of
    the person, the read takes too long, or the database stays busy. Other places can still be read."""
    for tries_left in reversed(range(BUSY_TRIES)):
        try:
            return await store.texts(person, model, name, list({place.record_id for place in places}))
        except Busy:
            if tries_left:
                await asyncio.sleep(BUSY_PAUSE_S)
        except (InvalidRequest, TooSlow):
            break
    return None


def _changes(
    places: Sequence[_SeenRecord], found_ids: Set[int], unknown_ids: Set[int], today: int, last_day: int
) -> Iterator[tuple[str, Sequence[int | str]]]:
    """Yield the statements that note since when the values of the places are gone, and remove places of erased values
    and those that are no longer in use. Values that have been gone since `last_day` are erased, unless this cannot be
    known today."""
    for place in places:
        if not place.is_in_use:
            yield _REMOVE_PLACE, place[:4]
    for place in {each.value_id: each for each in places}.values():
        if place.hash is None:
            yield _REMOVE, (place.value_id,)
        elif place.value_id in found_ids:
            if place.gone_day is not None:
                yield _MARK_FOUND, (place.value_id,)
        elif place.value_id not in unknown_ids:
            if place.gone_day is None:
                yield _MARK_GONE, (place.value_id, today)
        else:
            yield _POSTPONE, (place.value_id, last_day + 1)
