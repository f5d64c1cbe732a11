"""Events reach their receivers at least once, and no receiver affects the service or another receiver."""

import asyncio
import io
import logging
from contextlib import suppress

import pytest
from standardwebhooks import Webhook

from countersign.kernel import clock, safe_http_client
from countersign.kernel.clock import DAY, HOUR, Instant
from countersign.kernel.errors import InvalidRequest
from countersign.kernel.webhooks import outbox, receivers
from countersign.kernel.webhooks.sender import Sender
from tests.kernel.webhooks.conftest import ObservedOutbox
from tests.peers.receiver import Receiver


async def test_a_receiver_gets_events_and_can_verify_the_sender(post: ObservedOutbox, receiver: Receiver) -> None:
    _, secret = await post.add(receiver.url)

    await post.emit("things/7")
    await post.deliver()

    (message,) = receiver.messages
    event = Webhook(secret).verify(message.body, message.headers)
    assert event == {
        "specversion": "1.0",
        "id": message.headers["webhook-id"],
        "source": "https://store.example/api/v1",
        "type": "thing.made",
        "subject": "things/7",
        "time": event["time"],
    }
    assert message.headers["content-type"] == "application/json"


async def test_an_event_is_reported_only_when_its_cause_is_kept(post: ObservedOutbox, receiver: Receiver) -> None:
    await post.add(receiver.url)

    with suppress(ZeroDivisionError):
        async with post.outbox.database.transaction() as transaction:
            await outbox.emit(transaction, "north", "thing.made", "things/lost")
            raise ZeroDivisionError
    await post.emit("things/kept")
    await post.deliver()

    assert [message.event["subject"] for message in receiver.messages] == ["things/kept"]


async def test_a_receiver_gets_only_its_chosen_event_types_about_data_of_its_owner(
    post: ObservedOutbox, receiver: Receiver, other: Receiver
) -> None:
    await post.add(receiver.url, "thing.made", "thing.lost")
    await post.add(other.url, owner="south")

    await post.emit("a")
    await post.emit("b", kind="thing.found")
    await post.emit("c", kind="thing")
    await post.emit("d", owner="south")
    await post.emit("e", kind="thing.lost")
    await post.deliver()

    assert [message.event["subject"] for message in receiver.messages] == ["a", "e"]
    assert [message.event["subject"] for message in other.messages] == ["d"]


async def test_without_a_receiver_nothing_is_kept(post: ObservedOutbox) -> None:
    await post.emit("a")

    assert await post.tables() == []


async def test_a_delivery_is_given_up_after_three_days_of_attempts_and_shown_as_failed(
    post: ObservedOutbox, receiver: Receiver
) -> None:
    webhook_id, _ = await post.add(receiver.url)
    receiver.status = 500
    await post.emit("a")

    start_time = clock.now()
    attempt_times: list[Instant] = []
    at = start_time
    while at < start_time + 6 * DAY and (await post.deliveries(webhook_id))[0].state == "waiting":
        with clock.fixed(at):
            count_before = len(receiver.messages)
            await post.deliver()
            attempt_times += [at] * (len(receiver.messages) - count_before)
        (delivery,) = await post.deliveries(webhook_id)
        at = Instant(max(delivery.due_at, at + 5 * clock.MINUTE))

    assert (delivery.state, delivery.attempts, delivery.answer, delivery.fault) == ("given_up", 10, 500, None)
    assert len(receiver.messages) == 10
    assert len(set(receiver.ids)) == 1
    assert len({message.headers["webhook-timestamp"] for message in receiver.messages}) == 10
    assert 2.5 * DAY < attempt_times[-1] - attempt_times[0] < 4 * DAY
    with clock.fixed(Instant(at + DAY)):
        await post.deliver()
    assert len(receiver.messages) == 10


async def test_a_recovered_receiver_gets_the_missed_events(post: ObservedOutbox, receiver: Receiver) -> None:
    webhook_id, _ = await post.add(receiver.url)
    receiver.statuses = [503]
    await post.emit("a", "b", "c")

    await post.deliver()
    assert len(receiver.messages) == 1
    with clock.fixed(clock.later(clock.now(), seconds=60)):
        await post.deliver()

    assert sorted(message.event["subject"] for message in receiver.messages[1:]) == ["a", "b", "c"]
    deliveries = await post.deliveries(webhook_id)
    assert [delivery.state for delivery in deliveries] == ["delivered"] * 3
    (receiver_now,) = await receivers.list_receivers(post.outbox.database, "north")
    assert receiver_now.failures == 0
    assert receiver_now.delivered_at is not None


