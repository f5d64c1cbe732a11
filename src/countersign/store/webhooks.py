"""/org/webhooks: the addresses that receive the events of an organisation; requires admin:org."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from countersign.kernel import clock
from countersign.kernel.errors import invalid_member
from countersign.kernel.http import cursor, response
from countersign.kernel.http.cursor import InvalidCursor
from countersign.kernel.http.request import BodyT
from countersign.kernel.http.response import CursorText, Moment, Response, Uri, Uuid
from countersign.kernel.http.routing import Nothing, route
from countersign.kernel.webhooks import outbox, receivers
from countersign.kernel.webhooks.outbox import DeliveryNotFound, State
from countersign.kernel.webhooks.receivers import Receiver, TooManyWebhooks, WebhookNotFound
from countersign.store.auth.callers import StoreRequest
from countersign.store.auth.organisations import organisation_of
from countersign.store.auth.schemas import OwnOrg
from countersign.store.webhook_events import EventType, outbox_of

_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
SUBJECTS: Mapping[str, tuple[str, str]] = {
    "release.published": ("A release became public.", f"products/{_ID}/releases/1.4.0"),
    "release.yanked": ("A release was yanked.", f"products/{_ID}/releases/1.4.0"),
    "job.ended": ("A job was completed, failed or was cancelled.", f"jobs/{_ID}"),
    "key.added": ("The organisation signs with a new key.", "org/signing-keys/9f86d081884c7d65"),
    "agent.added": (
        "An agent can change data of the organisation.",
        "agents/reg_01890a5dac96774bbcceb302099a8057",
    ),
    "webhook.ping": ("A test of the receiver, requested by its owner.", f"webhooks/{_ID}"),
}
"""Maps each type of event to the occasion on which it is sent, and an example of its subject."""


class WebhookEvent(msgspec.Struct):
    """The event that is sent to a webhook: the attributes of CloudEvents 1.0, without data. `subject` is the path of
    the resource below `source`; get it there for details."""

    specversion: Literal["1.0"]
    id: Uuid
    source: Uri
    type: str
    subject: str
    time: Moment


class WebhookQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Selects one of the caller's organisations."""

    org: OwnOrg | None = None


class DeliveriesQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which deliveries to list."""

    org: OwnOrg | None = None
    state: Annotated[State, msgspec.Meta(description="Only deliveries in this state.")] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=100, description="The maximum number of items on a page.")] = 20
    cursor: CursorText | None = None


class NewWebhook(msgspec.Struct, forbid_unknown_fields=True):
    """The address that receives events, and the types of these events. Without `types`, it receives all events."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=2_048)]
    types: Annotated[list[EventType], msgspec.Meta(max_length=20)] = []


class Webhook(msgspec.Struct, omit_defaults=True):
    """A receiver of events. `types` is null if the receiver gets events of all types. `failures` is the number of
    failed attempts since `delivered_at`, the last success. Only the response that creates or rotates `secret` contains
    it."""

    id: Uuid
    url: Uri
    types: list[str] | None
    created_at: Moment
    failures: int
    delivered_at: Moment | None
    secret: str | msgspec.UnsetType = msgspec.UNSET


class Delivery(msgspec.Struct):
    """The delivery of one event to one receiver. `state` is `waiting` (next attempt at `due_at`), `delivered` or
    `given_up`. `answer` is the status of the last response. If there was no response, `fault` is `timeout` or
    `unreachable`."""

    event_id: Uuid
    type: str
    subject: str
    time: Moment
    state: State
    attempts: int
    due_at: Moment | None
    ended_at: Moment | None
    answer: int | None
    fault: str | None


class DeliveryList(msgspec.Struct):
    """A page of deliveries, newest event first; `next_cursor` is null on the last one."""

    items: list[Delivery]
    next_cursor: str | None


class Replay(msgspec.Struct, forbid_unknown_fields=True):
    """A request to deliver every event since a time again."""

    since: Annotated[datetime, msgspec.Meta(tz=True)]


class Replayed(msgspec.Struct):
    """The number of deliveries that were queued again. If there are more than 10,000, `next_since` is the time from
    which to continue; otherwise it is null."""

    deliveries: int
    next_since: Moment | None


class Pinged(msgspec.Struct):
    """The event that was queued to test the receiver."""

    event_id: Uuid


ADMIN = "admin:org"


async def list_webhooks(call: StoreRequest[WebhookQuery, Nothing]) -> Response:
    """List the organisation's webhooks, oldest first."""
    org = await organisation_of(call.context.database, call.caller, call.query.org, ADMIN)
    webhooks = await receivers.list_receivers(call.context.database, org.id)
    return response.json([_webhook_body(webhook) for webhook in webhooks])


async def add_webhook(call: StoreRequest[WebhookQuery, NewWebhook]) -> Response:
    """Register an address that receives events; only this response contains the secret that signs the events."""
    org = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    outbox_of_store, webhook_body = outbox_of(call.context), call.body
    receiver, secret = await receivers.add(
        call.transaction, outbox_of_store, org.id, webhook_body.url, webhook_body.types
    )
    return response.json(_webhook_body(receiver, secret), 201)


async def remove_webhook(call: StoreRequest[WebhookQuery, Nothing]) -> Response:
    """Remove a webhook; its queued deliveries are dropped."""
    org = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    await receivers.remove(call.transaction, org.id, _id(call))
    return response.no_content()


async def rotate_secret(call: StoreRequest[WebhookQuery, Nothing]) -> Response:
    """Rotate the secret. For one day, events are signed with both the new and the previous secret."""
    org = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    secret = await receivers.rotate(call.transaction, outbox_of(call.context), org.id, _id(call))
    return response.json(_webhook_body(await receivers.find(call.transaction, org.id, _id(call)), secret))


