"""A client accepts the pinned key and the keys that it named, and no older state than it has seen."""

import itertools
from datetime import UTC, datetime

import msgspec
import pytest

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.updates import dsse, trust
from countersign.updates.api_types import ChannelState, ChannelStatement, Envelope, PublicKey
from countersign.updates.dsse import SignatureRefused, SigningKey
from countersign.updates.trust import KeyChanged, RolledBack, StaleStatement

NOW = clock.from_datetime(datetime(2026, 11, 21, 12, tzinfo=UTC))
ISSUED, EXPIRES = "2026-11-20T00:00:00.000Z", "2026-12-04T00:00:00.000Z"


def keys(count: int) -> list[SigningKey]:
    return [dsse.new_signing_key() for _ in range(count)]


def rotations(chain: list[SigningKey], org: str = "north") -> list[Envelope]:
    return [trust.sign_rotation(org, old, new.public, ISSUED) for old, new in itertools.pairwise(chain)]


def statement(
    counter: int = 5, org: str = "north", channel: str = "stable", expires: str = EXPIRES
) -> ChannelStatement:
    return ChannelStatement(org, "id", "orbit", channel, "1.2.0", {"linux": "0" * 64}, counter, ISSUED, expires)


def channel_state(
    chain: list[SigningKey], channel_statement: ChannelStatement | None = None, by: SigningKey | None = None
) -> ChannelState:
    signed_statement = trust.sign_statement(channel_statement or statement(), by or chain[-1])
    return ChannelState(signed_statement, chain[0].public, rotations(chain))


def verify_state(
    state: ChannelState, pinned: PublicKey | None = None, seen_counter: int = 0, now: Instant = NOW
) -> ChannelStatement:
    return trust.verify_channel("north", "stable", state, pinned_key=pinned, seen_counter=seen_counter, now=now)[0]


def test_the_first_key_is_trusted_and_returned_for_pinning() -> None:
    chain = keys(1)

    statement_verified, key = trust.verify_channel(
        "north", "stable", channel_state(chain), pinned_key=None, seen_counter=0, now=NOW
    )

    assert statement_verified.version == "1.2.0"
    assert key == chain[0].public


@pytest.mark.parametrize("at", range(4))
def test_a_client_that_pinned_any_key_of_the_chain_reaches_the_newest_key(at: int) -> None:
    chain = keys(4)

    assert verify_state(channel_state(chain), chain[at].public).counter == 5


def test_a_chain_that_does_not_pass_the_pinned_key_is_refused() -> None:
    with pytest.raises(KeyChanged):
        verify_state(channel_state(keys(3)), keys(1)[0].public)


def test_a_rotation_by_another_key_is_refused() -> None:
    first_key, second_key, thief = keys(3)
    forged_rotation = trust.sign_rotation("north", thief, second_key.public, ISSUED)
    state = ChannelState(trust.sign_statement(statement(), second_key), first_key.public, [forged_rotation])

    with pytest.raises(SignatureRefused):
        verify_state(state, first_key.public)


def test_a_rotation_of_another_organisation_is_refused() -> None:
    chain = keys(2)
    state = ChannelState(trust.sign_statement(statement(), chain[1]), chain[0].public, rotations(chain, "south"))

    with pytest.raises(SignatureRefused):
        verify_state(state, chain[0].public)


def test_a_key_that_was_succeeded_signs_no_more() -> None:
    chain = keys(2)

    with pytest.raises(SignatureRefused):
        verify_state(channel_state(chain, by=chain[0]), chain[0].public)


def test_a_key_under_another_keys_name_is_refused() -> None:
    real_key, thief = keys(2)
    posing = PublicKey(real_key.public.keyid, thief.public.public)
    signed_statement = trust.sign_statement(statement(), thief)
    signed_statement = msgspec.structs.replace(
        signed_statement,
        signatures=[msgspec.structs.replace(signed_statement.signatures[0], keyid=real_key.public.keyid)],
    )

    with pytest.raises(SignatureRefused):
        verify_state(ChannelState(signed_statement, posing, []))


@pytest.mark.parametrize(
    "channel_statement", [statement(org="south"), statement(channel="beta")], ids=["organisation", "channel"]
)
def test_a_statement_about_another_product_or_channel_is_refused(channel_statement: ChannelStatement) -> None:
    with pytest.raises(SignatureRefused):
        verify_state(channel_state(keys(1), channel_statement))


def test_a_changed_statement_is_refused() -> None:
    chain = keys(1)
    state = channel_state(chain)
    other_statement = trust.sign_statement(statement(counter=9), keys(1)[0])
    changed_envelope = msgspec.structs.replace(state.statement, payload=other_statement.payload)

    with pytest.raises(SignatureRefused):
        verify_state(msgspec.structs.replace(state, statement=changed_envelope))


def test_a_manifest_does_not_pass_for_a_statement() -> None:
    chain = keys(1)
    payload = msgspec.json.encode(statement())
    posing = dsse.sign("application/vnd.countersign.manifest+json", payload, chain[0])

    with pytest.raises(SignatureRefused):
        verify_state(ChannelState(posing, chain[0].public, []))
    renamed_envelope = msgspec.structs.replace(posing, payload_type=trust.STATEMENT_TYPE)
    with pytest.raises(SignatureRefused):
        verify_state(ChannelState(renamed_envelope, chain[0].public, []))


def test_an_older_counter_than_was_seen_is_refused() -> None:
    chain = keys(1)

    assert verify_state(channel_state(chain), seen_counter=5).counter == 5
    with pytest.raises(RolledBack):
        verify_state(channel_state(chain), seen_counter=6)


def test_an_expired_statement_is_refused() -> None:
    chain = keys(1)
    expires = clock.from_datetime(datetime(2026, 12, 4, tzinfo=UTC))

    assert verify_state(channel_state(chain), now=Instant(expires - 1)).counter == 5
    with pytest.raises(StaleStatement):
        verify_state(channel_state(chain), now=expires)
