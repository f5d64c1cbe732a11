"""E-mails about pending plans: one e-mail for all pending plans, only to people who may approve them."""

import asyncio
from email import message_from_bytes
from email.policy import SMTP
from pathlib import Path

import pytest

from countersign.kernel import clock
from countersign.kernel.errors import Unavailable
from countersign.kernel.mail import transports
from countersign.kernel.mail.transports import Mail
from countersign.kernel.webhooks import outbox
from countersign.records import app
from countersign.records.approvals import email_queue, emails
from tests.records.conftest import OfficeSettings
from tests.records.office import ROOT_URL, Office

SOON_S = 5.1 * 60


class RefusingMail:
    """A mail transport that refuses every e-mail."""

    async def send(self, recipient: str, subject: str, text: str) -> None:
        """Refuse the e-mail."""
        raise Unavailable("the mail server is away")

    async def check(self) -> None:
        """Report a failure."""
        raise Unavailable("the mail server is away")


class ExitingMail:
    """A mail transport whose process ends right after it has accepted an e-mail."""

    def __init__(self, office: Office) -> None:
        self.office = office

    async def send(self, recipient: str, subject: str, text: str) -> None:
        """Accept the e-mail, and raise the error that ends the process."""
        await self.office.service.records.mail.send(recipient, subject, text)
        raise KeyboardInterrupt

    async def check(self) -> None:
        """Report no failure."""


async def deliver(office: Office, later_s: float = 0, mail: Mail | None = None) -> None:
    """Run one round of e-mails at this time in the future."""
    with clock.fixed(clock.later(clock.now(), seconds=later_s)):
        service = office.service
        await emails.send_due(service.engine, service.callers, mail or service.records.mail)


def sent_emails(office: Office) -> list[tuple[str, str, str]]:
    """Return the e-mails in the outbox folder, the oldest first, as recipient, subject and text."""
    folder = Path(office.service.records.settings.data) / transports.OUTBOX_FOLDER
    messages = [message_from_bytes(path.read_bytes(), policy=SMTP) for path in transports.messages(folder)[::-1]]
    return [
        (str(message["To"]), str(message["Subject"]), str(message.get_content()).replace("\r\n", "\n"))
        for message in messages
    ]


async def proposals(office: Office, count: int) -> list[str]:
    """Let an agent of alice propose this number of plans that alice may approve."""
    if "agent" not in office.tokens:
        await office.agent("alice", name="agent")
    leads = [lead["id"] for lead in await office.all("lead") if lead["stage"] == "proposed"]
    return [await office.proposed("agent", "lead.delete", id=lead) for lead in leads[:count]]


async def test_one_email_reports_all_plans_five_minutes_after_the_first(office: Office) -> None:
    await proposals(office, 3)

    await deliver(office, 4.9 * 60)
    assert sent_emails(office) == []
    await deliver(office, 5.1 * 60)
    await deliver(office, 5.2 * 60)
    await deliver(office, 20 * 60)

    assert sorted(sent_email[0] for sent_email in sent_emails(office)) == ["alice@example.com", "root@example.com"]
    for _, subject, text in sent_emails(office):
        assert subject == "3 proposals wait for your approval"
        assert f"{ROOT_URL}/approvals" in text


async def test_a_restored_service_sends_no_email_until_sending_is_resumed(office: Office) -> None:
    database = office.service.records.database
    async with database.transaction() as transaction:
        await outbox.pause(transaction)
    await proposals(office, 3)

    await deliver(office, SOON_S)
    await deliver(office, 86_400)
    assert sent_emails(office) == []
    async with database.transaction() as transaction:
        await outbox.resume(transaction)
    await deliver(office, 86_401)

    assert sorted(sent_email[0] for sent_email in sent_emails(office)) == ["alice@example.com", "root@example.com"]
    assert {subject for _, subject, _ in sent_emails(office)} == {"3 proposals wait for your approval"}


async def test_no_caller_is_informed_of_plans_they_may_not_approve(office: Office) -> None:
    await proposals(office, 1)

    await deliver(office, SOON_S)

    recipients = {recipient for recipient, _, _ in sent_emails(office)}
    assert recipients == {"alice@example.com", "root@example.com"}, "bob may not delete leads, and carol sees none"


async def test_hidden_values_do_not_change_an_email(office: Office) -> None:
    await office.agent("carol", name="her agent")
    invoice = next(invoice for invoice in await office.all("invoice", "carol") if invoice["state"] == "draft")
    await office.proposed("her agent", "invoice.post", id=invoice["id"])
    await proposals(office, 4)

    await deliver(office, SOON_S)

    subjects = {recipient: subject for recipient, subject, _ in sent_emails(office)}
    assert subjects["carol@example.com"] == "1 proposal waits for your approval"
    assert subjects["alice@example.com"] == "4 proposals wait for your approval"
    assert "bob@example.com" not in subjects


