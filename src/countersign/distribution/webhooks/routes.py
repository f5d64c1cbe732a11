"""/org/webhooks: where an organisation's events are sent, for admin:org."""

from countersign.distribution.auth.callers import StoreRequest
from countersign.distribution.auth.organisations import organisation_of
from countersign.distribution.events import outbox_of
from countersign.distribution.webhooks.schemas import (
    DeliveriesQuery,
    Delivery,
    DeliveryList,
    NewWebhook,
    Pinged,
    Replay,
    Replayed,
    Webhook,
    WebhookQuery,
)
from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.errors import invalid_member
from countersign.kernel.http import cursor, response
from countersign.kernel.http.cursor import InvalidCursor
from countersign.kernel.http.request import BodyT
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route
from countersign.kernel.webhooks import outbox, receivers
from countersign.kernel.webhooks.outbox import DeliveryNotFound
from countersign.kernel.webhooks.receivers import Receiver, TooManyWebhooks, WebhookNotFound

ADMIN = "admin:org"


async def list_webhooks(call: StoreRequest[WebhookQuery, Nothing]) -> Response:
    """List the organisation's webhooks, oldest first."""
    found = await organisation_of(call.context.database, call.caller, call.query.org, ADMIN)
    return response.json([_shown(each) for each in await receivers.listed(call.context.database, found.id)])


async def add_webhook(call: StoreRequest[WebhookQuery, NewWebhook]) -> Response:
    """Have events sent to an address; the secret that signs them is in this answer alone."""
    found = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    box, sent = outbox_of(call.context), call.body
    made, secret = await receivers.add(call.transaction, box, found.id, sent.url, sent.types)
    return response.json(_shown(made, secret), 201)


async def remove_webhook(call: StoreRequest[WebhookQuery, Nothing]) -> Response:
    """Send nothing to an address any more, also of what waits."""
    found = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    await receivers.remove(call.transaction, found.id, _id(call))
    return response.no_content()


async def rotate_secret(call: StoreRequest[WebhookQuery, Nothing]) -> Response:
    """Sign with a fresh secret; the one before signs beside it for a day."""
    found = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    secret = await receivers.rotate(call.transaction, outbox_of(call.context), found.id, _id(call))
    return response.json(_shown(await receivers.one(call.transaction, found.id, _id(call)), secret))


async def ping_webhook(call: StoreRequest[WebhookQuery, Nothing]) -> Response:
    """Send an event of the type `webhook.ping`, to try the receiver."""
    found = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    receiver = await receivers.one(call.transaction, found.id, _id(call))
    event = await outbox.ping(call.transaction, found.id, receiver.id)
    return response.json(Pinged(event.id), 202)


async def list_deliveries(call: StoreRequest[DeliveriesQuery, Nothing]) -> Response:
    """List what became of telling a webhook, newest event first."""
    store, query = call.context, call.query
    found = await organisation_of(store.database, call.caller, query.org, ADMIN)
    receiver = await receivers.one(store.database, found.id, _id(call))
    wanted, before = [receiver.id, query.state or ""], outbox.AFTER_EVERY_ID
    if query.cursor is not None:
        position = cursor.read(store.cursors, query.cursor, "deliveries", str)
        if position.filter != wanted:
            raise InvalidCursor("made for another filter, or for another webhook")
        before = str(position.after[0])
    listed = await outbox.list_deliveries(store.database, receiver.id, before, query.state, query.limit + 1)
    shown, more = listed[: query.limit], listed[query.limit :]
    following = None
    if more:
        following = cursor.write(store.cursors, cursor.Position("deliveries", wanted, [shown[-1].event_id]))
    return response.json(DeliveryList([_delivery(each) for each in shown], following))


async def replay_delivery(call: StoreRequest[WebhookQuery, Nothing]) -> Response:
    """Deliver one event again, with all its attempts."""
    found = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    receiver = await receivers.one(call.transaction, found.id, _id(call))
    await outbox.replay(call.transaction, receiver.id, call.path["event_id"].lower())
    return response.json(Replayed(1, None), 202)


async def replay_since(call: StoreRequest[WebhookQuery, Replay]) -> Response:
    """Deliver every event since a moment again, oldest first, 10,000 at most."""
    found = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    receiver = await receivers.one(call.transaction, found.id, _id(call))
    try:
        since = clock.from_datetime(call.body.since)
    except ValueError as error:
        raise invalid_member("/since", str(error)) from error
    begun = await outbox.replay_since(call.transaction, found.id, receiver.id, receiver.types, since)
    return response.json(Replayed(begun.deliveries, _moment(begun.through)), 202)


def _id(call: StoreRequest[WebhookQuery, BodyT] | StoreRequest[DeliveriesQuery, BodyT]) -> str:
    return call.path["webhook_id"].lower()


def _shown(receiver: Receiver, secret: str | None = None) -> Webhook:
    shown = Webhook(
        receiver.id,
        receiver.url,
        receiver.chosen or None,
        clock.rfc3339(receiver.created_at),
        receiver.failures,
        _moment(receiver.delivered_at),
    )
    if secret is not None:
        shown.secret = secret
    return shown


def _delivery(found: outbox.Delivery) -> Delivery:
    return Delivery(
        event_id=found.event_id,
        type=found.type,
        subject=found.subject,
        time=clock.rfc3339(found.at),
        state=found.state,
        attempts=found.attempts,
        due_at=clock.rfc3339(found.due_at) if found.state == "waiting" else None,
        ended_at=_moment(found.ended_at),
        answer=found.answer,
        fault=found.fault,
    )


def _moment(instant: Instant | None) -> str | None:
    return None if instant is None else clock.rfc3339(instant)


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