async def ping_webhook(call: StoreRequest[WebhookQuery, Nothing]) -> Response:
    """Send an event of the type `webhook.ping`, to test the receiver."""
    org = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    receiver = await receivers.find(call.transaction, org.id, _id(call))
    event = await outbox.ping(call.transaction, org.id, receiver.id)
    return response.json(Pinged(event.id), 202)


async def list_deliveries(call: StoreRequest[DeliveriesQuery, Nothing]) -> Response:
    """List the deliveries of a webhook, newest event first."""
    store, query = call.context, call.query
    org = await organisation_of(store.database, call.caller, query.org, ADMIN)
    receiver = await receivers.find(store.database, org.id, _id(call))
    filter_values, before_id = [receiver.id, query.state or ""], outbox.AFTER_EVERY_ID
    if query.cursor is not None:
        position = cursor.read(store.cursors, query.cursor, "deliveries", str)
        if position.filter != filter_values:
            raise InvalidCursor("made for another filter, or for another webhook")
        before_id = str(position.after[0])
    deliveries = await outbox.list_deliveries(store.database, receiver.id, before_id, query.state, query.limit + 1)
    page, deliveries_after_page = deliveries[: query.limit], deliveries[query.limit :]
    next_cursor = None
    if deliveries_after_page:
        next_cursor = cursor.write(store.cursors, cursor.Position("deliveries", filter_values, [page[-1].event_id]))
    return response.json(DeliveryList([_delivery(delivery) for delivery in page], next_cursor))


async def replay_delivery(call: StoreRequest[WebhookQuery, Nothing]) -> Response:
    """Deliver one event again, with all its attempts."""
    org = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    receiver = await receivers.find(call.transaction, org.id, _id(call))
    await outbox.replay(call.transaction, receiver.id, call.path["event_id"].lower())
    return response.json(Replayed(1, None), 202)


async def replay_since(call: StoreRequest[WebhookQuery, Replay]) -> Response:
    """Deliver every event since a time again, oldest first, 10,000 at most."""
    org = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    receiver = await receivers.find(call.transaction, org.id, _id(call))
    try:
        since_instant = clock.from_datetime(call.body.since)
    except ValueError as error:
        raise invalid_member("/since", str(error)) from error
    replayed_count = await outbox.replay_since(call.transaction, org.id, receiver.id, receiver.types, since_instant)
    return response.json(Replayed(replayed_count.deliveries, clock.rfc3339_or_none(replayed_count.through)), 202)


def _id(call: StoreRequest[WebhookQuery, BodyT] | StoreRequest[DeliveriesQuery, BodyT]) -> str:
    return call.path["webhook_id"].lower()


def _webhook_body(receiver: Receiver, secret: str | None = None) -> Webhook:
    body = Webhook(
        receiver.id,
        receiver.url,
        receiver.chosen or None,
        clock.rfc3339(receiver.created_at),
        receiver.failures,
        clock.rfc3339_or_none(receiver.delivered_at),
    )
    if secret is not None:
        body.secret = secret
    return body


def _delivery(org: outbox.Delivery) -> Delivery:
    return Delivery(
        event_id=org.event_id,
        type=org.type,
        subject=org.subject,
        time=clock.rfc3339(org.at),
        state=org.state,
        attempts=org.attempts,
        due_at=clock.rfc3339(org.due_at) if org.state == "waiting" else None,
        ended_at=clock.rfc3339_or_none(org.ended_at),
        answer=org.answer,
        fault=org.fault,
    )


_ONE = "/org/webhooks/{webhook_id}"

ROUTES = (
    route("GET", "/org/webhooks", list_webhooks, query=WebhookQuery, answers={200: list[Webhook]}, scope=ADMIN),
    route(
        "POST",
        "/org/webhooks",
        add_webhook,
        query=WebhookQuery,
        body=NewWebhook,
        answers={201: Webhook},
        refusals=(TooManyWebhooks,),
        scope=ADMIN,
        writes=True,
        secret=True,
    ),
    route(
        "DELETE",
        _ONE,
        remove_webhook,
        query=WebhookQuery,
        answers={204: None},
        refusals=(WebhookNotFound,),
        scope=ADMIN,
        writes=True,
    ),
    route(
        "POST",
        f"{_ONE}/rotate",
        rotate_secret,
        query=WebhookQuery,
        answers={200: Webhook},
        refusals=(WebhookNotFound,),
        scope=ADMIN,
        writes=True,
        secret=True,
    ),
    route(
        "POST",
        f"{_ONE}/ping",
        ping_webhook,
        query=WebhookQuery,
        answers={202: Pinged},
        refusals=(WebhookNotFound,),
        scope=ADMIN,
        writes=True,
    ),
    route(
        "POST",
        f"{_ONE}/replay",
        replay_since,
        query=WebhookQuery,
        body=Replay,
        answers={202: Replayed},
        refusals=(WebhookNotFound,),
        scope=ADMIN,
        writes=True,
    ),
    route(
        "GET",
        f"{_ONE}/deliveries",
        list_deliveries,
        query=DeliveriesQuery,
        answers={200: DeliveryList},
        refusals=(WebhookNotFound, InvalidCursor),
        scope=ADMIN,
    ),
    route(
        "POST",
        f"{_ONE}/deliveries/{{event_id}}/replay",
        replay_delivery,
        query=WebhookQuery,
        answers={202: Replayed},
        refusals=(WebhookNotFound, DeliveryNotFound),
        scope=ADMIN,
        writes=True,
    ),
)