async def test_an_email_contains_counts_and_a_link_and_no_record_data(office: Office) -> None:
    lead = next(lead for lead in await office.all("lead") if lead["stage"] == "new")
    await office.agent("alice", name="agent", label="PLANTED LABEL")
    planted_values = {
        "title": "PLANTED TITLE",
        "contact_name": "Planted Person",
        "contact_email": "planted@example.org",
    }
    await office.value("root", "lead.update", id=lead["id"], **planted_values)
    answer = await office.call(
        "agent",
        "plan.propose",
        {
            "why": "PLANTED REASON",
            "steps": [{"command": "lead.delete", "input": {"id": lead["id"], "cascade": True}}],
        },
    )
    assert answer.status_code == 202, answer.text

    await deliver(office, SOON_S)

    assert len(sent_emails(office)) == 2
    for _, subject, text in sent_emails(office):
        assert "planted" not in (subject + text).lower()
        assert lead["id"] not in text
        assert "alice" not in text


async def test_a_plan_decided_before_the_email_is_not_reported(office: Office) -> None:
    first_plan, second_plan = await proposals(office, 2)
    assert (await office.approve("alice", first_plan)).status_code == 200
    await office.value("alice", "plan.reject", id=second_plan, reason="no")

    await deliver(office, SOON_S)

    assert sent_emails(office) == []


async def test_the_next_email_follows_the_next_plan_and_counts_all_plans(office: Office) -> None:
    await proposals(office, 1)
    await deliver(office, SOON_S)
    await proposals(office, 2)

    await deliver(office, 2 * SOON_S)

    assert [subject for _, subject, _ in sent_emails(office)][2:] == ["2 proposals wait for your approval"] * 2


async def test_emails_use_the_persons_language_and_only_go_to_subscribers(office: Office) -> None:
    alice, root = [await office.first_record("user", username=name) for name in ("alice", "root")]
    await office.value("root", "user.update", id=alice["id"], language="de")
    await office.value("root", "user.update", id=root["id"], letters="none")
    await proposals(office, 2)

    await deliver(office, SOON_S)

    ((recipient, subject, text),) = sent_emails(office)
    assert (recipient, subject) == ("alice@example.com", "2 Vorschläge warten auf Ihre Genehmigung")
    assert "Sehen Sie, was sich ändert" in text


async def test_two_nodes_send_one_email(office: Office, office_settings: OfficeSettings) -> None:
    await proposals(office, 1)
    async with app.open_records(office_settings.settings, ROOT_URL, is_loopback=True) as second_node:
        nodes = [office.service, second_node, office.service, second_node]
        with clock.fixed(clock.later(clock.now(), seconds=SOON_S)):
            await asyncio.gather(*(emails.send_due(node.engine, node.callers, node.records.mail) for node in nodes))

    assert sorted(recipient for recipient, _, _ in sent_emails(office)) == ["alice@example.com", "root@example.com"]


async def test_an_unaccepted_email_is_sent_again(office: Office) -> None:
    await proposals(office, 1)

    await deliver(office, SOON_S, RefusingMail())
    assert sent_emails(office) == []
    await deliver(office, SOON_S + 250)
    assert sent_emails(office) == []
    await deliver(office, SOON_S + 301)

    assert len(sent_emails(office)) == 2


async def test_a_node_that_dies_after_sending_repeats_at_most_one_email(office: Office) -> None:
    await proposals(office, 1)

    with pytest.raises(KeyboardInterrupt):
        await deliver(office, SOON_S, ExitingMail(office))
    await deliver(office, SOON_S)
    assert len(sent_emails(office)) == 2, "the other letter; what the dead node held is still held"
    await deliver(office, SOON_S + email_queue.LEASE_S + 1)

    assert len(sent_emails(office)) == 3
    assert len({recipient for recipient, _, _ in sent_emails(office)}) == 2


async def test_a_plan_that_was_rolled_back_leaves_no_notice(office: Office) -> None:
    await office.agent("alice", name="agent")
    lead = await office.first_record("lead")

    steps = [{"command": "lead.delete", "input": {"id": lead_id}} for lead_id in (lead["id"], "0" * 24)]
    await office.refusal_of("agent", "plan.propose", why="both or none", steps=steps)

    rows = await office.service.records.database.fetch("SELECT count(*) FROM plan_notice")
    assert rows == [(0,)]