@pytest.mark.parametrize("status", [199, 302, 410, 429, 500])
async def test_a_status_other_than_2xx_is_a_failed_delivery(
    post: ObservedOutbox, receiver: Receiver, other: Receiver, status: int
) -> None:
    webhook_id, _ = await post.add(receiver.url)
    receiver.status, receiver.location = status, other.url
    await post.emit("a")

    await post.deliver()

    (delivery,) = await post.deliveries(webhook_id)
    assert (delivery.state, delivery.attempts, delivery.answer) == ("waiting", 1, status)
    assert other.messages == [], "a redirect is not followed"


@pytest.mark.parametrize(
    ("instead", "fault"),
    [("hang", "timeout"), ("endless head", "unreachable"), ("garbage", "unreachable"), ("cut", "unreachable")],
)
async def test_a_hostile_receiver_is_a_failed_attempt(
    post: ObservedOutbox, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, instead: str, fault: str
) -> None:
    if instead == "hang":
        monkeypatch.setattr(safe_http_client, "POST_S", 0.3)
    webhook_id, _ = await post.add(receiver.url)
    receiver.instead = instead
    await post.emit("a")

    await post.deliver()

    (delivery,) = await post.deliveries(webhook_id)
    assert (delivery.state, delivery.answer, delivery.fault) == ("waiting", None, fault)


async def test_of_an_endless_answer_the_head_is_enough(post: ObservedOutbox, receiver: Receiver) -> None:
    webhook_id, _ = await post.add(receiver.url)
    receiver.instead = "endless body"
    await post.emit("a")

    await post.deliver()

    assert [delivery.state for delivery in await post.deliveries(webhook_id)] == ["delivered"]


async def test_a_hanging_receiver_does_not_delay_other_receivers(
    post: ObservedOutbox, receiver: Receiver, other: Receiver
) -> None:
    await post.add(receiver.url)
    await post.add(other.url)
    receiver.instead = "hang"
    await post.emit(*(f"things/{number}" for number in range(20)))

    lanes = Sender(post.outbox)
    await lanes.open()
    await other.wait_for_messages(20)
    await receiver.wait_for_messages(1)

    assert len(receiver.messages) == 1
    assert receiver.most_open == 1
    receiver.instead = ""
    receiver.release.set()
    await lanes.drain()


async def test_the_pauses_between_attempts_to_a_failing_receiver_grow(
    post: ObservedOutbox, receiver: Receiver
) -> None:
    await post.add(receiver.url)
    receiver.status = 500
    await post.emit(*(f"things/{number}" for number in range(300)))

    at = clock.now()
    for _ in range(180):
        with clock.fixed(at):
            await post.deliver()
        at = Instant(at + 10 * clock.SECOND)

    assert 8 < len(receiver.messages) < 20, "half an hour: 2 s, 4 s, … then every five minutes, and not all 180 times"


async def test_addresses_of_our_own_network_are_not_sent_to(post: ObservedOutbox, receiver: Receiver) -> None:
    await post.add(f"https://127.0.0.1:{receiver.port}/")
    webhook_id, _ = await post.add(receiver.url)
    await post.emit("a")

    await post.public().deliver()

    assert receiver.messages == []
    (delivery,) = await post.deliveries(webhook_id)
    assert (delivery.answer, delivery.fault) == (None, "unreachable"), "not why: that would map our network"


@pytest.mark.parametrize(
    "url",
    [
        *("http://hooks.example/", "https://user@hooks.example/", "ftp://hooks.example/", "https://hooks.example/#a"),
        *("https://hooks.example/a b", "https://hooks.example/\r\nx: y", "https:///", "hooks.example", ""),
    ],
)
async def test_an_address_that_cannot_receive_mail_is_refused(post: ObservedOutbox, url: str) -> None:
    with pytest.raises(InvalidRequest):
        await post.public().add(url)

    assert await post.tables() == []


async def test_addresses_and_responses_are_not_logged(post: ObservedOutbox, receiver: Receiver) -> None:
    log_text = io.StringIO()
    handler = logging.StreamHandler(log_text)
    logging.getLogger().addHandler(handler)
    await post.add(receiver.url)
    receiver.status = 500
    await post.emit("a")

    await post.deliver()
    logging.getLogger().removeHandler(handler)

    stored_rows = "".join(await post.tables())
    assert "Hostile" not in stored_rows + log_text.getvalue()
    assert "secret-of-the-path" not in log_text.getvalue()


async def test_secrets_are_stored_sealed(post: ObservedOutbox, receiver: Receiver) -> None:
    _, secret = await post.add(receiver.url)

    assert secret.removeprefix("whsec_") not in "".join(await post.tables())


async def test_both_secrets_sign_for_a_day_after_a_rotation(post: ObservedOutbox, receiver: Receiver) -> None:
    webhook_id, old = await post.add(receiver.url)
    async with post.outbox.database.transaction() as transaction:
        new = await receivers.rotate(transaction, post.outbox, "north", webhook_id)

    await post.emit("a")
    await post.deliver()

    message = receiver.messages[0]
    assert Webhook(old).verify(message.body, message.headers) == Webhook(new).verify(message.body, message.headers)
    with clock.fixed(Instant(clock.now() + DAY + HOUR)):
        await post.emit("b")
        await post.deliver()
    late_message = receiver.messages[1]
    assert len(late_message.headers["webhook-signature"].split()) == 1


