"""Trust on first use: verifies statements with the pinned key and its signed rotations, and refuses older and expired
statements."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.errors import Refused
from countersign.updates import dsse as envelopes
from countersign.updates.api_types import ChannelState, ChannelStatement, Envelope, PublicKey, Rotation
from countersign.updates.dsse import SignatureRefused, SigningKey

ROTATION_TYPE = "application/vnd.countersign.rotation+json"
STATEMENT_TYPE = "application/vnd.countersign.statement+json"

_encoder = msgspec.json.Encoder(order="deterministic")
_rotations = msgspec.json.Decoder(Rotation)
_statements = msgspec.json.Decoder(ChannelStatement)


class KeyChanged(SignatureRefused):
    """The organisation's key does not follow from the pinned key by signed rotations."""

    code = "key_changed"
    title = "Key changed"
    resolution = "Ask the publisher. Only if they lost their key: forget the pinned key with `countersign unpin ORG`."


class RolledBack(Refused):
    """The channel's statement is older than one seen before."""

    status = 409
    code = "rolled_back"
    title = "Rolled back"
    resolution = "Try again later or from another network: the server may be offering an old version with known faults."


class StaleStatement(Refused):
    """The channel's statement has expired."""

    status = 409
    code = "stale_statement"
    title = "Stale statement"
    resolution = "Check this machine's clock, then try again; the store renews statements by itself."


def sign_rotation(org: str, key: SigningKey, public_key: PublicKey, issued_at: str) -> Envelope:
    """Sign a rotation: the current key names its successor."""
    return envelopes.sign(ROTATION_TYPE, _encoder.encode(Rotation(org, key.public.keyid, public_key, issued_at)), key)


def sign_statement(statement: ChannelStatement, key: SigningKey) -> Envelope:
    """Sign a channel's statement."""
    return envelopes.sign(STATEMENT_TYPE, _encoder.encode(statement), key)


def follow_rotations(
    org: str, pinned_key: PublicKey | None, root: PublicKey, rotations: Sequence[Envelope]
) -> PublicKey:
    """Return the current signing key. The rotations form a chain from the root key to the current key, which must
    contain the pinned key. Each rotation is signed by the key before it.

    Raises:
        KeyChanged: the pinned key is not in the chain.
        SignatureRefused: a rotation is not signed by the key before it, or belongs to another organisation.
    """
    chain = [root]
    envelopes.raw_key(root)
    for envelope in rotations:
        chain.append(_verify_rotation(org, chain[-1], envelope))
    if pinned_key is not None and pinned_key not in chain:
        raise KeyChanged(f"{org} signs with a key that does not follow from the key that this machine knows")
    return chain[-1]


def _verify_rotation(org: str, key: PublicKey, envelope: Envelope) -> PublicKey:
    payload = envelopes.verify(envelope, ROTATION_TYPE, {key.keyid: key})
    try:
        rotation = _rotations.decode(payload)
    except msgspec.ValidationError as error:
        raise SignatureRefused("a signed rotation is malformed") from error
    if rotation.org != org or rotation.previous != key.keyid:
        raise SignatureRefused("a rotation belongs to another organisation or another key")
    envelopes.raw_key(rotation.key)
    return rotation.key


def verify_channel(
    org: str,
    channel: str,
    channel_state: ChannelState,
    *,
    pinned_key: PublicKey | None,
    seen_counter: int,
    now: Instant,
) -> tuple[ChannelStatement, PublicKey]:
    """Verify the channel's statement. Return it with the current signing key, which the caller pins.

    `seen_counter` is the highest counter that was verified before for this product and channel, or 0 if there was none.

    Raises:
        KeyChanged, SignatureRefused: the signature is invalid, or the organisation or channel differs.
        RolledBack: the counter of the statement is below `seen_counter`.
        StaleStatement: the statement has expired.
    """
    key = follow_rotations(org, pinned_key, channel_state.root, channel_state.rotations)
    payload = envelopes.verify(channel_state.statement, STATEMENT_TYPE, {key.keyid: key})
    try:
        statement = _statements.decode(payload)
    except msgspec.ValidationError as error:
        raise SignatureRefused("the signed statement is malformed") from error
    if (statement.org, statement.channel) != (org, channel):
        raise SignatureRefused("the statement belongs to another organisation or channel")
    if statement.counter < seen_counter:
        raise RolledBack(f"the channel's statement has counter {statement.counter}, below the last seen {seen_counter}")
    if expires_at(statement) <= now:
        raise StaleStatement(f"the channel's statement expired at {statement.expires_at}")
    return statement, key


def expires_at(statement: ChannelStatement) -> Instant:
    """Return the time at which the statement expires.

    Raises:
        SignatureRefused: the time is not in RFC 3339 format.
    """
    try:
        return clock.from_datetime(datetime.fromisoformat(statement.expires_at))
    except ValueError as error:
        raise SignatureRefused("the statement does not say when it expires") from error
