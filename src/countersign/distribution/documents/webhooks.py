"""What the store sends to webhooks, as the description shows it: every event, its headers, and how it is signed."""

from typing import get_args

from countersign.distribution.documents.examples import Examples
from countersign.distribution.documents.schemas import ADDITION, Document, Schemas
from countersign.distribution.events import EventType
from countersign.distribution.webhooks.schemas import SUBJECTS, WebhookEvent
from countersign.kernel.webhooks.outbox import PING

SIGNING = (
    "Each message is signed as Standard Webhooks 1.0.0 says: the text to sign is the header `webhook-id`, a full stop, "
    "the header `webhook-timestamp` (seconds since 1970), a full stop, and the body byte for byte. The key is the "
    "base64-decoded part of the secret after `whsec_`. `webhook-signature` holds one or more signatures, separated by "
    "spaces, each `v1,` and the base64 of the HMAC-SHA256. Accept the message when one of them is equal, compared in "
    "constant time, and the timestamp is at most 5 minutes old or ahead. `webhook-id` stays the same when a message is "
    "sent again: handle each id once. Answer 2xx within 10 seconds."
)
_HEADERS = {
    "webhook-id": ("The id of the event; the same in every attempt.", "01890a5d-ac96-774b-bcce-b302099a8057"),
    "webhook-timestamp": ("When this attempt was sent, in seconds since 1970.", "1772366400"),
    "webhook-signature": (
        "Signatures of id, timestamp and body, separated by spaces.",
        "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
    ),
}


def described(schemas: Schemas, examples: Examples) -> Document:
    """The webhooks of the description, by the type of their event."""
    return {kind: {"post": _message(kind, schemas, examples)} for kind in (*get_args(EventType), PING)}


def _message(kind: str, schemas: Schemas, examples: Examples) -> Document:
    meaning, subject = SUBJECTS[kind]
    schema = schemas.of(WebhookEvent)
    shown = {"schema": schema, "example": {**examples.of(schema), "type": kind, "subject": subject}}
    return {
        "operationId": f"webhook_{kind.replace('.', '_')}",
        "tags": ["webhooks"],
        "summary": meaning,
        "description": f"{meaning} {SIGNING}",
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": True,
                "description": words,
                "schema": {"type": "string"},
                "example": example,
            }
            for name, (words, example) in _HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": shown}},
        "responses": {"2XX": {"description": "The message was received. Any other answer is a failed attempt."}},
        "security": [],
        ADDITION: True,
    }
