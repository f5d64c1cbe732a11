"""Webhooks report that a plan is pending and how it ended. They contain only its id."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from countersign.kernel import clock
from countersign.kernel.webhooks import receivers
from countersign.kernel.webhooks.sender import Sender
from countersign.records.approvals import changes, decisions
from tests.peers.receiver import Receiver, receiving
from tests.records.office import Office


@pytest.fixture
async def receiver(office: Office) -> AsyncIterator[Receiver]:
    """Create a receiver of all events."""
    async with receiving() as webhook_receiver:
        records = office.service.records
        box = replace(changes.outbox_of(records), is_private=True)
        async with records.database.transaction() as transaction:
            await receivers.add(transaction, box, changes.OWNER, webhook_receiver.url, [])
        yield webhook_receiver


async def deliver_messages(office: Office, receiver: Receiver) -> list[tuple[str, str]]:
    """Deliver the pending messages, and return the type and the subject of each."""
    count_before = len(receiver.messages)
    lanes = Sender(replace(changes.outbox_of(office.service.records), is_private=True))
    await lanes.open()
    await lanes.drain()
    return [(message.event["type"], message.event["subject"]) for message in receiver.messages[count_before:]]


async def test_each_step_of_a_plan_is_reported_once(office: Office, receiver: Receiver) -> None:
    await office.agent("alice", name="agent")
    ids = [lead["id"] for lead in (await office.all("lead"))[:4]]
    first_plan, second_plan, third_plan, last_plan = [
        await office.proposed("agent", "lead.delete", id=id_) for id_ in ids
    ]
    assert await office.proposed("agent", "lead.delete", id=ids[0]) == first_plan, "the same one, so nothing new"

    assert (await office.approve("alice", first_plan)).status_code == 200
    await office.value("alice", "plan.reject", id=second_plan, reason="no")
    await office.value("agent", "plan.withdraw", id=third_plan)
    with clock.fixed(clock.later(clock.now(), seconds=office.service.records.settings.plan_ttl_s + 1)):
        assert await decisions.expire_plans(office.service.engine) == 1
        messages = await deliver_messages(office, receiver)

    assert sorted(messages) == sorted(
        [
            *(("plan.waiting", f"plan/{plan}") for plan in (first_plan, second_plan, third_plan, last_plan)),
            ("plan.executed", f"plan/{first_plan}"),
            ("plan.rejected", f"plan/{second_plan}"),
            ("plan.withdrawn", f"plan/{third_plan}"),
            ("plan.expired", f"plan/{last_plan}"),
        ]
    )


async def test_messages_do_not_depend_on_the_values_of_records(office: Office, receiver: Receiver) -> None:
    await office.agent("alice", name="agent", label="PLANTED LABEL")
    shapes: list[list[str]] = []
    for planted_text in ("planted one", "a planted text that is much longer than the other one is"):
        lead = await office.value(
            "alice", "lead.create", title=planted_text, contact_name=planted_text, notes=planted_text
        )
        await office.call("agent", "plan.propose", {
            "why": planted_text, "steps": [{"command": "lead.delete", "input": {"id": lead["id"]}}],
        })
        (message,) = [receiver.messages[-1]] if await deliver_messages(office, receiver) else []
        assert "planted" not in (json.dumps(message.headers) + message.body.decode()).lower()
        assert lead["id"] not in message.body.decode()
        shapes.append([*message.headers, str(len(message.body))])

    assert shapes[0] == shapes[1]


async def test_a_refused_plan_is_not_reported(office: Office, receiver: Receiver) -> None:
    await office.agent("alice", name="agent")

    await office.refusal_of("agent", "lead.delete", id="0" * 24)

    assert await deliver_messages(office, receiver) == []
