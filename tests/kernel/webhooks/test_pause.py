"""During a pause nothing is sent, and nothing is lost."""

from countersign.kernel import clock
from countersign.kernel.clock import DAY, Instant
from countersign.kernel.webhooks import outbox
from tests.kernel.webhooks.conftest import ObservedOutbox
from tests.peers.receiver import Receiver


async def pause_deliveries(post: ObservedOutbox) -> None:
    """Pause all deliveries, as a restore does."""
    async with post.outbox.database.transaction() as transaction:
        await outbox.pause(transaction)


async def resume(post: ObservedOutbox) -> bool:
    """Resume the deliveries, as the operator does."""
    async with post.outbox.database.transaction() as transaction:
        return await outbox.resume(transaction)


async def test_paused_deliveries_are_sent_in_order_after_the_resume(post: ObservedOutbox, receiver: Receiver) -> None:
    await post.add(receiver.url)
    await post.emit("a")
    await pause_deliveries(post)
    await post.emit("b")

    await post.deliver()
    assert receiver.messages == []
    assert await resume(post)
    await post.deliver()

    assert [message.event["subject"] for message in receiver.messages] == ["a", "b"]


async def test_paused_time_does_not_count_towards_expiry(post: ObservedOutbox, receiver: Receiver) -> None:
    webhook_id, _ = await post.add(receiver.url)
    await post.emit("a")
    await pause_deliveries(post)

    with clock.fixed(Instant(clock.now() + 10 * DAY)):
        async with post.outbox.database.transaction() as transaction:
            await outbox.forget_old(transaction, 1)
        await resume(post)
        async with post.outbox.database.transaction() as transaction:
            await outbox.forget_old(transaction, 1)
        assert [delivery.state for delivery in await post.deliveries(webhook_id)] == ["waiting"]
        await post.deliver()

    assert len(receiver.messages) == 1


async def test_the_pause_report_shows_its_start_and_how_to_resume(post: ObservedOutbox) -> None:
    moment = Instant(clock.now() - DAY)
    with clock.fixed(moment):
        await pause_deliveries(post)
    await pause_deliveries(post)

    report = await outbox.describe_pause(post.outbox.database)

    assert clock.rfc3339(moment) in report
    assert outbox.RESUME_COMMAND in report
    assert [await resume(post), await resume(post)] == [True, False]
    assert await outbox.describe_pause(post.outbox.database) == "not held"
