"""Only one of several nodes sends to a receiver, and a node that has lost its lease writes nothing."""

from contextlib import AsyncExitStack

import pytest

from countersign.kernel import clock
from countersign.kernel.webhooks import receivers, sender
from countersign.kernel.webhooks.sender import Sender
from tests.kernel.webhooks.conftest import ObservedOutbox
from tests.peers.receiver import Receiver


async def test_a_receiver_removed_during_a_delivery_gets_no_more_events(
    post: ObservedOutbox, receiver: Receiver
) -> None:
    webhook_id, _ = await post.add(receiver.url)
    receiver.instead = "hang"
    await post.emit("a", "b")
    lanes = Sender(post.outbox)
    await lanes.open()
    await receiver.wait_for_messages(1)

    async with post.outbox.database.transaction() as transaction:
        await receivers.remove(transaction, "north", webhook_id)
    receiver.release.set()
    await lanes.drain()

    assert len(receiver.messages) == 1
    assert await post.deliveries(webhook_id) == []


async def test_only_one_of_several_nodes_sends_to_a_receiver(
    post: ObservedOutbox, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "POLL_EVERY_S", 0.05)
    await post.add(receiver.url)
    await post.emit(*(f"things/{number}" for number in range(50)))

    async with AsyncExitStack() as nodes:
        for _ in range(4):
            await nodes.enter_async_context(sender.send_deliveries(post.outbox))
        await receiver.wait_for_messages(50)

    assert len(receiver.ids) == len(set(receiver.ids)) == 50
    assert receiver.most_open == 1


async def test_a_node_that_sent_no_heartbeat_for_too_long_changes_nothing(
    post: ObservedOutbox, receiver: Receiver
) -> None:
    webhook_id, _ = await post.add(receiver.url)
    receiver.instead = "hang"
    await post.emit("a")
    silent = Sender(post.outbox)
    await silent.open()
    await receiver.wait_for_messages(1)

    with clock.fixed(clock.later(clock.now(), seconds=sender.LEASE_S + 1)):
        receiver.instead, receiver.status = "", 500
        await post.deliver()
        (delivery,) = await post.deliveries(webhook_id)
        receiver.release.set()
        await silent.drain()

    assert receiver.ids == [delivery.event_id] * 2
    assert (delivery.state, delivery.attempts, delivery.answer) == ("waiting", 1, 500)
    assert await post.deliveries(webhook_id) == [delivery]
