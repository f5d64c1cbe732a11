"""What goes over the wire about webhooks."""

from datetime import datetime
from typing import Annotated

import msgspec

from countersign.distribution.identity.schemas import OwnOrg
from countersign.distribution.webhooks.events import EventType
from countersign.kernel.http.texts import CursorText, Moment, Uri, Uuid
from countersign.kernel.webhooks.deliveries import State


class WebhookQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which of the caller's organisations is meant."""

    org: OwnOrg | None = None


class DeliveriesQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which deliveries to list."""

    org: OwnOrg | None = None
    state: Annotated[State, msgspec.Meta(description="Only deliveries in this state.")] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=100, description="How many items a page has at most.")] = 20
    cursor: CursorText | None = None


class NewWebhook(msgspec.Struct, forbid_unknown_fields=True):
    """Where events are to be sent, and of which types; without `types`, of all."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=2_048)]
    types: Annotated[list[EventType], msgspec.Meta(max_length=20)] = []


class Webhook(msgspec.Struct, omit_defaults=True):
    """A receiver of events. `types` is null where it is told of all; `failures` counts failed attempts since
    `delivered_at`, the last success; `secret` stands in the answer that made it, and nowhere else."""

    id: Uuid
    url: Uri
    types: list[str] | None
    created_at: Moment
    failures: int
    delivered_at: Moment | None
    secret: str | msgspec.UnsetType = msgspec.UNSET


class Delivery(msgspec.Struct):
    """One event on its way to one receiver. `state` is `waiting` (next attempt at `due_at`), `delivered` or `given_up`;
    `answer` is the status of the last answer, `fault` is `timeout` or `unreachable` where there was none."""

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
    """What to deliver again: every event since the moment."""

    since: Annotated[datetime, msgspec.Meta(tz=True)]


class Replayed(msgspec.Struct):
    """How many deliveries were put on their way again. `next_since` is where to go on when there were more than
    10,000, and null otherwise."""

    deliveries: int
    next_since: Moment | None


class Pinged(msgspec.Struct):
    """The event that was put on its way to try the receiver."""

    event_id: Uuid