async def test_a_replayed_event_keeps_its_id(post: ObservedOutbox, receiver: Receiver) -> None:
    webhook_id, _ = await post.add(receiver.url)
    # Events with the same time would be replayed together.
    now = clock.now()
    for number, subject in enumerate(("a", "b", "c")):
        with clock.fixed(clock.later(now, seconds=number - 3)):
            await post.emit(subject)
    await post.deliver()
    first_ids = list(receiver.ids)

    async with post.outbox.database.transaction() as transaction:
        await outbox.replay(transaction, webhook_id, first_ids[1])
    await post.deliver()
    assert receiver.ids == [*first_ids, first_ids[1]]

    (_, second_delivery, _) = await post.deliveries(webhook_id)
    async with post.outbox.database.transaction() as transaction:
        replay = await outbox.replay_since(transaction, "north", webhook_id, outbox.ALL, second_delivery.at)
    await post.deliver()
    assert replay == (2, None)
    assert sorted(receiver.ids[4:]) == sorted(first_ids[1:])


async def test_a_new_receiver_can_get_earlier_events(post: ObservedOutbox, receiver: Receiver, other: Receiver) -> None:
    await post.add(receiver.url)
    await post.emit("a")
    await post.emit("b", kind="thing.lost")
    await post.emit("c", owner="south")
    webhook_id, _ = await post.add(other.url, "thing.lost")

    async with post.outbox.database.transaction() as transaction:
        replay = await outbox.replay_since(transaction, "north", webhook_id, " thing.lost ", Instant(0))
    await post.deliver()

    assert replay.deliveries == 1
    assert [message.event["subject"] for message in other.messages] == ["b"]


async def test_a_replay_of_too_many_events_names_the_time_to_continue_from(
    post: ObservedOutbox, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MAX_REPLAYED", 10)
    webhook_id, _ = await post.add(receiver.url)
    start_time = clock.now()
    for number in range(25):
        with clock.fixed(Instant(start_time + number * clock.SECOND)):
            await post.emit(f"things/{number}")
    late_time = clock.later(start_time, seconds=60)
    with clock.fixed(late_time):
        await post.deliver()
        since: Instant | None = Instant(0)
        rounds = 0
        while since is not None:
            async with post.outbox.database.transaction() as transaction:
                replay = await outbox.replay_since(transaction, "north", webhook_id, outbox.ALL, since)
            since, rounds = replay.through, rounds + 1
        await post.deliver()

    assert rounds == 3
    assert len(receiver.messages) == 50
    assert len(set(receiver.ids)) == 25


async def test_old_finished_deliveries_are_removed_and_waiting_deliveries_are_kept(
    post: ObservedOutbox, receiver: Receiver
) -> None:
    webhook_id, _ = await post.add(receiver.url)
    start_time = clock.now()
    await post.emit("a")
    await post.deliver()
    receiver.status = 500
    with clock.fixed(Instant(start_time + 15 * DAY)):
        await post.emit("b")
        await post.deliver()
        async with post.outbox.database.transaction() as transaction:
            await outbox.forget_old(transaction, post.outbox.days)

        assert [delivery.subject for delivery in await post.deliveries(webhook_id)] == ["b"]
        assert await post.outbox.database.fetch("SELECT subject FROM webhook_event") == [("b",)]

    for day, remaining in ((20, [("b", "given_up")]), (35, [])):
        with clock.fixed(Instant(start_time + day * DAY)):
            async with post.outbox.database.transaction() as transaction:
                await outbox.forget_old(transaction, post.outbox.days)
        assert [(delivery.subject, delivery.state) for delivery in await post.deliveries(webhook_id)] == remaining
    assert await post.outbox.database.fetch("SELECT subject FROM webhook_event") == []


async def test_deleting_a_receiver_deletes_its_waiting_deliveries(post: ObservedOutbox, receiver: Receiver) -> None:
    webhook_id, _ = await post.add(receiver.url)
    await post.emit("a")

    async with post.outbox.database.transaction() as transaction:
        await receivers.remove(transaction, "north", webhook_id)
    await post.deliver()

    assert receiver.messages == []
    assert await post.deliveries(webhook_id) == []


async def test_exactly_ten_of_many_concurrent_adds_succeed(post: ObservedOutbox) -> None:
    answers = await asyncio.gather(*(post.add("https://a.example/") for _ in range(14)), return_exceptions=True)

    assert sum(isinstance(answer, receivers.TooManyWebhooks) for answer in answers) == 4
    assert len(await receivers.list_receivers(post.outbox.database, "north")) == 10
