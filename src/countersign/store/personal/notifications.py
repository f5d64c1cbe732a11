"""/me/notifications: releases of what the caller follows, updates of what it owns, and codes that it redeemed.

Notifications are derived from releases, follows and entitlements of the last 90 days. So no notification can be lost,
and the publication of a release writes nothing for its followers. The database only stores the time until which the
owner has seen the notifications.
"""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Reader, Row
from countersign.kernel.errors import invalid_member
from countersign.kernel.http import cursor, response
from countersign.kernel.http.cursor import InvalidCursor
from countersign.kernel.http.response import Moment, Response, Uuid, encode
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog.schemas import ChannelName, Cursor, Limit, Product

WINDOW_S = 90 * 86_400
MAX_UNSEEN = 100
MAX_NOTES = 300
NEWEST_POSSIBLE = (1 << 62, "\U0010ffff")
_EVENTS = """
    SELECT 'release' AS type, r.published_at AS at, r.id AS id, r.product_id AS product_id
    FROM follow f
    JOIN release r ON r.product_id = f.target_id
    WHERE f.owner = $1 AND f.kind = 'product' AND r.status = 'published' AND r.published_at > $2
      AND r.published_at > f.since
    UNION ALL
    SELECT 'release' AS type, r.published_at AS at, r.id AS id, r.product_id AS product_id
    FROM follow f
    JOIN product p ON p.org_id = f.target_id
    JOIN release r ON r.product_id = p.id
    WHERE f.owner = $1 AND f.kind = 'org' AND r.status = 'published' AND r.published_at > $2
      AND r.published_at > f.since
    UNION ALL
    SELECT 'update' AS type, r.published_at AS at, r.id AS id, r.product_id AS product_id
    FROM entitlement e
    JOIN release r ON r.product_id = e.product_id
    WHERE e.owner = $1 AND e.revoked_at IS NULL AND r.status = 'published' AND r.published_at > $2
      AND r.published_at > e.granted_at
    UNION ALL
    SELECT 'redeemed' AS type, e.granted_at AS at, e.product_id AS id, e.product_id AS product_id
    FROM entitlement e
    WHERE e.owner = $1 AND e.revoked_at IS NULL AND e.granted_at > $2 AND e.source LIKE 'batch:%'
"""
# If the owner both owns and follows a product, each of its releases is one event, of the type `update`.
PAGE = f"""
    SELECT n.type, n.at, n.id, c.card, r.version, r.channel, r.notes
    FROM (
        SELECT max(type) AS type, at, id, product_id
        FROM ({_EVENTS}) AS events
        WHERE (at, id) < ($3, $4)
        GROUP BY at, id, product_id
    ) AS n
    JOIN catalog_entry c ON c.product_id = n.product_id AND (c.status = 'public' OR n.type <> 'release')
    LEFT JOIN release r ON r.id = n.id
    ORDER BY n.at DESC, n.id DESC
    LIMIT $5
"""
UNSEEN = f"""
    SELECT count(*)
    FROM (
        SELECT n.at, n.id
        FROM (SELECT max(type) AS type, at, id, product_id FROM ({_EVENTS}) AS events GROUP BY at, id, product_id) AS n
        JOIN catalog_entry c ON c.product_id = n.product_id AND (c.status = 'public' OR n.type <> 'release')
        LIMIT $3
    ) AS unseen
"""
SEEN_AT = "SELECT seen_at FROM notification_state WHERE owner = $1"
SET_SEEN = """
    INSERT INTO notification_state (owner, seen_at) VALUES ($1, $2)
    ON CONFLICT (owner) DO UPDATE SET seen_at = excluded.seen_at WHERE excluded.seen_at > notification_state.seen_at
"""


class NotifiedRelease(msgspec.Struct):
    """The release that a notification is about; `notes` contains the first 300 characters of the release notes."""

    version: str
    channel: ChannelName
    notes: str | None


