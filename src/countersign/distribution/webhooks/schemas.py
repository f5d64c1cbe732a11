"""What goes over the wire about webhooks."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from countersign.distribution.auth.schemas import OwnOrg
from countersign.distribution.events import EventType
from countersign.kernel.http.response import CursorText, Moment, Uri, Uuid
from countersign.kernel.webhooks.outbox import State

_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
SUBJECTS: Mapping[str, tuple[str, str]] = {
    "release.published": ("A release became public.", f"products/{_ID}/releases/1.4.0"),
    "release.yanked": ("A release was yanked.", f"products/{_ID}/releases/1.4.0"),
    "job.ended": ("A job was completed, failed or was cancelled.", f"jobs/{_ID}"),
    "key.added": ("The organisation signs with another key from now on.", "org/signing-keys/9f86d081884c7d65"),
    "agent.added": (
        "An agent may change something of the organisation.",
        "agents/reg_01890a5dac96774bbcceb302099a8057",
    ),
    "webhook.ping": ("A test of the receiver, asked for by its owner.", f"webhooks/{_ID}"),
}
"""When an event of a type is sent, and an example of its subject."""


class WebhookEvent(msgspec.Struct):
    """What is sent to a webhook: the attributes of CloudEvents 1.0 and no data. `subject` is the path of the thing
    below `source`; read the thing there to know more."""

    specversion: Literal["1.0"]
    id: Uuid
    source: Uri
    type: str
    subject: str
    time: Moment


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