class Notification(msgspec.Struct, kw_only=True):
    """A release of something that the caller follows, an update of something in its library (`update`), or a product
    that came into the library by a code (`redeemed`, without a release)."""

    id: Uuid
    type: Literal["release", "update", "redeemed"]
    at: Moment
    seen: bool
    product: Product
    release: NotifiedRelease | None


class NotificationList(msgspec.Struct):
    """A page of notifications of the last 90 days, newest first. `unseen` is the number of unseen ones, at most 100."""

    items: list[Notification]
    unseen: int
    next_cursor: str | None


class NotificationsQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of GET /me/notifications."""

    cursor: Cursor | None = None
    limit: Limit = 20


class Seen(msgspec.Struct, forbid_unknown_fields=True):
    """The time until which the notifications were seen; by default now."""

    until: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\dT[\d:.]{8,15}Z(?!\n)$")] | None = None


async def seen_at(reader: Reader, owner: str) -> Instant:
    """The time until which the owner has seen the notifications."""
    row = await reader.fetch_one(SEEN_AT, owner)
    return Instant(0) if row is None else Instant(row[0])


async def list_notifications(call: StoreRequest[NotificationsQuery, Nothing]) -> Response:
    """List what happened to the products that the caller follows or owns, newest first."""
    store, query, owner = call.context, call.query, call.caller.owner
    event_time, event_id = NEWEST_POSSIBLE
    if query.cursor is not None:
        position = cursor.read(store.cursors, query.cursor, "notifications", int, str)
        if position.filter != [owner]:
            raise InvalidCursor("made for another caller")
        event_time, event_id = int(position.after[0]), str(position.after[1])
    oldest_shown = clock.later(clock.now(), seconds=-WINDOW_S)
    seen_until = await seen_at(store.database, owner)
    rows = await store.database.scan(PAGE, owner, oldest_shown, event_time, event_id, query.limit + 1)
    next_cursor = None
    if len(rows) > query.limit:
        rows.pop()
        position = cursor.Position("notifications", [owner], [rows[-1][1], rows[-1][2]])
        next_cursor = cursor.write(store.cursors, position)
    unseen_count = await _count_unseen(store.database, owner, max(oldest_shown, seen_until))
    items = b",".join([_item(row, seen_until) for row in rows])
    body = b'{"items":[%b],"unseen":%d,"next_cursor":%b}' % (items, unseen_count, encode(next_cursor))
    return Response(200, body, headers=(("Cache-Control", "private, no-store"),))


async def _count_unseen(database: Database, owner: str, after_instant: Instant) -> int:
    return int((await database.scan(UNSEEN, owner, after_instant, MAX_UNSEEN))[0][0])


def _item(row: Row, seen_until: Instant) -> bytes:
    kind, event_time, event_id, card, version, channel, notes = row
    release = None
    if version is not None:
        release = NotifiedRelease(version, channel, None if notes is None else notes[:MAX_NOTES])
    head = {"id": event_id, "type": kind, "at": clock.rfc3339(event_time), "seen": event_time <= seen_until}
    return b'%b,"product":%b,"release":%b}' % (encode(head)[:-1], card, encode(release))


async def mark_seen(call: StoreRequest[Nothing, Seen]) -> Response:
    """Mark the notifications as seen, until now or until a given time. A time before the stored time has no effect."""
    now = clock.now()
    seen_until = now if call.body.until is None else _moment(call.body.until)
    await call.transaction.run(SET_SEEN, call.caller.owner, min(now, seen_until))
    return response.no_content()


def _moment(text: str) -> Instant:
    try:
        return clock.from_datetime(datetime.fromisoformat(text))
    except ValueError as error:
        raise invalid_member("/until", "must be a moment that exists, like 2026-03-01T12:00:00Z") from error


ROUTES = (
    route(
        "GET",
        "/me/notifications",
        list_notifications,
        query=NotificationsQuery,
        answers={200: NotificationList},
        refusals=(InvalidCursor,),
        scope="read:library",
        sends={200: ("Cache-Control",)},
    ),
    route(
        "POST",
        "/me/notifications/seen",
        mark_seen,
        body=Seen,
        answers={204: None},
        scope="read:library",
        writes=True,
    ),
)
